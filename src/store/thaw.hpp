#pragma once

#include <atomic>
#include <cstdint>
#include <esker/geometry.hpp>
#include <span>
#include <string_view>

#include "store/core.hpp"

namespace esker::detail {

/// See Store::thaw. `stop` ends it early.
[[nodiscard]] Result<std::uint32_t> thaw(Core& core, Tokens tokens, std::string_view name_space,
                                         const std::atomic<bool>* stop = nullptr);

/// True when cold files have something that continues what is stored of these tokens.
[[nodiscard]] bool can_thaw(Core& core, Tokens tokens, std::string_view name_space);

/// For Options::thaw, of which `hot_tokens` leading tokens were found. True when there is more now.
[[nodiscard]] bool thaw_missing(Core& core, Tokens tokens, std::string_view name_space,
                                std::uint32_t hot_tokens) noexcept;
[[nodiscard]] bool thaw_missing_keys(Core& core, std::span<const std::string_view> keys,
                                     std::string_view name_space) noexcept;

}  // namespace esker::detail
