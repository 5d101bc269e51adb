#pragma once

#include "args.hpp"
#include "convert_kinds.hpp"
#include "output.hpp"

namespace esker::cli {

// The conversions that go through a store. They return the exit code, and have said all.

/// A file of llama.cpp or a store becomes a snapshot.
[[nodiscard]] int convert_to_snapshot(const ConvertArgs& args, FileKind from, Output& out);

/// A file of llama.cpp or a snapshot goes into a store, which is made when it is not there.
[[nodiscard]] int convert_to_store(const ConvertArgs& args, FileKind from, Output& out);

}  // namespace esker::cli
