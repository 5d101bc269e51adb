#pragma once

#include <cstdint>
#include <esker/snapshot.hpp>
#include <string>

#include "llama/unique_fd.hpp"

namespace esker::cli {

/// A snapshot, with the descriptor that it is read from.
struct OpenSnapshot {
  llama::UniqueFd input;
  Snapshot snapshot;
};

/// True when an operand means a snapshot: standard input, or a file that is one or is called so.
/// Where a store in the home has that name, it means the store.
[[nodiscard]] bool means_snapshot(const std::string& operand);

/// "-" is standard input: a stream, unless a file was put there.
[[nodiscard]] Result<OpenSnapshot> open_snapshot(const std::string& operand);
/// What was opened already.
[[nodiscard]] Result<OpenSnapshot> adopt_snapshot(llama::UniqueFd input,
                                                  const std::string& operand);

/// What a file is called in messages.
[[nodiscard]] std::string input_name(const std::string& operand);

/// As many as there are cores for this process, unless a number was `given`.
[[nodiscard]] std::uint32_t thread_count(std::uint32_t given) noexcept;

}  // namespace esker::cli
