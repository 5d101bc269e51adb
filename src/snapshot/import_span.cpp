// Invariants
// 1. A span is published only after all its rows were decoded, checked and written: a damaged file
//    leaves whole right blocks, or nothing.
// 2. Chains are published in the order of the file; one whose parents are not in the store is left
//    out, so no block is ever an orphan.
// 3. Every reservation is published or given back, every pin is in HeldBlocks or given back.
#include "snapshot/import_span.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "store/lookup.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

bool is_key(const ArchiveNode& node) { return node.kind == BlockKind::key; }

/// Chains as they are, but keys of one namespace that follow each other together.
std::vector<ArchiveChain> groups_of(const ArchiveSpan& span) {
  std::vector<ArchiveChain> groups;
  for (const ArchiveChain& chain : chains_of(span)) {
    const bool joins =
        !groups.empty() && is_key(span.nodes[chain.begin]) &&
        is_key(span.nodes[groups.back().begin]) &&
        span.nodes[chain.begin].name_space == span.nodes[groups.back().begin].name_space;
    if (joins) {
      groups.back().end = chain.end;
    } else {
      groups.push_back(chain);
    }
  }
  return groups;
}

std::uint32_t rows_of(const ArchiveSpan& span, std::uint32_t begin, std::uint32_t end) {
  std::uint32_t rows = 0;
  for (std::uint32_t i = begin; i < end; ++i) rows += span.nodes[i].tokens;
  return rows;
}

std::uint32_t end_token(const ArchiveNode& node) { return node.first_token + node.tokens; }

/// Reserving takes memory for the whole path of each chain: a small file must not ask for much.
Result<void> check_path_tokens(const ArchiveSpan& span, const std::string& label) {
  const std::vector<ArchiveChain> chains = chains_of(span);
  std::uint64_t tokens = 0;
  for (const ArchiveChain& chain : chains) tokens += end_token(span.nodes[chain.end - 1]);
  if (chains.size() == 1 || tokens <= snapshot_path_tokens) return {};
  return fail_field(Errc::corrupt, label, "tokens spelled by the chains of a span",
                    std::to_string(tokens), "at most " + std::to_string(snapshot_path_tokens));
}

}  // namespace

HeldBlocks::~HeldBlocks() {
  if (core_.forked()) return;
  for (const std::uint32_t block : blocks_) core_.pins.unpin(block);
}

void HeldBlocks::make_room(std::size_t more) {
  if (blocks_.capacity() - blocks_.size() >= more) return;
  blocks_.reserve(std::max(2 * blocks_.capacity(), blocks_.size() + more));
}

void HeldBlocks::hold(std::span<const PinnedBlock> pinned) {
  make_room(pinned.size());
  for (const PinnedBlock& one : pinned) {
    blocks_.push_back(one.block);
    core_.pins.pin(one.block);
  }
}

SpanStorer::Target::~Target() {
  if (body != nullptr && !core.forked()) abandon(core, *body);
}

void SpanStorer::count_unreachable(const ArchiveSpan& span, ArchiveChain chain) {
  report_.unreachable_tokens += rows_of(span, chain.begin, chain.end);
}

void SpanStorer::count_present(const ArchiveNode& node) {
  ++report_.present_blocks;
  report_.reachable_tokens += node.tokens;
}

