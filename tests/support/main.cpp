#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "catch.hpp"
#include "support/process.hpp"

/// Test binaries start themselves again as `BINARY --role NAME ARGUMENT…`: a forked handle is dead
/// by design, so whoever shares a store with a test has to be a process of its own.
int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "--role") {
    return esker::test::run_role(argv[2], {argv + 3, argv + argc});
  }
  return Catch::Session().run(argc, argv);
}
