#include <fmt/format.h>
#include <unistd.h>

#include "args.hpp"
#include "store_operand.hpp"

namespace esker::cli {

namespace {

/// What a real run would answer while someone is attached.
Result<void> refuse_if_attached(const StorePlace& place) {
  const auto store = open_with_seat(place);
  // Damage and other versions keep nobody from destroying a store, and nobody can have it open.
  const bool unusable =
      !store && (store.error().code == Errc::corrupt || store.error().code == Errc::incompatible);
  if (unusable) return {};
  if (!store) return tl::make_unexpected(store.error());
  for (const Process& process : store->processes()) {
    if (!process.alive || process.pid == static_cast<std::uint32_t>(getpid())) continue;
    return tl::make_unexpected(Error{
        Errc::busy, 0,
        fmt::format("process {} ({}) has it open; end it first", process.pid, process.command)});
  }
  return {};
}

}  // namespace

int run(const DestroyArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto info = inspect_place(place);
  if (!info && info.error().code == Errc::missing) return out.fail(place.label, info.error());
  // A store that is too damaged to be inspected can still be destroyed.
  const std::uint64_t bytes = info ? info->disk_bytes : 0;

  if (args.change.dry_run) {
    if (const auto free = refuse_if_attached(place); !free) {
      return out.fail(place.label, free.error());
    }
  } else {
    if (!out.confirm(fmt::format("Destroy {} ({})?", place.path, out.size(bytes)),
                     args.change.assume_yes)) {
      return out.fail(place.label, "left as it is");
    }
    if (const auto destroyed = Store::destroy(place.path); !destroyed) {
      return out.fail(place.label, destroyed.error());
    }
  }
  out.line(fmt::format("{} {}: {} returned to disk",
                       args.change.dry_run ? "would have destroyed" : "destroyed", place.label,
                       out.size(bytes)));
  out.json({{"store", place.label},
            {"path", place.path},
            {"dry_run", args.change.dry_run},
            {"disk_bytes", bytes}});
  return code(Exit::ok);
}

}  // namespace esker::cli
