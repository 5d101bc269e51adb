#pragma once

#include <cstdint>

#include "llama/cells.hpp"
#include "llama/field_reader.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

/// True when nothing but empty streams, and then the end of the file or a section with a magic,
/// follow at `offset`.
[[nodiscard]] bool cache_ends_at(const FieldReader& in, std::uint64_t offset,
                                 std::uint32_t streams_after);

/// Judges what stands behind the cache: nothing, a section known to be harmless, or a reason to
/// refuse the file, which then stands in the reader. llama.cpp takes a session only without a tail.
void check_tail(FieldReader& in, Container container);

/// A file that did not parse may be a valid one of a kind that cannot be shared in blocks. Then the
/// reader's error is replaced by one that names the kind.
void explain_failure(FieldReader& in, std::uint64_t memory_offset, const Cells& cells,
                     std::uint32_t version);

/// The same for a failure behind the last K plane: there a second cache may begin.
void explain_second_cache(FieldReader& in, std::uint64_t offset);

}  // namespace esker::cli::llama
