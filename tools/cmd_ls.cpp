#include <fmt/format.h>

#include <algorithm>

#include "args.hpp"
#include "describe.hpp"
#include "path_name.hpp"
#include "store_list.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

void sort_paths(std::vector<PathInfo>& paths, SortBy by) {
  const auto rank = [by](const PathInfo& path) -> std::uint64_t {
    switch (by) {
      case SortBy::tokens:
        return path.tokens;
      case SortBy::bytes:
        return path.bytes;
      default:
        return path.last_used_unix_ns;
    }
  };
  std::stable_sort(paths.begin(), paths.end(),
                   [&](const PathInfo& a, const PathInfo& b) { return rank(a) > rank(b); });
}

/// Without a seat pins are not known.
Table path_table(const std::vector<PathInfo>& paths, bool seated, const Output& out) {
  Table table{{{"PATH"},
               {"TOKENS", true},
               {"SIZE", true},
               {"OWN", true},
               {"LAST USED"},
               {"PINS", true},
               {"NAMESPACE"},
               {"SESSIONS"}},
              {}};
  for (const PathInfo& path : paths) {
    table.rows.push_back({path_name(path.path) + (path.key ? " (key)" : ""),
                          format_count(path.tokens), out.size(path.bytes), out.size(path.own_bytes),
                          format_age(path.last_used_unix_ns),
                          seated ? std::to_string(path.pins) : "?", namespace_text(path.name_space),
                          fmt::format("{}", fmt::join(path.sessions, ", "))});
  }
  drop_empty_columns(table);
  return table;
}

List path_values(const std::vector<PathInfo>& paths, bool seated) {
  List list;
  for (const PathInfo& path : paths) {
    List sessions(path.sessions.begin(), path.sessions.end());
    list.emplace_back(Object{{"path", full_path_name(path.path)},
                             {"tokens", path.tokens},
                             {"blocks", path.blocks},
                             {"bytes", path.bytes},
                             {"own_bytes", path.own_bytes},
                             {"published", time_value(path.published_unix_ns)},
                             {"last_used", time_value(path.last_used_unix_ns)},
                             {"pins", seated ? Value(path.pins) : Value()},
                             {"key", path.key},
                             {"namespace_hex", format_hex(path.name_space)},
                             {"sessions", std::move(sessions)}});
  }
  return list;
}

int list_stores(Output& out) {
  const std::vector<ListedStore> stores = list_home();
  if (stores.empty()) {
    out.note("", fmt::format("no stores in {}; `esker create --help` shows how to make one",
                             home_directory()));
  } else {
    out.table(store_table(stores, out));
  }
  out.json({{"home", home_directory()},
            {"disk_bytes", disk_bytes(stores)},
            {"stores", store_values(stores)}});
  return code(Exit::ok);
}

int list_paths(const LsArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto look = look_at(place);
  if (!look) return out.fail(place.label, look.error());
  const Store& store = look->store;
  auto paths = store.paths();
  if (!paths) return out.fail(place.label, paths.error());
  sort_paths(*paths, args.sort);

  const std::uint64_t stored_bytes = store.stats().store_bytes;
  out.line(fmt::format("{} ({}): {}, {}", place.label, model_line(store.model()),
                       format_items(paths->size(), "path"), out.size(stored_bytes)));
  if (!paths->empty()) out.table(path_table(*paths, look->seated, out));
  out.json({{"store", place.label},
            {"model", model_value(store.model())},
            {"store_bytes", stored_bytes},
            {"paths", path_values(*paths, look->seated)}});
  return code(Exit::ok);
}

}  // namespace

int run(const LsArgs& args, Output& out) {
  return args.store.empty() ? list_stores(out) : list_paths(args, out);
}

}  // namespace esker::cli
