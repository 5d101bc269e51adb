#include <fmt/format.h>

#include <esker/home.hpp>
#include <filesystem>

#include "args.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

/// The size of the file system that holds the home, or will hold it.
std::uint64_t disk_bytes_of(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  const fs::space_info space = fs::space(path, error);
  return error ? 0 : space.capacity;
}

std::string keep_free_text(const KeepFree& keep_free, Output& out) {
  switch (keep_free.kind) {
    case KeepFree::Kind::bytes:
      return out.size(keep_free.value);
    case KeepFree::Kind::percent:
      return fmt::format("{}%", keep_free.value);
    case KeepFree::Kind::automatic:
      break;
  }
  return "default";
}

Value keep_free_value(const KeepFree& keep_free) {
  if (keep_free.kind == KeepFree::Kind::bytes) return keep_free.value;
  if (keep_free.kind == KeepFree::Kind::percent) return fmt::format("{}%", keep_free.value);
  return "default";
}

}  // namespace

int run(const ConfigArgs& args, Output& out) {
  const std::string home = home_directory();
  auto settings = read_home(home);
  if (!settings) return out.fail(home, settings.error());
  if (args.sets_budget) settings->budget_bytes = args.budget_bytes;
  if (args.keep_free) settings->keep_free = *args.keep_free;
  if (args.sets_budget || args.keep_free) {
    if (const auto done = write_home(home, *settings); !done) return out.fail(home, done.error());
  }
  const auto stores = stores_of_home(home);
  if (!stores) return out.fail(home, stores.error());
  std::uint64_t used = 0;
  for (const HomeStore& store : *stores) used += store.disk_bytes;
  const std::uint64_t kept = settings->keep_free.of(disk_bytes_of(home));

  out.fact("home", home);
  out.fact("budget",
           fmt::format("{}; {} take {}",
                       settings->budget_bytes ? out.size(*settings->budget_bytes) : "none",
                       format_items(stores->size(), "store"), out.size(used)));
  out.fact("keep free", fmt::format("{}: {} of this disk", keep_free_text(settings->keep_free, out),
                                    out.size(kept)));
  if (settings->budget_bytes && used > *settings->budget_bytes) {
    out.note(home,
             "over the budget: `esker maintain` removes stores that nobody has opened for 30 "
             "days; the others evict and grow no more");
  }
  out.json({{"home", home},
            {"budget_bytes", settings->budget_bytes ? Value(*settings->budget_bytes) : Value()},
            {"keep_free", keep_free_value(settings->keep_free)},
            {"keep_free_bytes", kept},
            {"disk_bytes", used},
            {"stores", static_cast<std::uint64_t>(stores->size())}});
  return code(Exit::ok);
}

}  // namespace esker::cli
