#include "args.hpp"
namespace esker::cli {
int run(const ReportArgs&, Output& out) { return out.fail("", "not yet"); }
}
