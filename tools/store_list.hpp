#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "output.hpp"
#include "store_operand.hpp"

namespace esker::cli {

/// A store in the home, or why it cannot be read.
struct ListedStore {
  StorePlace place;
  std::optional<Info> info;
  std::string problem;
};

[[nodiscard]] std::vector<ListedStore> list_home();
[[nodiscard]] std::uint64_t disk_bytes(const std::vector<ListedStore>& stores);

[[nodiscard]] Table store_table(const std::vector<ListedStore>& stores, const Output& out);
[[nodiscard]] List store_values(const std::vector<ListedStore>& stores);

}  // namespace esker::cli
