#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <string>

#include "prompt_args.hpp"

namespace esker::cli {

// One struct per command that moves blocks between the segments and cold files.

struct FreezeArgs {
  std::string store;
  std::uint64_t older_than_s = 7 * 24 * 3600;
  std::uint64_t most_bytes = UINT64_MAX;
  Compression compression = Compression::lz4;
  int level = 0;
  std::uint32_t threads = 1;
  bool dry_run = false;
};

struct ThawArgs {
  std::string store;
  PromptArgs prompt;
  std::string session;  ///< the name of one, or "" for a prompt
};

}  // namespace esker::cli
