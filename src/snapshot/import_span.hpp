#pragma once

#include <cstdint>
#include <esker/snapshot_info.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/node_table.hpp"
#include "archive/reader.hpp"
#include "store/reservation_body.hpp"

namespace esker::detail {

/// Pins of what an import has stored or found, until it ends: so it evicts what others have not
/// used, and never what it has just brought.
class HeldBlocks {
 public:
  explicit HeldBlocks(Core& core) : core_(core) {}
  HeldBlocks(const HeldBlocks&) = delete;
  HeldBlocks& operator=(const HeldBlocks&) = delete;
  ~HeldBlocks();

  /// `hold` of as many more will not need memory.
  void make_room(std::size_t more);
  /// Pins blocks that the caller pins already.
  void hold(std::span<const PinnedBlock> pinned);

 private:
  Core& core_;
  std::vector<std::uint32_t> blocks_;
};

/// Stores the spans of a file, one after the other.
class SpanStorer {
 public:
  using Names = std::vector<std::optional<std::string>>;

  /// `names` are those of the file's namespaces, where they are known.
  SpanStorer(Core& core, Names names, ImportReport& report)
      : core_(core), names_(std::move(names)), report_(report), held_(core) {}

  /// Stores what is missing of the span that `reader` has just returned. Nothing of it becomes
  /// visible unless all its rows check.
  [[nodiscard]] Result<void> store(ArchiveReader& reader, const ArchiveSpan& span,
                                   std::uint32_t threads);

 private:
  /// Room for consecutive nodes of the span: a chain, or keys. It is given back unless published.
  struct Target {
    Target(Core& owner, std::unique_ptr<ReservationBody> reserved)
        : core(owner), body(std::move(reserved)) {}
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    ~Target();

    Core& core;
    std::unique_ptr<ReservationBody> body;
    std::uint32_t begin_node = 0;
    std::uint32_t end_node = 0;
    std::uint32_t first_row = 0;  ///< within the span
    std::uint32_t rows = 0;
    std::uint32_t first_position = 0;
  };
  using Targets = std::vector<std::unique_ptr<Target>>;

  [[nodiscard]] Result<Targets> reserve_all(const ArchiveSpan& span, const NodeTable& nodes);
  /// Nullptr when nothing of it has to be written.
  [[nodiscard]] Result<std::unique_ptr<Target>> reserve_chain(const ArchiveSpan& span,
                                                              ArchiveChain chain,
                                                              const NodeTable& nodes);
  [[nodiscard]] Result<std::unique_ptr<Target>> reserve_keys_of(const ArchiveSpan& span,
                                                                ArchiveChain keys);
  [[nodiscard]] Result<void> publish_target(const ArchiveSpan& span, Target& target);
  void count_published(const ArchiveSpan& span, const Target& target, std::uint32_t missing_begin,
                       std::uint32_t stored_end);
  void count_unreachable(const ArchiveSpan& span, ArchiveChain chain);
  void count_present(const ArchiveNode& node);

  Core& core_;
  Names names_;
  ImportReport& report_;
  HeldBlocks held_;
};

}  // namespace esker::detail
