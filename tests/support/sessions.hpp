#pragma once

#include <esker/esker.hpp>
#include <string>

#include "support/rows.hpp"

namespace esker::test {

/// Appends `tokens` as an engine would: computes what is missing, publishes.
Result<Prefix> try_say(Session& session, Tokens tokens, Namespace name_space = {});
/// The same, and throws when it fails.
void talk(Session& session, Tokens tokens, Namespace name_space = {});

/// A new session of these tokens, saved.
Session saved_session(Store& store, const std::string& name, const TokenList& tokens);

/// "" when every row that the session calls reusable is right for its tokens; else what is wrong.
[[nodiscard]] std::string wrong_session(const Session& session, Namespace name_space = {});

}  // namespace esker::test
