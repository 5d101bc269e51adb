#pragma once

#include <esker/kv_cache.hpp>
#include <esker/result.hpp>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "cache/core.hpp"

namespace esker::detail {

/// Runs a member of KvCache behind the checks that all of them share.
template <class F>
auto with_cache(const std::unique_ptr<CacheCore>& core, bool for_writing, F&& run) noexcept
    -> decltype(run(*core)) {
  return guarded([&]() -> decltype(run(*core)) {
    if (core == nullptr) return fail(Errc::invalid, "this KvCache was moved from");
    if (auto ok = core->usable(for_writing); !ok) {
      return tl::make_unexpected(std::move(ok).error());
    }
    return run(*core);
  });
}

[[nodiscard]] inline std::string number(std::uint64_t value) { return std::to_string(value); }

/// "" when rows and dtype are the same and no named model is another one; else what differs, ours
/// first.
[[nodiscard]] inline std::string identity_difference(const CacheCore& core,
                                                     const Geometry& geometry,
                                                     const ModelId& model) {
  if (std::string rows = core.geometry().row_difference(geometry); !rows.empty()) return rows;
  if (core.model().unnamed() || model.unnamed()) return {};
  const std::string named = core.model().difference(model);
  return named.empty() ? named : "model, " + named;
}

}  // namespace esker::detail
