#pragma once

#include <esker/geometry.hpp>
#include <span>
#include <string_view>

#include "store/core.hpp"
#include "store/reservation_body.hpp"

namespace esker::detail {

/// A pinned path, or nullptr for a miss. `Store::lookup` without the handle.
[[nodiscard]] PrefixBody* lookup(Core& core, Tokens tokens, std::string_view name_space) noexcept;

/// How many leading tokens are stored; holds nothing afterwards.
[[nodiscard]] std::uint32_t match(Core& core, Tokens tokens, std::string_view name_space) noexcept;

[[nodiscard]] PrefixBody* lookup_keys(Core& core, std::span<const std::string_view> keys,
                                      std::string_view name_space) noexcept;
std::uint32_t match_keys(Core& core, std::span<const std::string_view> keys, std::span<bool> found,
                         std::string_view name_space) noexcept;

/// Room for what is missing. The body is complete: nothing is half reserved on an error.
[[nodiscard]] Result<std::unique_ptr<ReservationBody>> reserve(Core& core, Tokens tokens,
                                                               std::string_view name_space);
/// The same for a session: `tokens` begin with those of its sequence.
[[nodiscard]] Result<std::unique_ptr<ReservationBody>> reserve_for(
    std::shared_ptr<Sequence> sequence, Tokens tokens);
[[nodiscard]] Result<std::unique_ptr<ReservationBody>> reserve_keys(
    Core& core, std::span<const std::string_view> keys, std::string_view name_space);

/// `Errc::invalid` when a namespace is too long.
[[nodiscard]] Result<void> check_namespace(std::string_view name_space);

}  // namespace esker::detail
