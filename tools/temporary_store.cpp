#include "temporary_store.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_start = ".esker-convert-";
constexpr std::array<int, 3> ending_signals{SIGINT, SIGTERM, SIGHUP};
constexpr std::uint64_t spare_bytes = std::uint64_t{256} << 20;

volatile sig_atomic_t signal_seen = 0;

void note_signal(int number) { signal_seen = number; }

void catch_signals(bool caught) {
  struct sigaction action {};
  action.sa_handler = caught ? note_signal : SIG_DFL;
  for (const int number : ending_signals) {
    struct sigaction before {};
    // What the caller had ignored, as nohup does, stays ignored.
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
}

/// What the signals do by themselves, now that nothing is left to clean up.
void end_if_asked() {
  catch_signals(false);
  if (signal_seen != 0) static_cast<void>(::raise(signal_seen));
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// The process that made a store of this name, or 0 where the name is another one.
pid_t maker_of(const std::string& name) {
  if (!name.starts_with(name_start)) return 0;
  pid_t maker = 0;
  const char* first = name.data() + name_start.size();
  const auto [end, error] = std::from_chars(first, name.data() + name.size(), maker);
  return error == std::errc() && end != name.data() + name.size() && *end == '-' ? maker : 0;
}

/// Removes what killed processes have left; `destroy` refuses what anyone has open.
void sweep(const std::string& directory) {
  std::vector<std::string> left;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const pid_t maker = maker_of(entry->path().filename().string());
    if (maker > 0 && ::kill(maker, 0) != 0 && errno == ESRCH) left.push_back(entry->path());
  }
  for (const std::string& path : left) static_cast<void>(Store::destroy(path));
}

}  // namespace

Result<TemporaryStore> TemporaryStore::create(const std::string& directory,
                                              const Geometry& geometry, const ModelId& model,
                                              std::uint64_t rows_bytes) {
  sweep(directory);
  Options options;
  // One process, for a short time: whatever the file system, nobody else maps these files.
  options.allow_unsafe_file_system = true;
  options.capacity_bytes = rows_bytes + rows_bytes / 4 + spare_bytes;
  std::random_device device;
  const std::string path = fmt::format("{}/{}{}-{:08x}", directory.empty() ? "." : directory,
                                       name_start, ::getpid(), device());
  catch_signals(true);
  auto store = Store::create(path, geometry, model, options);
  if (!store) {
    end_if_asked();
    return tl::make_unexpected(std::move(store).error());
  }
  return TemporaryStore(path, std::move(*store));
}

TemporaryStore::TemporaryStore(std::string path, Store store)
    : path_(std::move(path)), store_(std::move(store)) {}

TemporaryStore::TemporaryStore(TemporaryStore&& other) noexcept
    : path_(std::exchange(other.path_, {})), store_(std::move(other.store_)) {}

TemporaryStore::~TemporaryStore() {
  if (path_.empty()) return;
  store_.reset();
  if (!Store::destroy(path_)) remove_all(path_);
  end_if_asked();
}

Progress TemporaryStore::guarded(Progress progress) const {
  return [path = path_, progress = std::move(progress)](std::uint64_t done, std::uint64_t total) {
    if (signal_seen != 0) {
      remove_all(path);
      end_if_asked();
    }
    if (progress) progress(done, total);
  };
}

}  // namespace esker::cli
