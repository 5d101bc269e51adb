#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <string>
#include <string_view>

#include "archive/nodes.hpp"
#include "base/error.hpp"
#include "format/snapshot_file.hpp"

namespace esker::detail {

/// Says what is wrong with a node.
struct NodeFault {
  Errc code;
  std::string_view where;
  std::uint32_t number;

  [[nodiscard]] Failure operator()(std::string_view field, std::string_view found,
                                   std::string_view expected) const {
    const std::string node = std::string(where) + ": node " + std::to_string(number);
    return fail_field(code, node, field, found, expected);
  }
};

/// Parents come before their children, and within a span right before.
[[nodiscard]] Result<void> check_parent_number(const ArchiveNode& node, std::uint32_t number,
                                               std::uint32_t span_first, const NodeFault& fault);

/// All that can be said of a span's nodes without those before it.
[[nodiscard]] Result<void> check_span(const ArchiveSpan& span, const SnapshotHead& head, Errc code,
                                      std::string_view where);

}  // namespace esker::detail
