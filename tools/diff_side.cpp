#include "diff_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <esker/session.hpp>
#include <esker/snapshot.hpp>
#include <esker/store.hpp>
#include <set>
#include <utility>

#include "describe.hpp"
#include "path_name.hpp"
#include "snapshot_operand.hpp"
#include "snapshot_text.hpp"
#include "store_operand.hpp"

namespace esker::cli {

namespace {

void sort_paths(std::vector<DiffPath>& paths) {
  std::sort(paths.begin(), paths.end(), [](const DiffPath& a, const DiffPath& b) {
    return std::tie(a.space, a.tokens) < std::tie(b.space, b.tokens);
  });
}

// A store.

class StoreRows final : public DiffRows {
 public:
  explicit StoreRows(Prefix prefix) : prefix_(std::move(prefix)) {}
  Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                    std::span<std::byte> out) const override {
    return prefix_.copy(layer, plane, range, out);
  }

 private:
  Prefix prefix_;
};

class StoreSide final : public DiffSide {
 public:
  explicit StoreSide(Store store) : store_(std::move(store)) {}

  const Geometry& geometry() const override { return store_.geometry(); }
  const ModelId& model() const override { return store_.model(); }
  Result<void> name_spaces(const std::vector<std::string>&) override { return {}; }

  Result<std::vector<std::string>> spaces() const override {
    const auto paths = store_.paths();
    if (!paths) return tl::make_unexpected(paths.error());
    std::set<std::string> names;
    for (const PathInfo& path : *paths) names.insert(path.name_space);
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<std::vector<DiffPath>> paths() const override {
    const auto stored = store_.paths();
    if (!stored) return tl::make_unexpected(stored.error());
    std::vector<DiffPath> paths;
    for (const PathInfo& path : *stored) {
      if (path.key) continue;
      const auto prefix = store_.lookup_path(path.path);
      if (!prefix && prefix.error().code == Errc::invalid) continue;  // evicted meanwhile
      if (!prefix) return tl::make_unexpected(prefix.error());
      auto tokens = prefix->token_ids();
      if (!tokens) return tl::make_unexpected(tokens.error());
      paths.push_back({path.name_space, namespace_text(path.name_space), std::move(*tokens),
                       path_name(path.path)});
    }
    sort_paths(paths);
    return paths;
  }

  Result<std::uint64_t> keys() const override {
    const auto paths = store_.paths();
    if (!paths) return tl::make_unexpected(paths.error());
    return static_cast<std::uint64_t>(
        std::count_if(paths->begin(), paths->end(), [](const PathInfo& path) { return path.key; }));
  }

  Result<std::vector<DiffSession>> sessions() override {
    const auto infos = Session::list(store_);
    if (!infos) return tl::make_unexpected(infos.error());
    std::vector<DiffSession> sessions;
    for (const SessionInfo& info : *infos) {
      // What can only be removed is in no snapshot either.
      if (info.expired) continue;
      DiffSession session{info.name, info.name_space, info.tokens, false, {}};
      if (const auto open = Session::resume(store_, info.name)) {
        session.readable = true;
        session.tokens.assign(open->token_ids().begin(), open->token_ids().end());
      }
      sessions.push_back(std::move(session));
    }
    return sessions;
  }

  Result<std::unique_ptr<DiffRows>> rows(const DiffPath& path) const override {
    Prefix prefix = store_.lookup(path.tokens, path.space);
    if (prefix.tokens() < path.tokens.size()) {
      return tl::make_unexpected(
          Error{Errc::busy, 0,
                fmt::format("path {} was evicted while it was compared; run it again", path.name)});
    }
    return std::unique_ptr<DiffRows>(std::make_unique<StoreRows>(std::move(prefix)));
  }

 private:
  Store store_;
};

// A snapshot.

class SnapshotRows final : public DiffRows {
 public:
  SnapshotRows(const Snapshot& snapshot, Tokens tokens, std::uint32_t space)
      : snapshot_(snapshot), tokens_(tokens), space_(space) {}
  Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                    std::span<std::byte> out) const override {
    return snapshot_.copy(tokens_, space_, layer, plane, range, out);
  }

 private:
  const Snapshot& snapshot_;
  Tokens tokens_;
  std::uint32_t space_;
};

class SnapshotSide final : public DiffSide {
 public:
  SnapshotSide(OpenSnapshot open, SnapshotContents contents)
      : open_(std::move(open)), contents_(std::move(contents)) {}

