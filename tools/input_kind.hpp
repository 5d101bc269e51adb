#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <string>

#include "llama/unique_fd.hpp"

namespace esker::cli {

/// What a file holds, by its first bytes.
enum class InputKind : std::uint8_t { snapshot, llama, unknown };

/// Opens a file to read it from its beginning; "-" is standard input. Refuses terminals and
/// directories.
[[nodiscard]] Result<llama::UniqueFd> open_input(const std::string& path);

/// Looks at the first bytes and leaves them where they are, also in a pipe or a socket. Waits until
/// the other side has sent them. What cannot be looked at is unknown.
[[nodiscard]] InputKind kind_of(int fd);

/// True for a regular file that begins as a snapshot does.
[[nodiscard]] bool is_snapshot_file(const std::string& path);

}  // namespace esker::cli
