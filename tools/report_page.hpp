#pragma once

#include <string>

#include "report_data.hpp"

namespace esker::cli {

/// One page that needs nothing but itself: no network, no other file, no script.
[[nodiscard]] std::string report_page(const ReportData& data);

/// Its look, for light and dark.
[[nodiscard]] std::string_view report_style() noexcept;

}  // namespace esker::cli
