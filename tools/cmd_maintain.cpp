#include <fmt/format.h>

#include <algorithm>
#include <esker/home.hpp>
#include <filesystem>
#include <map>

#include "args.hpp"
#include "store_operand.hpp"
#include "units.hpp"
#include "upkeep.hpp"

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

/// What is done once, and not store by store.
struct HomeUpkeep {
  std::vector<std::string> swept;
  BudgetReport budget;
  int exit = code(Exit::ok);
};

void keep_exit(int& exit, int other) {
  if (exit == code(Exit::ok)) exit = other;
}

/// In words at once; for programs the answer has it.
void report(std::string_view subject, const Error& error, Output& out, int& exit) {
  keep_exit(exit, out.is_json() ? code(exit_for(error.code)) : out.fail(subject, error));
}

void look_after_home(const std::string& home, bool dry_run, Output& out, HomeUpkeep& done) {
  auto swept = sweep_home(home, dry_run);
  if (swept) {
    done.swept = std::move(*swept);
  } else {
    report(home, swept.error(), out, done.exit);
  }
  auto budget = enforce_budget(home, dry_run);
  if (budget) {
    done.budget = std::move(*budget);
  } else {
    report(home, budget.error(), out, done.exit);
  }
}

std::vector<StorePlace> places(const MaintainArgs& args) {
  if (args.stores.empty()) return stores_in_home();
  std::vector<StorePlace> places;
  for (const std::string& store : args.stores) places.push_back(place_of(store));
  return places;
}

/// What the home of this store leaves free.
Result<std::uint64_t> keep_free_of(const StorePlace& place) {
  std::error_code error;
  const fs::path path = fs::canonical(place.path, error);
  if (error) return std::uint64_t{0};
  const auto settings = read_home(path.parent_path().string());
  if (!settings) return tl::make_unexpected(settings.error());
  const fs::space_info space = fs::space(path, error);
  return error ? 0 : settings->keep_free.of(space.capacity);
}

/// First what costs nothing, in all stores; then blocks, of the stores unused for longest first.
void leave_free(std::vector<Upkeep>& all, bool dry_run) {
  std::multimap<std::uint64_t, Upkeep*> order;
  for (Upkeep& upkeep : all) order.emplace(upkeep.last_used_unix_ns, &upkeep);
  std::uint64_t freed = 0;
  for (const bool evict : {false, true}) {
    for (const auto& [last_used, upkeep] : order) {
      const auto keep_free = keep_free_of(upkeep->place);
      if (!keep_free) {
        upkeep->failure = keep_free.error();
        continue;
      }
      const std::uint64_t before = upkeep->returned_bytes;
      give_back(*upkeep, *keep_free, evict, dry_run, freed);
      freed += upkeep->returned_bytes - before;
    }
  }
}

void show_home(const HomeUpkeep& done, bool dry_run, Output& out) {
  const std::string_view would = dry_run ? "would be " : "";
  for (const HomeStore& store : done.budget.removed) {
    out.line(fmt::format("{}: {}removed for the budget, unused since {}, {} returned to disk",
                         store.name, would, format_age(store.last_opened_unix_ns),
                         out.size(store.disk_bytes)));
  }
  for (const std::string& name : done.swept) {
    out.line(fmt::format("{}: {}removed, left unfinished by a killed process", name, would));
  }
  if (done.budget.budget_bytes && done.budget.disk_bytes > *done.budget.budget_bytes) {
    out.note(home_directory(),
             fmt::format("its stores take {}, over the budget of {}: no other store has been "
                         "unused for 30 days and may go; they evict and grow no more",
                         out.size(done.budget.disk_bytes), out.size(*done.budget.budget_bytes)));
  }
}

List removed_values(const BudgetReport& budget) {
  List removed;
  for (const HomeStore& store : budget.removed) {
    removed.emplace_back(Object{{"store", store.name}, {"disk_bytes", store.disk_bytes}});
  }
  return removed;
}

}  // namespace

int run(const MaintainArgs& args, Output& out) {
  HomeUpkeep home;
  if (args.stores.empty()) look_after_home(home_directory(), args.dry_run, out, home);
  const auto removed = [&home](const StorePlace& place) {
    const auto& gone = home.budget.removed;
    return std::any_of(gone.begin(), gone.end(),
                       [&](const HomeStore& store) { return store.name == place.label; });
  };
  std::vector<Upkeep> all;
  for (const StorePlace& place : places(args)) {
    if (!args.stores.empty() || !removed(place)) all.push_back(look_after(place, args));
  }
  leave_free(all, args.dry_run);

  if (args.dry_run) out.line("nothing is changed; this is what would be done:");
  show_home(home, args.dry_run, out);
  List stores;
  for (const Upkeep& upkeep : all) {
    if (upkeep.failure) {
      report(upkeep.place.label, *upkeep.failure, out, home.exit);
    } else {
      out.line(upkeep_line(upkeep, out));
    }
    stores.push_back(upkeep_value(upkeep));
  }
  if (all.empty() && home.budget.removed.empty() && home.swept.empty()) {
    out.line(fmt::format("no stores in {}", home_directory()));
  }
  out.json({{"dry_run", args.dry_run},
            {"stores", std::move(stores)},
            {"removed_stores", removed_values(home.budget)},
            {"swept", List(home.swept.begin(), home.swept.end())}});
  return home.exit;
}

}  // namespace esker::cli
