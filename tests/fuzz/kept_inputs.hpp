#pragma once

#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"

/// Inputs that are kept in the repository. Files of stores are mostly zeros, so a kept input is a
/// list of pieces: u32 zeros, u32 bytes, and then these bytes.
namespace esker::fuzz {

[[nodiscard]] Bytes pack(const Bytes& input);
/// Throws where the pieces do not add up, or the input would be larger than any that was kept.
[[nodiscard]] Bytes unpack(const Bytes& packed);

/// The files of a directory, in an order that does not depend on the file system; none for "".
[[nodiscard]] std::vector<std::string> files_in(const std::string& directory);

}  // namespace esker::fuzz
