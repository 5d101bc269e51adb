#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "units.hpp"

namespace esker::cli {

namespace {

/// "7 s", "12 min", "3 h": rounded up, since an estimate that says 0 looks like an end.
std::string time_left(double seconds) {
  const double most = 100.0 * 24 * 3600;
  if (!(seconds < most)) return "";
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds));
  if (whole < 120) return fmt::format(", {} s left", std::max<std::uint64_t>(whole, 1));
  if (whole < 7200) return fmt::format(", {} min left", (whole + 59) / 60);
  return fmt::format(", {} h left", (whole + 3599) / 3600);
}

}  // namespace

std::string progress_text(std::string_view verb, std::uint64_t done_bytes,
                          std::uint64_t total_bytes, double bytes_per_s) {
  const std::string speed =
      fmt::format("{}/s", format_bytes(static_cast<std::uint64_t>(bytes_per_s)));
  if (total_bytes == 0 || total_bytes == unknown_total || total_bytes < done_bytes) {
    return fmt::format("{} {}, {}", verb, format_bytes(done_bytes), speed);
  }
  const auto rest = static_cast<double>(total_bytes - done_bytes);
  return fmt::format("{} {} of {} ({}), {}{}", verb, format_bytes(done_bytes),
                     format_bytes(total_bytes), format_share(done_bytes, total_bytes), speed,
                     bytes_per_s > 0 ? time_left(rest / bytes_per_s) : "");
}

Progress ProgressLine::callback() {
  if (!out_.shows_progress()) return {};
  return [this](std::uint64_t done_bytes, std::uint64_t total_bytes) {
    update(done_bytes, total_bytes);
  };
}

double ProgressLine::rate(Clock::time_point now, std::uint64_t done_bytes) {
  constexpr auto window = std::chrono::seconds(5);
  // Progress that goes back has begun anew: two passes over one file.
  if (done_bytes < marks_.back().bytes) marks_ = {Mark{now, done_bytes}};
  marks_.push_back({now, done_bytes});
  while (marks_.size() > 2 && now - marks_[1].time >= window) marks_.pop_front();
  const double passed = std::chrono::duration<double>(now - marks_.front().time).count();
  return static_cast<double>(done_bytes - marks_.front().bytes) / std::max(1e-6, passed);
}

void ProgressLine::update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  constexpr auto period = std::chrono::milliseconds(200);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < period || !out_.shows_progress()) return;
  shown_ = now;
  visible_ = true;
  out_.progress_line(progress_text(verb_, done_bytes, total_bytes, rate(now, done_bytes)));
}

void ProgressLine::done() {
  if (visible_) out_.progress_line("");
  visible_ = false;
}

double ProgressLine::seconds() const {
  return std::max(1e-6, std::chrono::duration<double>(Clock::now() - started_).count());
}

}  // namespace esker::cli
