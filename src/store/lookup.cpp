// Invariants
// 1. A body that is returned holds one pin per block; a miss holds none.
// 2. Warm, a lookup allocates nothing and makes no system call, unless another handle has added a
//    segment since.
#include "store/lookup.hpp"

#include "base/error.hpp"
#include "store/payload.hpp"
#include "store/thaw.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

/// Verify::at_lookup: cuts the path at the first block that does not check.
void verify_now(Core& core, PrefixBody& body) {
  const std::size_t planes = core.segments.layout().planes().size();
  for (std::size_t index = 0; index < body.blocks.size(); ++index) {
    bool good = true;
    for (std::size_t plane = 0; plane < planes && good; ++plane) {
      good = plane_checked(core, body, index, plane) ||
             check_plane(core, body, index, plane).has_value();
    }
    if (good) continue;
    for (std::size_t i = index; i < body.blocks.size(); ++i) core.pins.unpin(body.blocks[i].block);
    body.blocks.resize(index);
    body.tokens = static_cast<std::uint32_t>(index) * body.block_tokens;
    return;
  }
}

/// Options::thaw: brings back what is missing and cold, and pins it too.
bool pin_thawed(Core& core, Tokens tokens, std::string_view name_space, PrefixBody& body) noexcept {
  if (!thaw_missing(core, tokens, name_space, body.tokens)) return true;
  unpin_all(core, body);
  return pin_stored(core, tokens, name_space, body);
}

PrefixBody* miss(Core& core, PrefixBody* body, bool degraded) noexcept {
  core.count(Counter::misses);
  if (degraded) core.count(Counter::degraded_misses);
  if (body != nullptr) {
    unpin_all(core, *body);
    core.bodies.give(body);
  }
  return nullptr;
}

}  // namespace

Result<void> check_namespace(std::string_view name_space) {
  if (name_space.size() <= max_namespace_bytes) return {};
  return fail(Errc::invalid, "namespace: its length is " + std::to_string(name_space.size()) +
                                 " bytes, allowed is 0…" + std::to_string(max_namespace_bytes) +
                                 "; pass a digest");
}

PrefixBody* lookup(Core& core, Tokens tokens, std::string_view name_space) noexcept {
  core.count(Counter::lookups);
  core.count(Counter::lookup_tokens, tokens.size());
  PrefixBody* body = core.bodies.take();
  if (body == nullptr || name_space.size() > max_namespace_bytes || tokens.size() > INT32_MAX ||
      !pin_stored(core, tokens, name_space, *body) ||
      (core.options.thaw && !pin_thawed(core, tokens, name_space, *body))) {
    return miss(core, body, true);
  }
  try {
    if (core.options.verify == Verify::at_lookup) verify_now(core, *body);
  } catch (const std::bad_alloc&) {
    return miss(core, body, true);
  }
  if (body->tokens == 0) return miss(core, body, false);
  touch_path(core, *body);
  core.count(Counter::hit_tokens, body->tokens);
  return body;
}

std::uint32_t match(Core& core, Tokens tokens, std::string_view name_space) noexcept {
  PrefixBody* body = core.bodies.take();
  if (body == nullptr) return 0;
  std::uint32_t found = 0;
  if (name_space.size() <= max_namespace_bytes && tokens.size() <= INT32_MAX &&
      pin_stored(core, tokens, name_space, *body)) {
    found = body->tokens;
  }
  unpin_all(core, *body);
  core.bodies.give(body);
  return found;
}

}  // namespace esker::detail