Result<std::unique_ptr<SpanStorer::Target>> SpanStorer::reserve_chain(const ArchiveSpan& span,
                                                                      ArchiveChain chain,
                                                                      const NodeTable& nodes) {
  const ArchiveNode& first = span.nodes[chain.begin];
  const std::vector<std::int32_t> tokens = nodes.tokens_of(span.first_node + chain.end - 1);
  auto reserved = reserve(core_, tokens, *names_[first.name_space]);
  if (!reserved) return failure_of(reserved);
  auto target = std::make_unique<Target>(core_, std::move(*reserved));
  const ReservationBody& body = *target->body;
  // Below parents that are not there nothing can hang.
  const bool orphan = body.missing_begin < first.first_token;
  if (!orphan && body.missing_begin < body.missing_end) {
    target->begin_node = chain.begin;
    target->end_node = chain.end;
    target->rows = rows_of(span, chain.begin, chain.end);
    target->first_position = first.first_token;
    return target;
  }
  for (std::uint32_t i = chain.begin; i < chain.end; ++i) {
    if (orphan || end_token(span.nodes[i]) > body.missing_begin) {
      ++report_.refused_blocks;
    } else {
      count_present(span.nodes[i]);
    }
  }
  const std::size_t page = first.first_token / core_.block_tokens();
  if (body.path.blocks.size() > page) held_.hold(std::span(body.path.blocks).subspan(page));
  if (!orphan && body.shared > 0) held_.hold(std::span(&body.continued, 1));
  return nullptr;
}

Result<std::unique_ptr<SpanStorer::Target>> SpanStorer::reserve_keys_of(const ArchiveSpan& span,
                                                                        ArchiveChain keys) {
  std::vector<std::string_view> names;
  for (std::uint32_t i = keys.begin; i < keys.end; ++i) {
    const ArchiveNode& node = span.nodes[i];
    if (node.tokens != core_.block_tokens()) {
      return fail(Errc::incompatible,
                  "node " + std::to_string(span.first_node + i) + " is a key with " +
                      std::to_string(node.tokens) + " rows, and keys of this store have " +
                      std::to_string(core_.block_tokens()) +
                      "; import it into a store of its own with `esker import --create`");
    }
    names.emplace_back(reinterpret_cast<const char*>(node.label.data()), node.label.size());
  }
  auto reserved = reserve_keys(core_, names, *names_[span.nodes[keys.begin].name_space]);
  if (!reserved) return failure_of(reserved);
  auto target = std::make_unique<Target>(core_, std::move(*reserved));
  const ReservationBody& body = *target->body;
  target->begin_node = keys.begin;
  target->end_node = keys.end;
  target->rows = rows_of(span, keys.begin, keys.end);
  std::uint32_t missing = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (body.block_of[i] >= 0) {
      ++missing;
    } else if (body.key_blocks[i].generation != 0) {
      count_present(span.nodes[keys.begin + i]);
      held_.hold(std::span(&body.key_blocks[i], 1));
    } else {
      ++report_.refused_blocks;
    }
  }
  if (missing == 0) target.reset();
  return target;
}

Result<SpanStorer::Targets> SpanStorer::reserve_all(const ArchiveSpan& span,
                                                    const NodeTable& nodes) {
  Targets targets;
  std::uint32_t row = 0;
  for (const ArchiveChain& group : groups_of(span)) {
    const ArchiveNode& first = span.nodes[group.begin];
    const std::uint32_t begin_row = row;
    row += rows_of(span, group.begin, group.end);
    if (!names_[first.name_space]) {
      count_unreachable(span, group);
      continue;
    }
    report_.blocks += group.end - group.begin;
    auto target = is_key(first) ? reserve_keys_of(span, group) : reserve_chain(span, group, nodes);
    if (!target) return failure_of(target);
    if (*target == nullptr) continue;
    (*target)->first_row = begin_row;
    targets.push_back(std::move(*target));
  }
  return targets;
}

