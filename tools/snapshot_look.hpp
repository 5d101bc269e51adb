#pragma once

#include <string>

#include "output.hpp"

namespace esker::cli {

/// `esker verify FILE`: decodes and compares everything.
int verify_snapshot(const std::string& operand, Output& out);

/// `esker info FILE`: head and index; of a stream only the head, all that has come by then.
int info_of_snapshot(const std::string& operand, Output& out);

}  // namespace esker::cli
