#include <fmt/format.h>

#include <algorithm>
#include <esker/snapshot.hpp>

#include "path_name.hpp"
#include "rows_source.hpp"
#include "session_operand.hpp"
#include "token_ids.hpp"

namespace esker::cli {

namespace {

tl::unexpected<Error> failure(Errc code, std::string message) {
  return tl::make_unexpected(Error{code, 0, std::move(message)});
}

/// Tokens, and the namespace that they start from, by its place in the file.
struct Wanted {
  std::vector<std::int32_t> tokens;
  std::uint32_t name_space = 0;
  std::uint64_t path = 0;
};

class SnapshotRows final : public RowsSource {
 public:
  SnapshotRows(Snapshot snapshot, Wanted wanted, std::uint64_t asked)
      : snapshot_(std::move(snapshot)), wanted_(std::move(wanted)) {
    asked_ = asked;
    path_ = wanted_.path;
  }

  [[nodiscard]] Result<void> find(const SnapshotContents& contents) {
    const auto matched = snapshot_.match(wanted_.tokens, wanted_.name_space);
    if (!matched) return tl::make_unexpected(matched.error());
    const auto count = std::min<std::uint64_t>(*matched, asked_);
    tokens_ = wanted_.tokens;
    tokens_.resize(std::min<std::uint64_t>(count, tokens_.size()));
    if (wanted_.name_space < contents.namespaces.size()) {
      const SnapshotNamespace& found = contents.namespaces[wanted_.name_space];
      if (found.named) name_space_ = found.text;
    }
    return {};
  }

  [[nodiscard]] const Geometry& geometry() const override { return snapshot_.geometry(); }
  [[nodiscard]] const ModelId& model() const override { return snapshot_.model(); }
  [[nodiscard]] Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<std::byte> out) const override {
    return snapshot_.copy(wanted_.tokens, wanted_.name_space, layer, plane, range, out);
  }

 private:
  Snapshot snapshot_;
  Wanted wanted_;  ///< all of them: blocks are found by all of their tokens
};

Result<Wanted> tokens_of_path(const Snapshot& snapshot, const SnapshotContents& contents,
                              const std::string& text) {
  std::vector<PathInfo> names;
  for (const SnapshotPath& path : contents.paths) {
    PathInfo& name = names.emplace_back();
    name.path = path.path;
  }
  const auto found = find_path(text, names, "esker info FILE");
  if (!found) return tl::make_unexpected(found.error());
  auto tokens = snapshot.token_ids(*found);
  if (!tokens) return tl::make_unexpected(tokens.error());
  const auto path = std::find_if(contents.paths.begin(), contents.paths.end(),
                                 [&](const SnapshotPath& entry) { return entry.path == *found; });
  return Wanted{std::move(*tokens), path->name_space, *found};
}

Result<Wanted> tokens_of_session(const Snapshot& snapshot, const SnapshotContents& contents,
                                 const std::string& name) {
  const auto session =
      std::find_if(contents.sessions.begin(), contents.sessions.end(),
                   [&](const SnapshotSession& entry) { return entry.name == name; });
  if (session == contents.sessions.end()) {
    return failure(Errc::missing,
                   fmt::format("{}: there is no session {}; `esker info FILE` lists those that are "
                               "there",
                               snapshot.info().path, quoted(name)));
  }
  auto tokens = snapshot.session_token_ids(name);
  if (!tokens) return tl::make_unexpected(tokens.error());
  return Wanted{std::move(*tokens), session->name_space, 0};
}

Result<Wanted> tokens_of_prompt(const Snapshot& snapshot, const PromptArgs& prompt) {
  auto ids = read_token_ids(prompt.ids_file);
  if (!ids) return tl::make_unexpected(ids.error());
  const auto space = snapshot.find_namespace(prompt.name_space);
  if (!space) return tl::make_unexpected(space.error());
  return Wanted{std::move(*ids), *space, 0};
}

Result<PrefixChoice> settled(const std::string& file, const SnapshotContents& contents,
                             const PrefixChoice& choice) {
  const bool named =
      !choice.path.empty() || !choice.session.empty() || !choice.prompt.ids_file.empty();
  if (named) return choice;
  std::vector<std::string> names;
  for (const SnapshotSession& session : contents.sessions) names.push_back(session.name);
  std::vector<std::uint64_t> leaves;
  for (const SnapshotPath& path : contents.paths) leaves.push_back(path.path);
  auto only = only_choice(file, names, leaves);
  if (only) only->prompt = choice.prompt;
  return only;
}

}  // namespace

Result<std::unique_ptr<RowsSource>> open_snapshot_rows(const std::string& file,
                                                       const PrefixChoice& choice) {
  auto snapshot = Snapshot::open(file);
  if (!snapshot) return tl::make_unexpected(snapshot.error());
  const auto contents = snapshot->contents();
  if (!contents) return tl::make_unexpected(contents.error());
  const auto chosen = settled(file, *contents, choice);
  if (!chosen) return tl::make_unexpected(chosen.error());
  auto wanted = !chosen->session.empty() ? tokens_of_session(*snapshot, *contents, chosen->session)
                : !chosen->path.empty()  ? tokens_of_path(*snapshot, *contents, chosen->path)
                                         : tokens_of_prompt(*snapshot, chosen->prompt);
  if (!wanted) return tl::make_unexpected(wanted.error());
  const std::uint64_t asked =
      chosen->prompt.first.value_or(static_cast<std::uint32_t>(wanted->tokens.size()));
  auto rows = std::make_unique<SnapshotRows>(std::move(*snapshot), std::move(*wanted), asked);
  if (const auto found = rows->find(*contents); !found) return tl::make_unexpected(found.error());
  return rows;
}

}  // namespace esker::cli
