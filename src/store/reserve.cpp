// Invariants
// 1. A reservation pins its whole path, and the block that it continues, until it is published or
//    dropped; reserved blocks are pinned by their owner.
// 2. `missing` begins exactly where a lookup of the same tokens ends: the rows that a partly shared
//    block has in common are copied, verified, from that block.
#include <sys/stat.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/allocate.hpp"
#include "store/lookup.hpp"
#include "store/sequence.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

/// Takes blocks for the pages behind the stored path, as many as there is room for.
Result<void> take_blocks(Core& core, ReservationBody& body) {
  const std::uint32_t block_tokens = core.block_tokens();
  const auto whole = static_cast<std::uint32_t>(body.path.blocks.size());
  const std::uint32_t stored = whole * block_tokens;
  body.missing_begin = stored + std::max(body.shared, body.carried_rows);
  body.missing_end = body.missing_begin;
  body.block_of.assign(whole, -1);
  if (body.carried_rows > 0) {
    body.blocks.push_back(body.sequence->tail);
    if (auto ours = check_descriptors(core, body.blocks); !ours) return ours;
  } else if (body.missing_begin == body.prompt_tokens) {
    return {};
  }
  const auto wanted =
      static_cast<std::uint32_t>(div_ceil(body.prompt_tokens - stored, block_tokens));
  const std::uint32_t carried = body.carried_rows > 0 ? 1 : 0;
  std::uint32_t after = whole == 0 ? UINT32_MAX : body.path.blocks.back().block;
  if (carried > 0) after = body.blocks.back().block;
  // Nothing may throw between taking blocks and noting them.
  body.blocks.reserve(std::min(wanted, core.superblock.max_blocks() + 1));
  auto blocks = allocate(core, wanted - carried, after);
  if (!blocks) return tl::make_unexpected(std::move(blocks).error());
  body.blocks.insert(body.blocks.end(), blocks->begin(), blocks->end());
  const auto got = static_cast<std::uint32_t>(body.blocks.size());
  if (got < wanted) core.count(Counter::short_reservations);
  if (got == 0) return {};
  for (std::uint32_t i = 0; i < got; ++i) body.block_of.push_back(static_cast<std::int32_t>(i));
  body.missing_end = std::min(body.prompt_tokens, (whole + got) * block_tokens);
  return {};
}

void forget_continued(Core& core, ReservationBody& body) {
  core.pins.unpin(body.continued.block);
  body.missing_begin -= body.shared;
  body.shared = 0;
  body.supersedes = false;
}

/// Rows that our first block shares with the one it continues.
Result<void> take_shared_rows(Core& core, ReservationBody& body) {
  if (body.shared == 0 || body.carried_rows > 0 || body.blocks.empty()) return {};
  const auto page = static_cast<std::uint32_t>(body.path.blocks.size());
  auto copied = copy_block_rows(core, body, body.continued, body.shared, page);
  if (copied) return {};
  if (copied.error().code != Errc::corrupt) return copied;
  forget_continued(core, body);
  return {};
}

Result<void> fill(Core& core, ReservationBody& body, Tokens tokens) {
  Walk walked;
  if (!walk(core, tokens, body.name_space, body.path, walked)) {
    return fail(Errc::no_memory, "reserve: out of memory");
  }
  if (walked.partial.found) {
    body.continued = walked.partial.found.pinned;
    body.shared = walked.partial.common;
    // Less than a block is shared, so what is all shared is a proper prefix of ours.
    body.supersedes = walked.partial.found.header->tokens == body.shared;
  }
  if (body.sequence) continue_sequence(core, body, walked.position);
  if (auto done = take_blocks(core, body); !done) return done;
  prepare_bookkeeping(core, body);
  if (body.carried_rows > 0) mark_carried(core, body);
  if (auto done = take_shared_rows(core, body); !done || !body.sequence) return done;
  return take_held_rows(core, body);
}

Result<std::unique_ptr<ReservationBody>> make_body(Core& core, Tokens tokens,
                                                   std::string_view name_space,
                                                   std::shared_ptr<Sequence> sequence) {
  if (auto ok = check_namespace(name_space); !ok) return tl::make_unexpected(ok.error());
  if (tokens.size() > INT32_MAX) {
    return fail(Errc::invalid, "tokens: their number is " + std::to_string(tokens.size()) +
                                   ", allowed is at most 2^31 - 1");
  }
  auto body = std::make_unique<ReservationBody>();
  body->name_space = name_space;
  body->tokens.assign(tokens.begin(), tokens.end());
  body->prompt_tokens = static_cast<std::uint32_t>(tokens.size());
  body->sequence = std::move(sequence);
  if (body->sequence) body->sequence->lent = true;
  // The label spans of the walk come from the body's copy, which outlives the call.
  auto filled = guarded([&] { return fill(core, *body, body->tokens); });
  if (!filled) {
    abandon(core, *body);
    return tl::make_unexpected(std::move(filled).error());
  }
  core.count(Counter::reserved_tokens, body->missing_end - body->missing_begin);
  return body;
}

}  // namespace

Result<std::unique_ptr<ReservationBody>> reserve(Core& core, Tokens tokens,
                                                 std::string_view name_space) {
  return make_body(core, tokens, name_space, nullptr);
}

Result<std::unique_ptr<ReservationBody>> reserve_for(std::shared_ptr<Sequence> sequence,
                                                     Tokens tokens) {
  Core& core = *sequence->core;
  const std::string_view name_space = sequence->name_space;
  return make_body(core, tokens, name_space, std::move(sequence));
}

}  // namespace esker::detail
