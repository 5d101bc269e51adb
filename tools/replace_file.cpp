#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "llama/byte_sink.hpp"
#include "llama/unique_fd.hpp"
#include "prometheus.hpp"

namespace esker::cli {

namespace {

tl::unexpected<Error> failed(const std::string& path, std::string_view what, int error) {
  return tl::make_unexpected(
      Error{Errc::io, error, fmt::format("{}: cannot {}: {}", path, what, std::strerror(error))});
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const llama::UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) return failed(path, "make a file beside it", errno);
  llama::ByteSink sink(fd.get(), temporary);
  auto done = sink.put(std::as_bytes(std::span(text)));
  if (done) done = sink.flush();
  const mode_t mask = umask(0);
  umask(mask);
  if (done && fchmod(fd.get(), 0666 & ~mask) != 0) done = failed(temporary, "set its mode", errno);
  if (done && rename(temporary.c_str(), path.c_str()) != 0) {
    done = failed(path, "replace it", errno);
  }
  if (!done) unlink(temporary.c_str());
  return done;
}

}  // namespace esker::cli
