#pragma once

#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <string>
#include <string_view>

#include "llama/layout.hpp"

namespace esker::cli::llama {

/// llama.cpp rotates quantised K and V by a Hadamard matrix. Rotated and unrotated rows look alike,
/// so the size of the matrix is part of a store's model id. A missing key means 0: not rotated.
inline constexpr std::string_view key_rotation_key = "kv_rot_k";
inline constexpr std::string_view value_rotation_key = "kv_rot_v";

/// Adds the rotation of a file to the identity of a store that is made for it.
[[nodiscard]] Result<void> add_rotation(const SeqLayout& layout, ModelId& model);

/// One line that says why rows of this layout do not belong into a store with this id, or "".
[[nodiscard]] std::string rotation_difference(const SeqLayout& layout, const ModelId& model);

/// `model` without the rotation keys: what a user has to know about it.
[[nodiscard]] ModelId without_rotation(const ModelId& model);

}  // namespace esker::cli::llama
