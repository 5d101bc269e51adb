#pragma once

#include <cstdint>
#include <esker/stats.hpp>
#include <string>

#include "output.hpp"
#include "store_operand.hpp"

namespace esker::cli {

// What several commands show of a store, so that all of them show it alike.

/// The model as one line: its name, else its entries, else "unnamed".
[[nodiscard]] std::string model_line(const ModelId& model);
/// "30 layers x (K 384 B + V 384 B), f16, 32 tokens/block (720.0 KiB)".
[[nodiscard]] std::string geometry_line(const Geometry& geometry);

/// What something is made for: all of its model id, and its geometry.
void show_shape(Output& out, const ModelId& model, const Geometry& geometry);

/// {"unnamed": …, "entries": {…}}.
[[nodiscard]] Value model_value(const ModelId& model);
[[nodiscard]] Value geometry_value(const Geometry& geometry);
/// When a file of the store was last touched; 0 where that is not known.
[[nodiscard]] std::uint64_t last_used(const Info& info);
/// RFC 3339, or null for 0: "never".
[[nodiscard]] Value time_value(std::uint64_t unix_ns);

/// A namespace is bytes: text where it is text, hex where not.
[[nodiscard]] std::string namespace_text(const std::string& name_space);

/// Says what rm, evict and trim freed: space for reuse in the store, and space returned to the
/// disk. `verb` is the past tense: "removed"; `what` is "2 paths", or "".
void show_freed(Output& out, std::string_view verb, std::string_view what, const Freed& freed,
                bool dry_run);
[[nodiscard]] Object freed_value(const StorePlace& place, const Freed& freed, bool dry_run);
/// Both: in words, and as the answer for programs.
void show_freed(Output& out, const StorePlace& place, std::string_view verb, const Freed& freed,
                bool dry_run);

}  // namespace esker::cli
