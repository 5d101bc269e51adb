#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <optional>
#include <string>
#include <vector>

namespace esker {

// A home is a directory whose subdirectories are stores: that of the `esker` command, or any other
// that a program keeps its stores in. What holds for all of them stands in its file `esker.conf`,
// which is read when a store of the home is about to grow. A file that others may write to, or that
// belongs to a stranger, is no such file.

/// What growth leaves free on the file system, and `esker maintain` gives back.
/// Threads:  a plain value.
/// Lifetime: none.
/// Errors:   none.
/// Cost:     none.
struct KeepFree {
  enum class Kind : std::uint8_t {
    automatic,  ///< a tenth of the file system, at least 10 GiB, at most half of it
    bytes,
    percent,  ///< of the file system, 0…100
  };
  Kind kind = Kind::automatic;
  std::uint64_t value = 0;

  /// The bytes on a file system of this size.
  [[nodiscard]] std::uint64_t of(std::uint64_t file_system_bytes) const noexcept;
  friend bool operator==(const KeepFree&, const KeepFree&) = default;
};

/// What `esker.conf` says. Missing keys, or no file, are the defaults.
/// Threads:  a plain value.
/// Lifetime: none.
/// Errors:   none.
/// Cost:     none.
struct HomeSettings {
  /// Most that all stores of the home may take on disk together; none: each has its capacity only.
  std::optional<std::uint64_t> budget_bytes;
  KeepFree keep_free;
};

/// A store of a home, as the file system tells it.
struct HomeStore {
  std::string name;
  std::uint64_t disk_bytes = 0;           ///< allocated by all of its files
  std::uint64_t last_opened_unix_ns = 0;  ///< see Options::counts_as_use
};

/// What became of the budget.
struct BudgetReport {
  std::optional<std::uint64_t> budget_bytes;
  std::uint64_t disk_bytes = 0;    ///< of all stores that are left, or would be
  std::vector<HomeStore> removed;  ///< or would be
};

/// Reads the settings of a home. `Errc::corrupt` names the line that makes no sense.
[[nodiscard]] Result<HomeSettings> read_home(const std::string& home);
/// Changes them: makes the home if it has to, keeps lines that it does not know, and replaces the
/// file whole, with mode 0600.
[[nodiscard]] Result<void> write_home(const std::string& home, const HomeSettings& settings);

/// The stores of a home, those first that nobody has opened for longest. A home that does not exist
/// holds none.
[[nodiscard]] Result<std::vector<HomeStore>> stores_of_home(const std::string& home);

/// Removes stores that nobody has opened for 30 days, the oldest first, until the others are within
/// the budget: what a store does by itself before it grows. Never one that is in use, and none that
/// holds a kept session. What is left may still be more than the budget.
[[nodiscard]] Result<BudgetReport> enforce_budget(const std::string& home, bool dry_run = false);

/// Finishes what a killed creation or destruction of a store has left in a home, and returns the
/// names of the directories.
[[nodiscard]] Result<std::vector<std::string>> sweep_home(const std::string& home,
                                                          bool dry_run = false);

}  // namespace esker