  const Geometry& geometry() const override { return open_.snapshot.geometry(); }
  const ModelId& model() const override { return open_.snapshot.model(); }

  Result<std::vector<std::string>> spaces() const override {
    std::vector<std::string> names;
    for (const SnapshotNamespace& space : contents_.namespaces) {
      if (space.named) names.push_back(space.text);
    }
    return names;
  }

  Result<void> name_spaces(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      const bool all_named =
          std::all_of(contents_.namespaces.begin(), contents_.namespaces.end(),
                      [](const SnapshotNamespace& space) { return space.named; });
      if (all_named) return {};
      const auto found = open_.snapshot.find_namespace(name);
      if (!found && found.error().code == Errc::missing) continue;
      if (!found) return tl::make_unexpected(found.error());
      contents_.namespaces.at(*found).named = true;
      contents_.namespaces.at(*found).text = name;
    }
    return {};
  }

  Result<std::vector<DiffPath>> paths() const override {
    std::vector<DiffPath> paths;
    for (const SnapshotPath& path : contents_.paths) {
      if (path.key) continue;
      auto tokens = open_.snapshot.token_ids(path.path);
      if (!tokens) return tl::make_unexpected(tokens.error());
      const SnapshotNamespace& space = contents_.namespaces.at(path.name_space);
      paths.push_back({compared(space),
                       space.named && space.text.empty() ? "" : namespace_text(space),
                       std::move(*tokens), path_name(path.path)});
    }
    sort_paths(paths);
    return paths;
  }

  Result<std::uint64_t> keys() const override {
    return static_cast<std::uint64_t>(
        std::count_if(contents_.paths.begin(), contents_.paths.end(),
                      [](const SnapshotPath& path) { return path.key; }));
  }

  Result<std::vector<DiffSession>> sessions() override {
    std::vector<DiffSession> sessions;
    for (const SnapshotSession& session : contents_.sessions) {
      auto tokens = open_.snapshot.session_token_ids(session.name);
      if (!tokens) return tl::make_unexpected(tokens.error());
      sessions.push_back({session.name, compared(contents_.namespaces.at(session.name_space)),
                          session.tokens, true, std::move(*tokens)});
    }
    std::sort(sessions.begin(), sessions.end(),
              [](const DiffSession& a, const DiffSession& b) { return a.name < b.name; });
    return sessions;
  }

  Result<std::unique_ptr<DiffRows>> rows(const DiffPath& path) const override {
    for (std::uint32_t i = 0; i < contents_.namespaces.size(); ++i) {
      if (compared(contents_.namespaces[i]) != path.space) continue;
      return std::unique_ptr<DiffRows>(
          std::make_unique<SnapshotRows>(open_.snapshot, path.tokens, i));
    }
    return tl::make_unexpected(
        Error{Errc::invalid, 0, fmt::format("path {} is of no namespace", path.name)});
  }

 private:
  /// Longer than any namespace, so that a digest equals none.
  static std::string compared(const SnapshotNamespace& space) {
    return space.named ? space.text : std::string(65, '\0') + space.text;
  }

  OpenSnapshot open_;
  SnapshotContents contents_;
};

Result<std::unique_ptr<DiffSide>> open_snapshot_side(const std::string& operand) {
  auto open = open_snapshot(operand);
  if (!open) return tl::make_unexpected(std::move(open).error());
  if (!open->snapshot.seekable()) {
    return tl::make_unexpected(
        Error{Errc::invalid, 0,
              fmt::format("{}: a stream cannot be searched: write it to a file first",
                          input_name(operand))});
  }
  auto contents = open->snapshot.contents();
  if (!contents) return tl::make_unexpected(std::move(contents).error());
  return std::unique_ptr<DiffSide>(
      std::make_unique<SnapshotSide>(std::move(*open), std::move(*contents)));
}

}  // namespace

Result<std::unique_ptr<DiffSide>> DiffSide::open(const std::string& operand) {
  if (means_snapshot(operand)) return open_snapshot_side(operand);
  auto store = open_to_look(place_of(operand));
  if (!store) return tl::make_unexpected(std::move(store).error());
  return std::unique_ptr<DiffSide>(std::make_unique<StoreSide>(std::move(*store)));
}

}  // namespace esker::cli
