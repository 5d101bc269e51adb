#include <algorithm>
#include <esker/session.hpp>

#include "path_name.hpp"
#include "rows_source.hpp"
#include "session_operand.hpp"
#include "store_operand.hpp"
#include "token_ids.hpp"

namespace esker::cli {

namespace {

/// The longest stored part of some tokens whose every byte checks.
class StoreRows final : public RowsSource {
 public:
  StoreRows(Store store, WantedTokens wanted) : store_(std::move(store)) {
    asked_ = wanted.asked;
    name_space_ = std::move(wanted.name_space);
    tokens_ = std::move(wanted.tokens);
  }

  /// Damage makes the prefix end before it.
  [[nodiscard]] Result<void> find(RowsCheck check) {
    for (std::uint32_t longest = UINT32_MAX;;) {
      prefix_ = store_.lookup(tokens_, name_space_);
      if (prefix_.empty() || check == RowsCheck::when_copied) break;
      const auto sound = prefix_.verify();
      if (sound) break;
      // A damaged block is never served again, so each lookup is shorter than the one before.
      if (sound.error().code != Errc::corrupt || prefix_.tokens() >= longest) return sound;
      longest = prefix_.tokens();
    }
    path_ = prefix_.path();
    tokens_.resize(std::min<std::uint64_t>(prefix_.tokens(), asked_));
    return {};
  }

  [[nodiscard]] const Geometry& geometry() const override { return store_.geometry(); }
  [[nodiscard]] const ModelId& model() const override { return store_.model(); }
  [[nodiscard]] Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<std::byte> out) const override {
    return prefix_.copy(layer, plane, range, out);
  }

 private:
  Store store_;
  Prefix prefix_;
};

Result<WantedTokens> tokens_of_path(const Store& store, const std::string& text) {
  const auto paths = store.paths();
  if (!paths) return tl::make_unexpected(paths.error());
  const auto path = find_path(text, *paths);
  if (!path) return tl::make_unexpected(path.error());
  const auto prefix = store.lookup_path(*path);
  if (!prefix) return tl::make_unexpected(prefix.error());
  auto tokens = prefix->token_ids();
  if (!tokens) return tl::make_unexpected(tokens.error());
  const auto info = std::find_if(paths->begin(), paths->end(),
                                 [&](const PathInfo& entry) { return entry.path == *path; });
  return WantedTokens{std::move(*tokens), info->name_space, 0};
}

Result<WantedTokens> tokens_of_session(Store& store, const std::string& name) {
  const auto session = resume_session(store, name);
  if (!session) return tl::make_unexpected(session.error());
  const auto info = session->info();
  if (!info) return tl::make_unexpected(info.error());
  const Tokens tokens = session->token_ids();
  return WantedTokens{{tokens.begin(), tokens.end()}, info->name_space, 0};
}

Result<WantedTokens> tokens_of_prompt(const PromptArgs& prompt) {
  auto ids = read_token_ids(prompt.ids_file);
  if (!ids) return tl::make_unexpected(ids.error());
  return WantedTokens{std::move(*ids), prompt.name_space, 0};
}

Result<PrefixChoice> settled(const std::string& operand, const Store& store,
                             const PrefixChoice& choice) {
  const bool named =
      !choice.path.empty() || !choice.session.empty() || !choice.prompt.ids_file.empty();
  if (named) return choice;
  const auto sessions = Session::list(store);
  if (!sessions) return tl::make_unexpected(sessions.error());
  const auto paths = store.paths();
  if (!paths) return tl::make_unexpected(paths.error());
  std::vector<std::string> names;
  for (const SessionInfo& session : *sessions) names.push_back(session.name);
  std::vector<std::uint64_t> leaves;
  for (const PathInfo& path : *paths) leaves.push_back(path.path);
  auto only = only_choice(operand, names, leaves);
  if (only) only->prompt = choice.prompt;
  return only;
}

}  // namespace

Result<WantedTokens> wanted_tokens(Store& store, const PrefixChoice& choice) {
  auto wanted = !choice.session.empty() ? tokens_of_session(store, choice.session)
                : !choice.path.empty()  ? tokens_of_path(store, choice.path)
                                        : tokens_of_prompt(choice.prompt);
  if (!wanted) return wanted;
  wanted->asked = choice.prompt.first.value_or(static_cast<std::uint32_t>(wanted->tokens.size()));
  const std::uint64_t block = store.geometry().block_tokens;
  const std::uint64_t enough = (wanted->asked + block - 1) / block * block;
  if (enough < wanted->tokens.size()) wanted->tokens.resize(enough);
  return wanted;
}

Result<std::unique_ptr<RowsSource>> open_store_rows(const std::string& operand,
                                                    const PrefixChoice& choice, RowsCheck check) {
  auto store = open_to_look(place_of(operand));
  if (!store) return tl::make_unexpected(store.error());
  const auto chosen = settled(operand, *store, choice);
  if (!chosen) return tl::make_unexpected(chosen.error());
  auto wanted = wanted_tokens(*store, *chosen);
  if (!wanted) return tl::make_unexpected(wanted.error());
  auto rows = std::make_unique<StoreRows>(std::move(*store), std::move(*wanted));
  if (const auto found = rows->find(check); !found) return tl::make_unexpected(found.error());
  return rows;
}

}  // namespace esker::cli
