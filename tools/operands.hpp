#pragma once

#include <esker/result.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace esker::cli {

/// Where the store of a command may come from, besides its own operands.
struct StoreSources {
  std::string option;       ///< -s STORE
  std::string environment;  ///< ESKER_STORE
};

/// A command's operands, told apart: the store, and what else there was.
struct Operands {
  std::string store;
  std::vector<std::string> rest;
};

/// [STORE]: an operand wins over the environment and contradicts -s.
[[nodiscard]] Result<std::string> settle_store(const std::string& operand,
                                               const StoreSources& sources);
/// [STORE] PATH…, at least one: with ESKER_STORE set, a first operand of hex digits is a path.
[[nodiscard]] Result<Operands> settle_paths(std::vector<std::string> operands,
                                            const StoreSources& sources);
/// [STORE] [PATH…]
[[nodiscard]] Result<Operands> settle_any_paths(std::vector<std::string> operands,
                                                const StoreSources& sources);
/// [STORE] PATH, or [STORE] alone when the option `by` says which prefix; "" for none.
[[nodiscard]] Result<Operands> settle_prefix(std::vector<std::string> operands, std::string_view by,
                                             const StoreSources& sources);
/// The same, but where there is one prefix only, none need be named.
[[nodiscard]] Result<Operands> settle_optional(std::vector<std::string> operands,
                                               std::string_view by, const StoreSources& sources);
/// [STORE] FILE
[[nodiscard]] Result<Operands> settle_file(std::vector<std::string> operands,
                                           const StoreSources& sources);

/// [STORE] and one session name for each of `names`, which say what they are.
[[nodiscard]] Result<Operands> settle_names(std::vector<std::string> operands,
                                            std::initializer_list<std::string_view> names,
                                            const StoreSources& sources);
/// [STORE] NAME…, at least one: where -s or the environment gives the store, all are names.
[[nodiscard]] Result<Operands> settle_any_names(std::vector<std::string> operands,
                                                const StoreSources& sources);

/// The bytes of a namespace: text as it is, or 0x and hex digits. At most 64 bytes.
[[nodiscard]] Result<std::string> parse_namespace(std::string_view text);

}  // namespace esker::cli
