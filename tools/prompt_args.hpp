#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace esker::cli {

/// A prompt: `--ids FILE|-`, `--first N`, `--namespace TEXT`.
struct PromptArgs {
  std::string ids_file;                ///< "-" is stdin, "" not given
  std::optional<std::uint32_t> first;  ///< only the first N tokens
  std::string name_space;              ///< bytes, already decoded
};

}  // namespace esker::cli
