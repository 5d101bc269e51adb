// Invariants
// 1. Every slot points to something; sequences that had rows when the view was made have the rows
//    that `geometry_` says.
// 2. Nothing about a sequence is remembered beyond that: lengths and memory are asked at each call,
//    and what has changed its rows since (another Prefix in the same place) is refused.
#include <esker/batch_view.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/guarded.hpp"

namespace esker {

namespace {

using detail::fail;

template <class... Visits>
struct Overloaded : Visits... {
  using Visits::operator()...;
};
template <class... Visits>
Overloaded(Visits...) -> Overloaded<Visits...>;

bool is_null(const BatchSlot& slot) noexcept {
  return std::visit([](const auto* sequence) { return sequence == nullptr; }, slot);
}

/// An empty Prefix has no geometry, and needs none.
bool is_miss(const BatchSlot& slot) noexcept {
  const auto* prefix = std::get_if<const Prefix*>(&slot);
  return prefix != nullptr && (*prefix)->empty();
}

const Geometry& geometry_of(const BatchSlot& slot) noexcept {
  return std::visit([](const auto* sequence) -> const Geometry& { return sequence->geometry(); },
                    slot);
}

std::uint32_t rows_of(const BatchSlot& slot) noexcept {
  return std::visit(Overloaded{[](const KvCache* cache) { return cache->length(); },
                               [](const Session* session) { return session->reusable(); },
                               [](const Prefix* prefix) { return prefix->tokens(); }},
                    slot);
}

const ModelId& model_of(const BatchSlot& slot) noexcept {
  return std::visit([](const auto* sequence) -> const ModelId& { return sequence->model(); }, slot);
}

/// How the models of two sequences differ, or "". Unnamed ones fit all.
std::string model_difference(const BatchSlot& a, const BatchSlot& b) {
  std::string text;
  if (model_of(a).unnamed() || model_of(b).unnamed()) return text;
  const auto keys = model_of(a).differing_keys(model_of(b));
  for (const std::string& key : keys) text += (text.empty() ? "model " : ", model ") + key;
  return text;
}

std::string slot_text(std::size_t slot) { return "BatchView: slot " + std::to_string(slot); }

}  // namespace

Result<BatchView> BatchView::make(std::span<const BatchSlot> slots) {
  return detail::guarded([&]() -> Result<BatchView> {
    BatchView view;
    const BatchSlot* first = nullptr;  // gives the rows
    const BatchSlot* named = nullptr;  // gives the model
    const auto text = [&](const BatchSlot& slot) {
      return slot_text(static_cast<std::size_t>(&slot - slots.data()));
    };
    for (const BatchSlot& slot : slots) {
      if (is_null(slot)) {
        return fail(Errc::invalid, text(slot) + " of " + std::to_string(slots.size()) +
                                       " is null, expected a sequence");
      }
      if (is_miss(slot)) continue;
      if (first == nullptr) first = &slot;
      if (named == nullptr && !model_of(slot).unnamed()) named = &slot;
      const BatchSlot* other = first;
      std::string difference = geometry_of(*first).row_difference(geometry_of(slot));
      if (difference.empty() && named != nullptr) {
        other = named;
        difference = model_difference(*named, slot);
      }
      if (difference.empty()) continue;
      return fail(Errc::incompatible, text(*other) + " and slot " +
                                          std::to_string(&slot - slots.data()) + " differ in " +
                                          difference + "; put them into batches of their own");
    }
    if (first != nullptr) view.geometry_ = geometry_of(*first);
    view.slots_.assign(slots.begin(), slots.end());
    return view;
  });
}

std::uint32_t BatchView::position(std::size_t slot) const noexcept {
  return slot < slots_.size() ? rows_of(slots_[slot]) : 0;
}

Result<Runs> BatchView::keys(std::size_t slot, std::uint32_t layer) const noexcept {
  return rows(slot, layer, Plane::key);
}

Result<Runs> BatchView::values(std::size_t slot, std::uint32_t layer) const noexcept {
  return rows(slot, layer, Plane::value);
}

Result<Runs> BatchView::rows(std::size_t slot, std::uint32_t layer, Plane plane) const noexcept {
  return detail::guarded([&]() -> Result<Runs> {
    if (slot >= slots_.size()) {
      return fail(Errc::invalid, slot_text(slot) + " does not exist; the batch has " +
                                     std::to_string(slots_.size()) + " slots");
    }
    const std::uint32_t row_bytes = geometry_.row_bytes(layer, plane);
    if (!geometry_.layers.empty() && row_bytes == 0) {
      return fail(Errc::invalid, slot_text(slot) + ", layer " + std::to_string(layer) + " " +
                                     std::string(name(plane)) +
                                     ": no such rows; the geometry has " +
                                     std::to_string(geometry_.layers.size()) + " layers");
    }
    const BatchSlot& sequence = slots_[slot];
    if (is_miss(sequence)) return Runs{};
    const std::uint32_t now = geometry_of(sequence).row_bytes(layer, plane);
    if (!geometry_.layers.empty() && now != row_bytes) {
      return fail(Errc::incompatible,
                  slot_text(slot) + ": a row of layer " + std::to_string(layer) + " " +
                      std::string(name(plane)) + " has " + std::to_string(now) + " bytes, " +
                      std::to_string(row_bytes) +
                      " when the view was made; make another one for the sequence that is there "
                      "now");
    }
    return std::visit([&](const auto* there) { return there->view(layer, plane); }, sequence);
  });
}

}  // namespace esker
