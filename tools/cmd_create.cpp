#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "llama/rotation.hpp"
#include "llama/seq_reader.hpp"
#include "model_note.hpp"
#include "model_operand.hpp"
#include "progress.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The geometry, and in `model` what of a llama.cpp file's layout belongs to the identity.
Result<Geometry> geometry_of(const CreateArgs& args, ModelId& model) {
  if (args.like.empty()) {
    return Geometry::uniform(args.layers, args.kv_heads, args.head_dim, args.dtype,
                             args.block_tokens);
  }
  const auto file = llama::SeqFile::open(args.like);
  if (!file) return tl::make_unexpected(file.error());
  if (const auto added = llama::add_rotation(file->layout(), model); !added) {
    return tl::make_unexpected(added.error());
  }
  return llama::geometry_of_file(args.like, args.block_tokens);
}

void show(const StorePlace& place, const Info& info, Output& out) {
  out.line(fmt::format("created {}", place.label));
  out.fact("path", info.path);
  out.fact("model", model_line(info.model));
  out.fact("geometry", geometry_line(info.geometry));
  out.fact("capacity",
           fmt::format("{} ({} blocks at most)", out.size(info.capacity_bytes),
                       format_count(std::uint64_t{info.max_segments} * info.segment_blocks)));
  if (info.cold_bytes != 0) out.fact("cold share", out.size(info.cold_bytes));
  out.json({{"store", place.label},
            {"path", info.path},
            {"model", model_value(info.model)},
            {"geometry", geometry_value(info.geometry)},
            {"capacity_bytes", info.capacity_bytes},
            {"cold_bytes", info.cold_bytes},
            {"segment_file_bytes", info.segment_file_bytes},
            {"max_segments", info.max_segments},
            {"seats", info.seats},
            {"group", info.sharing == Sharing::group}});
}

}  // namespace

int run(const CreateArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  ProgressLine progress(out, "reading the model");
  auto model = model_id(args.model, progress.callback());
  progress.done();
  if (!model) return out.fail(place.label, model.error());
  const bool unnamed = model->unnamed();
  const auto geometry = geometry_of(args, *model);
  if (!geometry) return out.fail(place.label, geometry.error());

  if (args.capacity_bytes == 0U) {
    return out.fail(place.label, "--capacity is 0: give a size, or leave it out for the default");
  }
  Options options;
  options.capacity_bytes = args.capacity_bytes.value_or(0);
  options.cold_bytes = args.cold_bytes;
  options.segment_bytes = args.segment_bytes;
  options.sharing = args.group ? Sharing::group : Sharing::owner;
  options.seats = args.seats;
  if (is_name(args.store)) make_home();
  auto store = Store::create(place.path, *geometry, *model, options);
  if (!store) return out.fail(place.label, store.error());
  const auto info = store->info();
  if (!info) return out.fail(place.label, info.error());
  if (!args.model.file.empty()) note_model_file(place, args.model.file, args.group);
  show(place, *info, out);
  if (unnamed) {
    out.note(place.label,
             "unnamed: nothing tells which model its rows belong to, so keep to one "
             "model, or create it with --model or --model-file");
  }
  return code(Exit::ok);
}

}  // namespace esker::cli
