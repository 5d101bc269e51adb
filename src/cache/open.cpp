// Invariants
// 1. The writer's byte is locked by an open file description that no descriptor refers to once
//    the file is open: the mapping alone keeps it. So it survives closefrom, is not inherited by
//    fork, and the kernel frees it on SIGKILL.
// 2. Nothing that a file says is used before header and size were checked.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "cache/file.hpp"
#include "cache/place.hpp"
#include "sync/lock_registry.hpp"

namespace esker::detail {

namespace {

Result<CacheHeader> read_header(const File& file) {
  auto status = file.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  const auto size = static_cast<std::uint64_t>(status->st_size);
  std::vector<std::byte> bytes(std::min<std::uint64_t>(size, cache_header_bytes));
  if (auto done = file.read_at(0, bytes); !done) return tl::make_unexpected(done.error());
  return decode_cache_header(bytes, size, file.path());
}

Result<void> check_model(const CacheHeader& header, const ModelId& model, const std::string& path) {
  if (model.unnamed()) return {};
  const std::string named = header.model.difference(model);
  if (named.empty()) return {};
  return fail(Errc::incompatible, path + ": the cache belongs to another model, " + named +
                                      " (the cache's first); use a cache of its own");
}

/// Who writes, as the live page says: for people only.
Failure busy(const File& file) {
  CacheLivePage page{};
  const auto bytes = std::as_writable_bytes(std::span(&page, 1));
  std::string who = "another process";
  if (file.read_at(cache_live_offset, bytes) && page.writer_pid != 0) {
    std::string command;
    for (const char letter : page.writer_command) {
      if (letter == 0) break;
      command.push_back(letter >= ' ' && letter <= '~' ? letter : '?');
    }
    who = "process " + std::to_string(page.writer_pid) + " (" + command + ")";
  }
  return fail(Errc::busy, file.path() + ": " + who +
                              " is writing to this cache; open it with CacheAccess::read, or wait "
                              "for its end");
}

/// A copy of a cache has holes where nothing was written; a write to them could find a full disk.
Result<void> fill_holes(const File& file, std::uint64_t bytes) {
  auto status = file.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (static_cast<std::uint64_t>(status->st_blocks) * 512 >= bytes) return {};
  int rc = 0;
  do {
    rc = fallocate(file.fd(), 0, 0, static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  // Where it is unknown, `populate` finds out.
  if (rc == 0 || errno == EOPNOTSUPP) return {};
  return fail_os(file.path(), "allocate " + size_text(bytes), errno);
}

/// Maps the file and lets go of its descriptor, which leaves the lock with the mapping.
Result<Mapping> keep_by_mapping(LockFile& lock, std::uint64_t bytes) {
  const lock_registry::Guard guard;
  auto mapping = Mapping::map(lock.file(), bytes, Mapping::Mode::read_write);
  if (mapping) lock_registry::close_lock_file(lock.file(), guard);
  return mapping;
}

}  // namespace

Result<std::unique_ptr<CacheFile>> CacheFile::open(const std::string& path,
                                                   const CacheFileOptions& options) {
  const bool writing = options.access == CacheAccess::write;
  auto place = place_of(path, options);
  if (!place) return tl::make_unexpected(std::move(place).error());
  auto fork_guard = ZeroMemory::allocate_wiped_on_fork();
  if (!fork_guard) return tl::make_unexpected(std::move(fork_guard).error());
  std::optional<LockFile> lock;
  File reading;
  if (writing) {
    const lock_registry::Guard guard;
    auto file = open_cache_file(*place, O_RDWR);
    if (!file) return tl::make_unexpected(std::move(file).error());
    if (auto done = lock_registry::adopt(*file, guard); !done) {
      return tl::make_unexpected(std::move(done).error());
    }
    lock.emplace(LockFile::over(std::move(*file)));
  } else {
    auto file = open_cache_file(*place, O_RDONLY);
    if (!file) return tl::make_unexpected(std::move(file).error());
    reading = std::move(*file);
  }
  const File& file = writing ? lock->file() : reading;
  auto header = read_header(file);
  if (!header) return tl::make_unexpected(std::move(header).error());
  if (auto same = check_model(*header, options.model, path); !same) {
    return tl::make_unexpected(std::move(same).error());
  }
  if (writing && header->read_only_features != 0) {
    return fail_field(Errc::incompatible, path, "read_only_features",
                      hex(header->read_only_features), "0",
                      "this Esker may only read it: open it with CacheAccess::read");
  }
  if (writing && !lock->try_lock(cache_writer_byte)) return busy(file);
  auto identity = identity_of(file, *header);
  if (!identity) return tl::make_unexpected(std::move(identity).error());
  const std::uint64_t bytes = header->layout.bytes();
  if (writing) {
    if (auto done = fill_holes(file, bytes); !done) return tl::make_unexpected(done.error());
  }
  auto mapping =
      writing ? keep_by_mapping(*lock, bytes) : Mapping::map(file, bytes, Mapping::Mode::read);
  if (!mapping) return tl::make_unexpected(std::move(mapping).error());
  if (writing) {
    if (auto kept = check_lock_is_kept(*place, path); !kept) {
      return tl::make_unexpected(std::move(kept).error());
    }
  }
  auto cache =
      std::make_unique<CacheFile>(Parts{path, options.access, std::move(*header), *identity,
                                        std::move(*mapping), std::move(*fork_guard)});
  if (writing) {
    cache->begin_writing(false);
  } else {
    cache->begin_reading();
  }
  return cache;
}

}  // namespace esker::detail
