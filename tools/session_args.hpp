#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "change_args.hpp"

namespace esker::cli {

// One struct per command of `esker session`. `name` is the session as it was typed.

enum class SessionOrder : std::uint8_t { used, name, tokens };

struct SessionLsArgs {
  std::string store;
  SessionOrder sort = SessionOrder::used;
};

struct SessionShowArgs {
  std::string store;
  std::string name;
};

struct SessionRmArgs {
  std::string store;
  std::vector<std::string> names;
  bool expired = false;  ///< those whose time to live is over, in place of names
  ChangeArgs change;
};

struct SessionForkArgs {
  std::string store;
  std::string name;
  std::string new_name;
};

struct SessionRenameArgs {
  std::string store;
  std::string name;
  std::string new_name;
};

struct SessionKeepArgs {
  std::string store;
  std::string name;
  std::uint64_t max_bytes = 0;  ///< over all kept sessions; 0: half of the capacity
  bool off = false;
};

/// What `import --session` keeps and notes; without a name nothing.
struct SessionChange {
  std::string name;
  std::vector<std::string> entries;  ///< --set KEY=VALUE
  std::optional<std::uint64_t> time_to_live_s;
  std::optional<std::int32_t> priority;
};

}  // namespace esker::cli
