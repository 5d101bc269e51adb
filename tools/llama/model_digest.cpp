#include "llama/model_digest.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "llama/input_file.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
constexpr unsigned max_parts = 1000;

struct FreeState {
  void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};
using State = std::unique_ptr<XXH3_state_t, FreeState>;

/// The number in five digits at `offset`, or nothing.
std::optional<unsigned> five_digits(std::string_view text, std::size_t offset) {
  unsigned number = 0;
  for (const char c : text.substr(offset, 5)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<unsigned>(c - '0');
  }
  return number;
}

/// The files of a model, given any one of its parts: "BASE-00001-of-00003.gguf" and so on.
Result<std::vector<std::string>> parts_of(const std::string& path) {
  constexpr std::string_view shape = "-00000-of-00000.gguf";
  if (path.size() <= shape.size()) return std::vector{path};
  const std::string base = path.substr(0, path.size() - shape.size());
  const std::string_view end = std::string_view(path).substr(base.size());
  const bool split = end[0] == '-' && end.substr(6, 4) == "-of-" && end.substr(15) == ".gguf";
  const auto parts = five_digits(end, 10);
  if (!split || !five_digits(end, 1) || !parts) return std::vector{path};
  if (*parts == 0 || *parts > max_parts) {
    return tl::unexpected(
        Error{Errc::invalid, 0,
              fmt::format("{}: names {} parts, expected 1…{}", path, *parts, max_parts)});
  }
  std::vector<std::string> files;
  for (unsigned part = 1; part <= *parts; ++part) {
    files.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", base, part, *parts));
  }
  return files;
}

Result<void> check_magic(const InputFile& file) {
  std::uint32_t magic = 0;
  if (file.bytes() >= sizeof(magic)) {
    const auto read = file.read(0, std::as_writable_bytes(std::span(&magic, 1)));
    if (!read) return read;
  }
  if (magic == gguf_magic) return {};
  return tl::unexpected(Error{
      Errc::invalid, 0,
      fmt::format("{}: magic at byte 0: found {:#010x}, expected {:#010x}: this is no GGUF model",
                  file.name(), magic, gguf_magic)});
}

Result<void> hash_file(XXH3_state_t* state, const InputFile& file,
                       const std::function<void(std::uint64_t)>& advanced) {
  std::vector<std::byte> chunk(chunk_bytes);
  for (std::uint64_t offset = 0; offset < file.bytes(); offset += chunk.size()) {
    chunk.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, file.bytes() - offset)));
    const auto read = file.read(offset, chunk);
    if (!read) return read;
    if (XXH3_128bits_update(state, chunk.data(), chunk.size()) != XXH_OK) {
      return tl::unexpected(Error{Errc::no_memory, 0, file.name() + ": hashing failed"});
    }
    if (advanced) advanced(chunk.size());
  }
  return {};
}

std::string digest_text(XXH3_state_t* state) {
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  return fmt::format("xxh3-128:{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

Result<ModelDigest> model_digest(const std::string& path, const Progress& progress) {
  const auto paths = parts_of(path);
  if (!paths) return tl::unexpected(paths.error());
  std::vector<InputFile> files;
  ModelDigest digest;
  for (const std::string& part : *paths) {
    auto file = InputFile::open(part);
    if (!file) return tl::unexpected(file.error());
    const auto checked = check_magic(*file);
    if (!checked) return tl::unexpected(checked.error());
    digest.bytes += file->bytes();
    files.push_back(std::move(*file));
  }

  const State state(XXH3_createState());
  if (state == nullptr || XXH3_128bits_reset(state.get()) != XXH_OK) {
    return tl::unexpected(Error{Errc::no_memory, 0, path + ": no memory to hash it"});
  }
  std::uint64_t done = 0;
  for (const InputFile& file : files) {
    const auto hashed = hash_file(state.get(), file, [&](std::uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, digest.bytes);
    });
    if (!hashed) return tl::unexpected(hashed.error());
  }
  digest.text = digest_text(state.get());
  return digest;
}

}  // namespace esker::cli::llama
