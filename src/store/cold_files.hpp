#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/byte_sink.hpp"
#include "region/directory.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

/// A file of `cold/`, as its directory entry tells.
struct ColdFileStatus {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t used_unix_ns = 0;
};

/// 16 hex digits and ".esnap".
[[nodiscard]] bool is_cold_name(std::string_view name) noexcept;
[[nodiscard]] std::string new_cold_name();

/// `cold/` of a store, or nothing where there is none.
[[nodiscard]] Result<std::optional<Directory>> open_cold(const Directory& store);
/// The cold files, those first that were used least recently.
[[nodiscard]] Result<std::vector<ColdFileStatus>> list_cold(const Directory& cold);
/// The file counts as used now, or at `unix_ns`.
void touch_cold(const Directory& cold, const std::string& name,
                std::optional<std::uint64_t> unix_ns = {}) noexcept;

/// Takes COLD, which whoever writes to `cold/` holds. `Errc::busy` after the deadline.
[[nodiscard]] Result<LockFile> lock_cold(const Directory& store, Sharing sharing,
                                         std::uint32_t deadline_ms);
inline constexpr std::uint32_t cold_deadline_ms = 5000;

/// Removes what killed writers left, for the holder of COLD.
void sweep_unfinished_cold(const Directory& cold) noexcept;
/// The same when an opener finds COLD free.
void sweep_unfinished_cold(const LockFile& lock, const Directory& store) noexcept;
/// Leaves at most `share_bytes` of cold files; nobody else is there.
[[nodiscard]] Result<void> trim_cold(const Directory& store, std::uint64_t share_bytes);
/// All of it, when a store is destroyed.
[[nodiscard]] Result<void> remove_cold(const Directory& store);

/// Keeps what lies in `cold/` within its share: removes the files that were used least recently,
/// and never more than needed. For the holder of COLD.
class ColdRoom {
 public:
  [[nodiscard]] static Result<ColdRoom> open(const Directory& cold, std::uint64_t share_bytes);

  /// Makes room for `bytes` besides the named files; the file called `keep` stays. `Errc::full`
  /// when there is no such room.
  [[nodiscard]] Result<void> make(std::uint64_t bytes, std::string_view keep);
  /// Names of files that had to go.
  [[nodiscard]] const std::vector<std::string>& dropped() const noexcept { return dropped_; }

 private:
  ColdRoom(const Directory& cold, std::uint64_t share_bytes) noexcept
      : cold_(&cold), share_bytes_(share_bytes) {}

  const Directory* cold_;
  std::uint64_t share_bytes_;
  std::uint64_t used_bytes_ = 0;
  std::vector<ColdFileStatus> files_;
  std::vector<std::string> dropped_;
};

/// A new cold file while it is written: each byte of it finds room before it is written, so that
/// named files and this one together never exceed the share.
class ColdSink final : public ByteSink {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ColdSink>> create(const Directory& cold,
                                                                Sharing sharing, ColdRoom& room,
                                                                std::string keep = {});
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override;
  [[nodiscard]] const std::string& label() const noexcept override { return file_->label(); }
  /// Gives the file its name; synced.
  [[nodiscard]] Result<void> commit() { return file_->commit(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  ColdSink(std::unique_ptr<FileSink> file, std::string name, ColdRoom& room, std::string keep)
      : file_(std::move(file)), name_(std::move(name)), room_(room), keep_(std::move(keep)) {}

  std::unique_ptr<FileSink> file_;
  std::string name_;
  ColdRoom& room_;
  std::string keep_;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace esker::detail
