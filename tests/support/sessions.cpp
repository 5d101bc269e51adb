#include "support/sessions.hpp"

#include <cstring>

#include "support/stores.hpp"

namespace esker::test {

Result<Prefix> try_say(Session& session, Tokens tokens, Namespace name_space) {
  TokenList all(session.token_ids().begin(), session.token_ids().end());
  all.insert(all.end(), tokens.begin(), tokens.end());
  auto room = session.append(tokens);
  if (!room) return tl::make_unexpected(room.error());
  const Content content(all, name_space);
  auto written = write_rows(*room, session.geometry(), content, room->missing());
  if (!written) return tl::make_unexpected(written.error());
  return std::move(*room).publish();
}

void talk(Session& session, Tokens tokens, Namespace name_space) {
  static_cast<void>(need(try_say(session, tokens, name_space)));
}

Session saved_session(Store& store, const std::string& name, const TokenList& tokens) {
  Session session = need(Session::create(store, name));
  talk(session, tokens);
  need(session.save());
  return session;
}

std::string wrong_session(const Session& session, Namespace name_space) {
  const Content content(session.token_ids(), name_space);
  std::string bad;
  each_plane(session.geometry(), [&](std::uint32_t layer, Plane plane) {
    auto runs = session.view(layer, plane);
    if (!runs) {
      bad = runs.error().message;
      return;
    }
    std::uint32_t at = 0;
    for (const Run& run : *runs) {
      if (run.tokens.begin != at) bad = "a run begins at " + std::to_string(run.tokens.begin);
      const auto expected = content.rows(session.geometry(), layer, plane, run.tokens);
      if (run.bytes.size() != expected.size() ||
          std::memcmp(run.bytes.data(), expected.data(), expected.size()) != 0) {
        bad = "layer " + std::to_string(layer) + ": wrong rows from token " + std::to_string(at);
      }
      at = run.tokens.end;
    }
    if (at != session.reusable()) bad = "the runs end at token " + std::to_string(at);
  });
  return bad;
}

}  // namespace esker::test
