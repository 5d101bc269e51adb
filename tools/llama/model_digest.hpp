#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <string>

namespace esker::cli::llama {

/// What a model's file says about identity: all of its bytes.
struct ModelDigest {
  std::string text;  ///< "xxh3-128:" and 32 hex digits
  std::uint64_t bytes = 0;
};

/// Reads a GGUF file whole; of a model in parts ("…-00001-of-00003.gguf") all of them, in order.
/// Another kind of file is refused.
[[nodiscard]] Result<ModelDigest> model_digest(const std::string& path,
                                               const Progress& progress = {});

}  // namespace esker::cli::llama
