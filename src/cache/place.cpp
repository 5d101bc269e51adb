// Invariants
// 1. An opened cache file is a regular one of this user alone, reached without a symbolic link as
//    its last step.
#include "cache/place.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "region/file_system.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

namespace {

Result<void> check_owner(const File& file) {
  auto status = file.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if ((status->st_mode & 07177) != 0) {
    std::array<char, 16> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status->st_mode & 07777U);
    return fail_field(Errc::invalid, file.path(), "mode", mode.data(), "0600",
                      "others could read or change the cache: chmod 0600 " + file.path());
  }
  if (status->st_uid != geteuid()) {
    return fail_field(Errc::invalid, file.path(), "owner", "user " + std::to_string(status->st_uid),
                      "user " + std::to_string(geteuid()),
                      "somebody else made this file: use one of your own");
  }
  return {};
}

}  // namespace

Result<Place> place_of(const std::string& path, const CacheFileOptions& options) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return fail(Errc::invalid, "\"" + path + "\" is no path of a cache file");
  }
  const std::string above = slash == std::string::npos ? "."
                            : slash == 0               ? "/"
                                                       : path.substr(0, slash);
  auto directory = Directory::open(above);
  if (!directory) {
    Error error = std::move(directory).error();
    if (error.code == Errc::missing) {
      error.message = path + ": there is no directory " + above + "; make it, or see to the path";
    }
    return tl::make_unexpected(std::move(error));
  }
  if (!options.allow_unsafe_file_system) {
    if (auto safe = check_file_system(directory->fd(), path); !safe) {
      return tl::make_unexpected(std::move(safe).error());
    }
  }
  return Place{std::move(*directory), name};
}

Result<File> open_cache_file(const Place& place, int flags) {
  auto file = File::open_at(place.directory.fd(), place.directory.path(), place.name, flags);
  if (file) {
    if (auto ok = check_owner(*file); !ok) return tl::make_unexpected(std::move(ok).error());
    return file;
  }
  Error error = std::move(file).error();
  if (error.os_error == ENOENT) {
    error.code = Errc::missing;
    error.message = place.directory.path() + "/" + place.name +
                    ": there is no such file; KvCache::create makes one";
  }
  if (error.os_error == ELOOP) {
    error.code = Errc::invalid;
    error.message.append(" (a cache is never opened through a symbolic link)");
  }
  return tl::make_unexpected(std::move(error));
}

Result<std::uint64_t> identity_of(const File& file, const CacheHeader& header) {
  struct {
    std::array<std::uint8_t, 16> boot;
    std::array<std::uint8_t, 16> uuid;
    std::uint64_t device;
    std::uint64_t inode;
    std::int64_t born_s;
    std::uint64_t born_ns;
  } all{};
  auto boot = boot_id();
  if (!boot) return tl::make_unexpected(std::move(boot).error());
  auto status = file.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  all.boot = *boot;
  all.uuid = header.uuid;
  all.device = status->st_dev;
  all.inode = status->st_ino;
  // Inode numbers are used again; the time of birth tells them apart where it is known.
  struct statx more {};
  if (statx(file.fd(), "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 &&
      (more.stx_mask & STATX_BTIME) != 0) {
    all.born_s = more.stx_btime.tv_sec;
    all.born_ns = more.stx_btime.tv_nsec;
  }
  const std::uint64_t identity = xxh3_of(all);
  return identity == 0 ? 1 : identity;
}

Result<void> check_lock_is_kept(const Place& place, const std::string& path) {
  auto file = open_cache_file(place, O_RDONLY);
  if (!file) return tl::make_unexpected(std::move(file).error());
  if (bytes_held_by_others(file->fd(), cache_writer_byte, 1)) return {};
  return fail(Errc::io,
              path +
                  ": this file system drops a lock when its descriptor is closed although "
                  "the file is still mapped; a cache cannot be shared on it");
}

}  // namespace esker::detail
