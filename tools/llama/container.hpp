#pragma once

#include <cstdint>
#include <string>

#include "llama/field_reader.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

/// What the first two words of a file tell.
struct FileHead {
  Container container = Container::sequence;
  std::uint32_t version = 0;  ///< as sequence files count
};

/// Reads magic and version. What is wrong stands in the reader.
[[nodiscard]] FileHead read_head(FieldReader& in);

/// The word for the version in a file of this container.
[[nodiscard]] std::uint32_t written_version(Container container, std::uint32_t version) noexcept;

/// Reads the name of the model's architecture, which stands behind the tokens of a session file.
[[nodiscard]] std::string read_architecture(FieldReader& in);

/// True for 1…64 letters, digits, dashes, dots and underscores: what llama.cpp calls models by.
[[nodiscard]] bool is_architecture(std::string_view text) noexcept;

}  // namespace esker::cli::llama
