#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <string>
#include <string_view>

#include "args.hpp"
#include "llama/layout.hpp"

namespace esker::cli {

/// What `esker convert` reads and writes.
enum class FileKind : std::uint8_t { llama, llama_session, snapshot, store, safetensors };

/// As `--from` and `--to` call it.
[[nodiscard]] std::string_view name(FileKind kind) noexcept;

/// True for sequence and session files.
[[nodiscard]] constexpr bool is_llama(FileKind kind) noexcept {
  return kind == FileKind::llama || kind == FileKind::llama_session;
}

/// What two kinds, or an option and a kind, cannot do together; "" when all is well. Nothing that
/// was asked for is left out silently.
[[nodiscard]] std::string convert_misuse(const ConvertArgs& args, FileKind from, FileKind to);

/// The kind of IN, by its content. `--from` must agree with it.
[[nodiscard]] Result<FileKind> input_kind(const ConvertArgs& args);

/// The kind of OUT: `--to`, a store that is there, the end of its name, or that of `--like`.
[[nodiscard]] Result<FileKind> output_kind(const ConvertArgs& args);

}  // namespace esker::cli
