#include <fmt/format.h>

#include "args.hpp"
#include "progress.hpp"
#include "snapshot_look.hpp"
#include "snapshot_operand.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The answer for a store whose superblock or control already failed: damage, not an error.
VerifyReport unopenable(const StorePlace& place, const Error& error) {
  VerifyReport report;
  report.damage.push_back({place.path, 0, error.message});
  return report;
}

int show(const StorePlace& place, const VerifyReport& report, double seconds, Output& out) {
  List damage;
  for (const Damage& found : report.damage) {
    out.line(fmt::format("{}: block {}: {}", found.file, found.block, found.what), Tint::bad);
    damage.emplace_back(Object{{"file", found.file}, {"block", found.block}, {"what", found.what}});
  }
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(report.bytes) / seconds);
  out.line(fmt::format("verified {}, {} in {:.1f} s ({}/s): {} damaged",
                       format_items(report.blocks, "block"), out.size(report.bytes), seconds,
                       out.size(rate), format_count(report.damage.size())),
           report.damage.empty() ? Tint::good : Tint::bad);
  if (report.changed != 0) {
    out.note(place.label, fmt::format("{} blocks were recycled while they were read: not judged",
                                      format_count(report.changed)));
  }
  out.json({{"store", place.label},
            {"ok", report.damage.empty()},
            {"blocks", report.blocks},
            {"bytes", report.bytes},
            {"changed", report.changed},
            {"cold_files", report.cold_files},
            {"seconds", seconds},
            {"damage", std::move(damage)}});
  return code(report.damage.empty() ? Exit::ok : Exit::no);
}

}  // namespace

int run(const VerifyArgs& args, Output& out) {
  if (means_snapshot(args.store)) return verify_snapshot(args.store, out);
  const StorePlace place = place_of(args.store);
  ProgressLine progress(out, "verified");
  const auto store = open_to_look(place);
  if (!store && store.error().code == Errc::corrupt) {
    return show(place, unopenable(place, store.error()), progress.seconds(), out);
  }
  if (!store) return out.fail(place.label, store.error());
  const auto report = store->verify(progress.callback());
  progress.done();
  if (!report) return out.fail(place.label, report.error());
  return show(place, *report, progress.seconds(), out);
}

}  // namespace esker::cli
