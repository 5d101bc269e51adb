#pragma once

#include <string>

#include "report_data.hpp"

namespace esker::cli {

// The pictures of a report, as inline SVG and HTML. Colours are classes, which the page defines for
// light and dark.

/// Ages that are told apart: bucket 0 is the most recent.
inline constexpr std::size_t age_buckets = 8;
[[nodiscard]] std::size_t age_bucket(std::uint64_t unix_ns, std::uint64_t now_unix_ns);

[[nodiscard]] std::string icicle_chart(const ReportData& data);
/// What each colour of the plot means, and how much of the store it is.
[[nodiscard]] std::string icicle_legend(const ReportData& data);
/// Tokens found and not found over the time that was watched, or since the counters began.
[[nodiscard]] std::string hit_chart(const ReportData& data);
/// Bytes by when they were published and by when they were last used.
[[nodiscard]] std::string time_chart(const ReportData& data);
/// The capacity and who has which part of it.
[[nodiscard]] std::string room_chart(const ReportData& data);

}  // namespace esker::cli
