// Invariants
// 1. A key block is flat: it hangs under no block, has no children and no parts. A run of keys is
//    only a list. Keys and token paths never match each other.
#include <unordered_set>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "index/chain_hash.hpp"
#include "store/allocate.hpp"
#include "store/lookup.hpp"
#include "store/thaw.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

Result<void> check_keys(const Core& core, std::span<const std::string_view> keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i].empty() && keys[i].size() <= max_key_bytes) continue;
    return fail(Errc::invalid, "key " + std::to_string(i) + ": its length is " +
                                   std::to_string(keys[i].size()) + " bytes, allowed is 1…" +
                                   std::to_string(max_key_bytes) + "; pass a digest");
  }
  const std::uint64_t positions = std::uint64_t{keys.size()} * core.block_tokens();
  if (positions > INT32_MAX) {
    return fail(Errc::invalid, "keys: " + std::to_string(keys.size()) + " keys of " +
                                   std::to_string(core.block_tokens()) +
                                   " tokens are more than 2^31 positions");
  }
  return {};
}

Found find_key(Core& core, std::string_view key, std::string_view name_space,
               std::uint64_t root_hash) noexcept {
  if (key.empty() || key.size() > max_key_bytes) return {};
  const Position position{{}, root_hash, name_space, 0};
  return find_label(core, position, chain::key(root_hash, key), std::as_bytes(std::span(key)),
                    BlockKind::key);
}

Result<void> fill_keys(Core& core, ReservationBody& body, std::span<const std::string_view> keys) {
  body.keys.assign(keys.begin(), keys.end());
  body.prompt_tokens = static_cast<std::uint32_t>(keys.size()) * core.block_tokens();
  body.key_blocks.resize(keys.size());
  body.block_of.assign(keys.size(), -1);
  const std::uint64_t root_hash = chain::root(core.superblock.secret, body.name_space);
  std::vector<std::uint32_t> wanted;
  std::unordered_set<std::string_view> seen;
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    const Found found = find_key(core, keys[i], body.name_space, root_hash);
    if (found) {
      body.key_blocks[i] = found.pinned;
    } else if (seen.insert(keys[i]).second) {
      wanted.push_back(i);  // a key that stands twice is stored once, for its first place
    }
  }
  auto blocks = allocate(core, static_cast<std::uint32_t>(wanted.size()), UINT32_MAX);
  if (!blocks) return tl::make_unexpected(std::move(blocks).error());
  body.blocks = std::move(*blocks);
  if (body.blocks.size() < wanted.size()) core.count(Counter::short_reservations);
  for (std::size_t i = 0; i < body.blocks.size(); ++i) {
    body.block_of[wanted[i]] = static_cast<std::int32_t>(i);
  }
  if (!body.blocks.empty()) {
    body.missing_begin = wanted.front() * core.block_tokens();
    body.missing_end = (wanted[body.blocks.size() - 1] + 1) * core.block_tokens();
  }
  prepare_bookkeeping(core, body);
  return {};
}

}  // namespace

PrefixBody* lookup_keys(Core& core, std::span<const std::string_view> keys,
                        std::string_view name_space) noexcept {
  core.count(Counter::lookups);
  core.count(Counter::lookup_tokens, std::uint64_t{keys.size()} * core.block_tokens());
  PrefixBody* body = core.bodies.take();
  if (body == nullptr) return nullptr;
  core.follow_growth();
  if (core.options.thaw) static_cast<void>(thaw_missing_keys(core, keys, name_space));
  body->keys = true;
  body->block_tokens = core.block_tokens();
  if (name_space.size() <= max_namespace_bytes) {
    const std::uint64_t root_hash = chain::root(core.superblock.secret, name_space);
    for (const std::string_view key : keys) {
      const Found found = find_key(core, key, name_space, root_hash);
      if (!found || !append(core, *body, found, core.block_tokens())) break;
    }
  }
  if (body->tokens == 0) {
    core.count(Counter::misses);
    core.bodies.give(body);
    return nullptr;
  }
  touch_path(core, *body);
  core.count(Counter::hit_tokens, body->tokens);
  return body;
}

std::uint32_t match_keys(Core& core, std::span<const std::string_view> keys, std::span<bool> found,
                         std::string_view name_space) noexcept {
  core.follow_growth();
  const std::uint64_t root_hash = chain::root(core.superblock.secret, name_space);
  std::uint32_t leading = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Found block = find_key(core, keys[i], name_space, root_hash);
    if (block) core.pins.unpin(block.pinned.block);
    if (i < found.size()) found[i] = static_cast<bool>(block);
    if (block && leading == i) ++leading;
  }
  return leading;
}

Result<std::unique_ptr<ReservationBody>> reserve_keys(Core& core,
                                                      std::span<const std::string_view> keys,
                                                      std::string_view name_space) {
  if (auto ok = check_namespace(name_space); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = check_keys(core, keys); !ok) return tl::make_unexpected(ok.error());
  core.follow_growth();
  auto body = std::make_unique<ReservationBody>();
  body->name_space = name_space;
  auto filled = guarded([&] { return fill_keys(core, *body, keys); });
  if (!filled) {
    abandon(core, *body);
    return tl::make_unexpected(std::move(filled).error());
  }
  core.count(Counter::reserved_tokens, std::uint64_t{body->blocks.size()} * core.block_tokens());
  return body;
}

}  // namespace esker::detail
