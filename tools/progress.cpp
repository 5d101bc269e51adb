#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "units.hpp"

namespace esker::cli {

Progress ProgressLine::callback() {
  if (!out_.shows_progress()) return {};
  return [this](std::uint64_t done_bytes, std::uint64_t total_bytes) {
    update(done_bytes, total_bytes);
  };
}

void ProgressLine::update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  constexpr auto period = std::chrono::milliseconds(200);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < period || !out_.shows_progress()) return;
  shown_ = now;
  visible_ = true;
  const double rate = static_cast<double>(done_bytes) / seconds();
  out_.progress_line(fmt::format("{} {} of {} ({}), {}/s", verb_, format_bytes(done_bytes),
                                 format_bytes(total_bytes), format_share(done_bytes, total_bytes),
                                 format_bytes(static_cast<std::uint64_t>(rate))));
}

void ProgressLine::done() {
  if (visible_) out_.progress_line("");
  visible_ = false;
}

double ProgressLine::seconds() const {
  return std::max(1e-6, std::chrono::duration<double>(Clock::now() - started_).count());
}

}  // namespace esker::cli
