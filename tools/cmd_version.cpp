#include <fmt/format.h>

#include <esker/version.hpp>

#include "args.hpp"

namespace esker::cli {

int run(const VersionArgs&, Output& out) {
  out.line(fmt::format("esker {}", version()));
  out.line(fmt::format("store format: writes {}, reads from {} on", format_write_version,
                       format_read_version));
  out.json({{"version", version()},
            {"format_write_version", format_write_version},
            {"format_read_version", format_read_version}});
  return code(Exit::ok);
}

}  // namespace esker::cli
