#include "snapshot_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"

namespace esker::cli {

namespace {

bool is_exact(const std::array<LossyError, 2>& error) {
  return std::all_of(error.begin(), error.end(), [](const LossyError& plane) {
    return plane.rms == 0 && plane.max_absolute == 0;
  });
}

Value plane_value(const LossyError& error) {
  return Object{{"rms", error.rms},
                {"rms_relative", error.rms_relative},
                {"max_absolute", error.max_absolute}};
}

}  // namespace

std::vector<std::string> lossy_lines(const std::array<LossyError, 2>& error) {
  std::vector<std::string> lines;
  if (is_exact(error)) return lines;
  constexpr std::array<const char*, 2> planes{"K", "V"};
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    lines.push_back(fmt::format("lossy {}: rms error {:.3g} ({:.2f} %), at most {:.3g}",
                                planes.at(plane), error.at(plane).rms,
                                100 * error.at(plane).rms_relative, error.at(plane).max_absolute));
  }
  return lines;
}

Value lossy_value(const std::array<LossyError, 2>& error) {
  if (is_exact(error)) return {};
  return Object{{"key", plane_value(error[0])}, {"value", plane_value(error[1])}};
}

std::string format_ratio(std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
  if (stored_bytes == 0) return "-";
  return fmt::format("{:.2f}x", static_cast<double>(raw_bytes) / static_cast<double>(stored_bytes));
}

std::string namespace_text(const SnapshotNamespace& name_space) {
  if (!name_space.named) return fmt::format("unnamed ({})", name_space.text);
  return name_space.text.empty() ? "(none)" : namespace_text(name_space.text);
}

}  // namespace esker::cli
