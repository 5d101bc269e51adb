#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <esker/snapshot_info.hpp>
#include <esker/stats.hpp>
#include <esker/version.hpp>

namespace esker {

std::string_view name(Errc code) noexcept {
  switch (code) {
    case Errc::io:
      return "io";
    case Errc::corrupt:
      return "corrupt";
    case Errc::incompatible:
      return "incompatible";
    case Errc::full:
      return "full";
    case Errc::busy:
      return "busy";
    case Errc::invalid:
      return "invalid";
    case Errc::no_memory:
      return "no_memory";
    case Errc::missing:
      return "missing";
    case Errc::forked:
      return "forked";
  }
  return "unknown";
}

std::string_view name(Plane plane) noexcept { return plane == Plane::key ? "key" : "value"; }

std::string_view name(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::seat_reaped:
      return "seat_reaped";
    case EventKind::block_bad:
      return "block_bad";
    case EventKind::segment_added:
      return "segment_added";
    case EventKind::control_rebuilt:
      return "control_rebuilt";
    case EventKind::attach_refused:
      return "attach_refused";
    case EventKind::growth_failed:
      return "growth_failed";
    case EventKind::segment_unusable:
      return "segment_unusable";
    case EventKind::degraded:
      return "degraded";
    case EventKind::removed:
      return "removed";
    case EventKind::cold_damaged:
      return "cold_damaged";
    case EventKind::budget_removed:
      return "budget_removed";
  }
  return "unknown";
}

std::string_view name(Compression compression) noexcept {
  switch (compression) {
    case Compression::raw:
      return "raw";
    case Compression::lz4:
      return "lz4";
    case Compression::zstd:
      return "zstd";
  }
  return "unknown";
}

std::string_view name(Lossy lossy) noexcept {
  switch (lossy) {
    case Lossy::none:
      return "none";
    case Lossy::q8:
      return "q8";
    case Lossy::q4:
      return "q4";
  }
  return "unknown";
}

std::string_view version() noexcept { return ESKER_VERSION; }

}  // namespace esker
