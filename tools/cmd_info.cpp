#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "snapshot_look.hpp"
#include "snapshot_operand.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

void show(const Info& info, Output& out) {
  out.fact("path", info.path);
  out.fact("format",
           fmt::format("{} (readable from {} on)", info.write_version, info.read_version));
  out.fact("uuid", format_uuid(info.uuid));
  out.fact("created", format_time(info.created_unix_ns));
  show_shape(out, info.model, info.geometry);
  out.fact("capacity", out.size(info.capacity_bytes));
  if (info.cold_bytes != 0) out.fact("cold share", out.size(info.cold_bytes));
  out.fact("on disk", fmt::format("{} ({})", out.size(info.disk_bytes),
                                  format_share(info.disk_bytes, info.capacity_bytes)));
  out.fact("segments",
           fmt::format("{} of {} files of {} ({} blocks each)", info.segments, info.max_segments,
                       out.size(info.segment_file_bytes), format_count(info.segment_blocks)));
  out.fact("seats", format_count(info.seats));
  out.fact("shared with", info.sharing == Sharing::group ? "group" : "owner only");
  out.fact("last used", format_age(last_used(info)));
}

Object values(const StorePlace& place, const Info& info) {
  return {{"store", place.label},
          {"path", info.path},
          {"uuid", format_uuid(info.uuid)},
          {"format_write_version", info.write_version},
          {"format_read_version", info.read_version},
          {"created", time_value(info.created_unix_ns)},
          {"last_used", time_value(last_used(info))},
          {"model", model_value(info.model)},
          {"geometry", geometry_value(info.geometry)},
          {"group", info.sharing == Sharing::group},
          {"capacity_bytes", info.capacity_bytes},
          {"cold_bytes", info.cold_bytes},
          {"disk_bytes", info.disk_bytes},
          {"segments_bytes", info.segments_bytes},
          {"segment_file_bytes", info.segment_file_bytes},
          {"segment_blocks", info.segment_blocks},
          {"segments", info.segments},
          {"max_segments", info.max_segments},
          {"seats", info.seats}};
}

}  // namespace

int run(const InfoArgs& args, Output& out) {
  if (means_snapshot(args.store)) return info_of_snapshot(args.store, out);
  const StorePlace place = place_of(args.store);
  const auto info = inspect_place(place);
  if (!info) return out.fail(place.label, info.error());
  show(*info, out);
  out.json(values(place, *info));
  return code(Exit::ok);
}

}  // namespace esker::cli
