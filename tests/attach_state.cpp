// Attaches engine state to a session, as an engine does: the command `esker` only shows it.
//   attach_state STORE SESSION LABEL TEXT

#include <cstdio>
#include <esker/session.hpp>
#include <esker/store.hpp>
#include <span>
#include <string_view>

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto done = [&]() -> esker::Result<void> {
    auto store = esker::Store::open(argv[1]);
    if (!store) return tl::make_unexpected(store.error());
    auto session = esker::Session::resume(*store, argv[2]);
    if (!session) return tl::make_unexpected(session.error());
    const std::string_view text(argv[4]);
    return session->attach(argv[3], std::as_bytes(std::span(text.data(), text.size())));
  }();
  if (!done) std::fprintf(stderr, "attach_state: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
