#pragma once

#include <cstdint>
#include <esker/stats.hpp>
#include <optional>
#include <string>
#include <vector>

#include "house_args.hpp"
#include "output.hpp"
#include "store_operand.hpp"

namespace esker::cli {

/// What `maintain` did for one store, or would do.
struct Upkeep {
  StorePlace place;
  std::optional<Error> failure;  ///< what ended it early
  std::uint64_t reaped_seats = 0;
  std::vector<std::string> expired;  ///< sessions whose time to live is over
  std::uint64_t frozen_blocks = 0;
  std::uint64_t evicted_blocks = 0;     ///< to leave the disk free
  std::uint64_t returned_bytes = 0;     ///< to the disk
  bool in_use = false;                  ///< by others
  std::uint64_t last_used_unix_ns = 0;  ///< before we looked after it
  std::string model_file;               ///< where it was when the store was made, or ""
  bool model_gone = false;
};

/// Dead processes, sessions whose time is over, cold blocks, the model's file.
[[nodiscard]] Upkeep look_after(const StorePlace& place, const MaintainArgs& args);

/// Gives disk space of the store back until `keep_free_bytes` of the file system are free: that of
/// free blocks, and with `evict` that of blocks as well, the least recently used first. In a dry
/// run `freed_bytes` is what others would have given back already.
void give_back(Upkeep& upkeep, std::uint64_t keep_free_bytes, bool evict, bool dry_run,
               std::uint64_t freed_bytes);

/// One line for people, and all of it for programs.
[[nodiscard]] std::string upkeep_line(const Upkeep& upkeep, Output& out);
[[nodiscard]] Value upkeep_value(const Upkeep& upkeep);

}  // namespace esker::cli
