#pragma once

#include <esker/home.hpp>
#include <esker/result.hpp>
#include <string>

#include "region/directory.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

namespace home_names {
inline constexpr const char* settings = "esker.conf";
inline constexpr const char* lock = ".esker-budget.lock";
}  // namespace home_names

/// What binds the stores of this directory. A file of a stranger, one that others may write to and
/// one that may not be read say nothing. `owner` is a user that is trusted besides ourselves and
/// root: who owns the store.
[[nodiscard]] Result<HomeSettings> read_settings(const Directory& home, uid_t owner);

/// The lock of a home, held: over the budget, and over its settings. Waits at most `deadline_ms`;
/// `Errc::busy` then.
[[nodiscard]] Result<LockFile> lock_home(const Directory& home, std::uint32_t deadline_ms);

}  // namespace esker::detail
