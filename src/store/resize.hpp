#pragma once

#include <esker/resize.hpp>
#include <esker/result.hpp>
#include <string>

namespace esker::detail {

/// See Store::resize.
[[nodiscard]] Result<Resized> resize_store(const std::string& path, const ResizeOptions& options);

}  // namespace esker::detail