Result<void> SpanStorer::store(ArchiveReader& reader, const ArchiveSpan& span,
                               std::uint32_t threads) {
  for (const ArchiveNode& node : span.nodes) {
    // Else the rows of others would not be where they are looked for.
    if (!node.has_rows) {
      return fail_field(Errc::corrupt, reader.label(), "flags of a node", "0", "1: it has rows");
    }
  }
  if (auto ok = check_path_tokens(span, reader.label()); !ok) return ok;
  auto reserved = reserve_all(span, reader.nodes());
  if (!reserved) return failure_of(reserved);
  const Targets& targets = *reserved;
  if (targets.empty()) return {};
  const auto first_behind = [&](std::uint32_t row) {
    return std::partition_point(targets.begin(), targets.end(), [&](const auto& target) {
      return target->first_row + target->rows <= row;
    });
  };
  const RowFilter wanted = [&](std::uint32_t first_row, std::uint32_t rows) {
    for (auto at = first_behind(first_row); at != targets.end(); ++at) {
      const Target& target = **at;
      if (target.first_row >= first_row + rows) break;
      // Positions of the target's rows that are asked for.
      const std::uint32_t skipped = first_row > target.first_row ? first_row - target.first_row : 0;
      const std::uint32_t begin = target.first_position + skipped;
      const std::uint32_t taken = std::min(target.rows, first_row + rows - target.first_row);
      const std::uint32_t end = target.first_position + taken;
      if (begin < target.body->missing_end && end > target.body->missing_begin) return true;
    }
    return false;
  };
  const auto& planes = core_.segments.layout().planes();
  const RowTaker take = [&](std::size_t plane, std::uint32_t first_row,
                            std::span<const std::byte> bytes) -> Result<void> {
    const std::uint32_t row_bytes = planes[plane].row_bytes;
    const auto end_row = first_row + static_cast<std::uint32_t>(bytes.size() / row_bytes);
    for (auto at = first_behind(first_row); at != targets.end(); ++at) {
      const Target& target = **at;
      if (target.first_row >= end_row) break;
      const std::uint32_t begin = std::max(first_row, target.first_row);
      const std::uint32_t end = std::min(end_row, target.first_row + target.rows);
      const auto part = bytes.subspan(std::size_t{begin - first_row} * row_bytes,
                                      std::size_t{end - begin} * row_bytes);
      const std::uint32_t position = target.first_position + (begin - target.first_row);
      if (auto done = write_rows(core_, *target.body, plane, position, part); !done) return done;
    }
    return {};
  };
  if (auto done = reader.rows(wanted, take, threads); !done) return done;
  for (const auto& target : targets) {
    if (auto done = publish_target(span, *target); !done) return done;
  }
  return {};
}

Result<void> SpanStorer::publish_target(const ArchiveSpan& span, Target& target) {
  ReservationBody& body = *target.body;
  const std::uint32_t missing_begin = body.missing_begin;
  const std::vector<std::int32_t> block_of = body.block_of;
  const bool by_key = !body.keys.empty();
  held_.make_room(body.path.blocks.size() + body.blocks.size() + body.keys.size() + 1);
  auto published = publish(core_, body);
  if (!published) return failure_of(published);
  PrefixBody* path = *published;
  const std::size_t page = by_key ? 0 : target.first_position / core_.block_tokens();
  if (path->blocks.size() > page) held_.hold(std::span(path->blocks).subspan(page));
  const std::uint32_t stored_end = path->tokens;
  unpin_all(core_, *path);
  core_.bodies.give(path);
  if (!by_key) {
    count_published(span, target, missing_begin, stored_end);
    return {};
  }
  for (std::uint32_t i = target.begin_node; i < target.end_node; ++i) {
    if (block_of[i - target.begin_node] < 0) continue;
    ++report_.stored_blocks;
    report_.reachable_tokens += span.nodes[i].tokens;
    report_.raw_bytes += span.nodes[i].tokens * core_.superblock.geometry.token_bytes();
  }
  return {};
}

void SpanStorer::count_published(const ArchiveSpan& span, const Target& target,
                                 std::uint32_t missing_begin, std::uint32_t stored_end) {
  for (std::uint32_t i = target.begin_node; i < target.end_node; ++i) {
    const ArchiveNode& node = span.nodes[i];
    if (end_token(node) <= missing_begin) {
      count_present(node);
    } else if (end_token(node) <= stored_end) {
      ++report_.stored_blocks;
      report_.reachable_tokens += node.tokens;
      report_.raw_bytes += node.tokens * core_.superblock.geometry.token_bytes();
    } else {
      ++report_.refused_blocks;
    }
  }
}

}  // namespace esker::detail
