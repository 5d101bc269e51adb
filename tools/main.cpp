#include <csignal>
#include <exception>
#include <new>

#include "args.hpp"

namespace {

int run_command(int argc, const char* const* argv) {
  using namespace esker::cli;
  // A pipe that its reader closed is an ordinary end, and so is a file-size limit: both become an
  // errno that Output reports.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  auto parsed = parse_args(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  auto& invocation = std::get<Invocation>(parsed);
  Output out(invocation.output);
  const int wanted =
      std::visit([&out](const auto& args) { return run(args, out); }, invocation.command);
  return out.finish(wanted);
}

}  // namespace

int main(int argc, char** argv) {
  // The library reports by Result; what may throw here are containers of this program.
  try {
    return run_command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "esker: %s\n", error.what());
    return esker::cli::code(esker::cli::Exit::failed);
  }
}
