#include "operands.hpp"

#include <fmt/format.h>

#include <charconv>

#include "path_name.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

tl::unexpected<Error> usage(std::string message) {
  return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
}

tl::unexpected<Error> no_store() {
  return usage("which store? Give its name or path, or set ESKER_STORE; `esker ls` lists them");
}

std::string expected_operands(std::string_view names, const StoreSources& sources) {
  if (!sources.option.empty()) {
    return fmt::format("{} beside -s", names.empty() ? "nothing" : names);
  }
  const std::string_view store = sources.environment.empty() ? "STORE" : "[STORE]";
  return fmt::format("{}{}{}", store, names.empty() ? "" : " ", names);
}

/// Operands that are no store and `names` of sessions: what they should be, and where they stand.
tl::unexpected<Error> no_names(const std::vector<std::string>& operands, std::string_view names,
                               const StoreSources& sources) {
  const std::string& given = sources.option.empty() ? sources.environment : sources.option;
  const std::string& store = given.empty() && !operands.empty() ? operands.front() : given;
  const std::string where =
      store.empty() ? "`esker ls` lists the stores, `esker session ls STORE` the sessions of one"
                    : fmt::format("`esker session ls {}` lists its sessions", store);
  return usage(fmt::format("expected {}, found {}; {}", expected_operands(names, sources),
                           operands.empty() ? "nothing" : format_items(operands.size(), "operand"),
                           where));
}

Operands without_store(std::string store, std::vector<std::string> operands) {
  return {std::move(store), std::move(operands)};
}

Operands store_first(std::vector<std::string> operands) {
  std::string store = std::move(operands.front());
  operands.erase(operands.begin());
  return {std::move(store), std::move(operands)};
}

}  // namespace

Result<Operands> settle_any_paths(std::vector<std::string> operands, const StoreSources& sources) {
  if (!sources.option.empty()) return without_store(sources.option, std::move(operands));
  const bool starts_with_path = operands.empty() || looks_like_path(operands.front());
  if (!sources.environment.empty() && starts_with_path) {
    return without_store(sources.environment, std::move(operands));
  }
  if (operands.empty()) return no_store();
  return store_first(std::move(operands));
}

Result<std::string> settle_store(const std::string& operand, const StoreSources& sources) {
  if (!operand.empty() && !sources.option.empty()) {
    return usage(fmt::format("two stores: {} as operand and {} with -s", operand, sources.option));
  }
  for (const std::string& store : {operand, sources.option, sources.environment}) {
    if (!store.empty()) return store;
  }
  return no_store();
}

Result<Operands> settle_paths(std::vector<std::string> operands, const StoreSources& sources) {
  auto settled = settle_any_paths(std::move(operands), sources);
  if (settled && settled->rest.empty()) {
    return usage(
        fmt::format("which paths of {}? `esker ls STORE` shows their names; to drop all use "
                    "`esker evict STORE --to 0` or `esker destroy STORE`",
                    settled->store));
  }
  return settled;
}

Result<Operands> settle_prefix(std::vector<std::string> operands, std::string_view by,
                               const StoreSources& sources) {
  auto settled = settle_any_paths(std::move(operands), sources);
  if (!settled || settled->rest.size() == (by.empty() ? 1U : 0U)) return settled;
  if (by.empty()) return usage("which prefix? Give one path name, --ids FILE or --session NAME");
  return usage(fmt::format("both a path and {}: give one of them", by));
}

Result<Operands> settle_optional(std::vector<std::string> operands, std::string_view by,
                                 const StoreSources& sources) {
  auto settled = settle_any_paths(std::move(operands), sources);
  if (!settled || settled->rest.size() <= (by.empty() ? 1U : 0U)) return settled;
  if (by.empty()) return usage("too many operands: expected one path name");
  return usage(fmt::format("both a path and {}: give one of them", by));
}

Result<Operands> settle_file(std::vector<std::string> operands, const StoreSources& sources) {
  const std::string& given = sources.option.empty() ? sources.environment : sources.option;
  if (operands.size() == 1 && !given.empty()) return without_store(given, std::move(operands));
  if (operands.size() == 2 && sources.option.empty()) return store_first(std::move(operands));
  if (operands.size() == 1) {
    return usage(fmt::format("{} alone is not enough: expected STORE FILE", operands.front()));
  }
  if (operands.empty()) return usage("expected STORE FILE");
  return usage("too many operands: expected FILE, as -s names the store");
}

Result<Operands> settle_names(std::vector<std::string> operands,
                              std::initializer_list<std::string_view> names,
                              const StoreSources& sources) {
  const std::string& given = sources.option.empty() ? sources.environment : sources.option;
  if (operands.size() == names.size() && !given.empty()) {
    return without_store(given, std::move(operands));
  }
  if (operands.size() == names.size() + 1 && sources.option.empty()) {
    return store_first(std::move(operands));
  }
  return no_names(operands, fmt::format("{}", fmt::join(names, " ")), sources);
}

Result<Operands> settle_any_names(std::vector<std::string> operands, const StoreSources& sources) {
  const std::string& given = sources.option.empty() ? sources.environment : sources.option;
  if (operands.size() + (given.empty() ? 0 : 1) < 2) {
    return no_names(operands, "NAME... or --expired", sources);
  }
  return given.empty() ? store_first(std::move(operands))
                       : without_store(given, std::move(operands));
}

Result<std::string> parse_namespace(std::string_view text) {
  constexpr std::size_t max_bytes = 64;
  std::string bytes(text);
  if (text.starts_with("0x")) {
    bytes.clear();
    for (std::size_t at = 2; at < text.size(); at += 2) {
      unsigned value = 0;
      const char* first = text.data() + at;
      const char* last = text.data() + std::min(at + 2, text.size());
      const auto read = std::from_chars(first, last, value, 16);
      if (read.ec != std::errc{} || read.ptr != first + 2) {
        return usage(fmt::format("--namespace {}: expected pairs of hex digits after 0x", text));
      }
      bytes.push_back(static_cast<char>(value));
    }
  }
  if (bytes.size() > max_bytes) {
    return usage(fmt::format("--namespace: {} bytes, at most {} fit; give a digest instead",
                             bytes.size(), max_bytes));
  }
  return bytes;
}

}  // namespace esker::cli
