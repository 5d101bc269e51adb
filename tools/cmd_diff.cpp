#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "args.hpp"
#include "diff_paths.hpp"
#include "diff_side.hpp"
#include "progress.hpp"
#include "session_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// Both sides, with what they hold.
struct Sides {
  std::unique_ptr<DiffSide> side[2];
  std::vector<DiffPath> paths[2];
  std::uint64_t keys[2]{};
  std::vector<DiffSession> sessions[2];
};

struct SessionDifference {
  std::vector<std::string> only[2];
  std::vector<std::string> unequal;
};

struct Difference {
  std::string model;
  std::vector<OnlyHere> only[2];
  RowDifference rows;
  SessionDifference sessions;
  bool other_keys = false;

  [[nodiscard]] bool equal() const {
    return model.empty() && only[0].empty() && only[1].empty() && rows.rows == 0 &&
           sessions.only[0].empty() && sessions.only[1].empty() && sessions.unequal.empty() &&
           !other_keys;
  }
};

Result<void> fill(Sides& sides, int i) {
  DiffSide& side = *sides.side[i];
  auto paths = side.paths();
  if (!paths) return tl::make_unexpected(paths.error());
  const auto keys = side.keys();
  if (!keys) return tl::make_unexpected(keys.error());
  auto sessions = side.sessions();
  if (!sessions) return tl::make_unexpected(sessions.error());
  sides.paths[i] = std::move(*paths);
  sides.keys[i] = *keys;
  sides.sessions[i] = std::move(*sessions);
  return {};
}

/// Each side may know the names of namespaces that the other one has digests of.
Result<void> name_spaces(Sides& sides, const std::vector<std::string>& given) {
  for (int i = 0; i < 2; ++i) {
    auto names = sides.side[1 - i]->spaces();
    if (!names) return tl::make_unexpected(names.error());
    names->insert(names->end(), given.begin(), given.end());
    if (const auto named = sides.side[i]->name_spaces(*names); !named) return named;
  }
  return {};
}

bool are_equal(const DiffSession& a, const DiffSession& b) {
  if (a.space != b.space || a.count != b.count) return false;
  return !a.readable || !b.readable || a.tokens == b.tokens;
}

SessionDifference compare_sessions(const Sides& sides) {
  SessionDifference found;
  const auto find = [](const std::vector<DiffSession>& sessions, const std::string& name) {
    return std::find_if(sessions.begin(), sessions.end(),
                        [&](const DiffSession& session) { return session.name == name; });
  };
  for (int i = 0; i < 2; ++i) {
    const std::vector<DiffSession>& others = sides.sessions[1 - i];
    for (const DiffSession& session : sides.sessions[i]) {
      const auto other = find(others, session.name);
      if (other == others.end())
        found.only[i].push_back(session.name);
      else if (i == 0 && !are_equal(session, *other))
        found.unequal.push_back(session.name);
    }
  }
  return found;
}

std::uint64_t tokens_of(const std::vector<OnlyHere>& only) {
  std::uint64_t tokens = 0;
  for (const OnlyHere& entry : only) tokens += entry.tokens.size();
  return tokens;
}

std::string in_space(const DiffPath& path) {
  return path.shown_space.empty() ? "" : fmt::format(" of {}", path.shown_space);
}

/// The first of them tell where to look; `--json` has all.
void show_unequal(const std::vector<Unequal>& all, Output& out) {
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const Unequal& unequal = all[i];
    out.line(fmt::format("! {}{}: layer {} {}: {}, the first is token {}", unequal.path->name,
                         in_space(*unequal.path), unequal.layer, name(unequal.plane),
                         format_items(unequal.rows, "unequal row"), unequal.first_token),
             Tint::bad);
  }
  if (all.size() > most) {
    out.line(
        fmt::format("! and {} more planes; --json lists them", format_count(all.size() - most)),
        Tint::bad);
  }
}

void show(const DiffArgs& args, const Difference& found, Output& out) {
  const std::string* names[2] = {&args.a, &args.b};
  if (!found.model.empty()) out.line(fmt::format("! model: {}", found.model), Tint::bad);
  for (int i = 0; i < 2; ++i) {
    for (const OnlyHere& only : found.only[i]) {
      out.line(fmt::format("{} {}{}: tokens {} to {} only in {}", i == 0 ? '-' : '+',
                           only.path->name, in_space(*only.path), only.tokens.begin,
                           only.tokens.end, *names[i]));
    }
  }
  show_unequal(found.rows.unequal, out);
  for (int i = 0; i < 2; ++i) {
    for (const std::string& session : found.sessions.only[i]) {
      out.line(fmt::format("{} session {} only in {}", i == 0 ? '-' : '+', cli::quoted(session),
                           *names[i]));
    }
  }
  for (const std::string& session : found.sessions.unequal) {
    out.line(fmt::format("! session {}: other tokens", cli::quoted(session)), Tint::bad);
  }
  if (found.other_keys) out.line("! blocks under opaque keys: not as many", Tint::bad);
  out.line(
      fmt::format(
          "{} in both, {} only in {}, {} only in {}: {}", format_items(found.rows.tokens, "token"),
          format_count(tokens_of(found.only[0])), args.a, format_count(tokens_of(found.only[1])),
          args.b,
          found.rows.rows == 0 ? "no unequal rows" : format_items(found.rows.rows, "unequal row")),
      found.equal() ? Tint::good : Tint::none);
}

List only_values(const std::vector<OnlyHere>& only) {
  List list;
  for (const OnlyHere& entry : only) {
    list.emplace_back(Object{{"path", entry.path->name},
                             {"namespace", entry.path->shown_space},
                             {"first_token", entry.tokens.begin},
                             {"tokens", entry.tokens.size()}});
  }
  return list;
}

List unequal_values(const std::vector<Unequal>& unequal) {
  List list;
  for (const Unequal& entry : unequal) {
    list.emplace_back(Object{{"path", entry.path->name},
                             {"namespace", entry.path->shown_space},
                             {"layer", entry.layer},
                             {"plane", std::string(name(entry.plane))},
                             {"rows", entry.rows},
                             {"first_token", entry.first_token}});
  }
  return list;
}

List names_value(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

Object values(const DiffArgs& args, const Difference& found) {
  return {{"a", args.a},
          {"b", args.b},
          {"equal", found.equal()},
          {"model", found.model.empty() ? Value() : Value(found.model)},
          {"tokens_in_both", found.rows.tokens},
          {"tokens_only_in_a", tokens_of(found.only[0])},
          {"tokens_only_in_b", tokens_of(found.only[1])},
          {"unequal_rows", found.rows.rows},
          {"only_in_a", only_values(found.only[0])},
          {"only_in_b", only_values(found.only[1])},
          {"unequal", unequal_values(found.rows.unequal)},
          {"sessions_only_in_a", names_value(found.sessions.only[0])},
          {"sessions_only_in_b", names_value(found.sessions.only[1])},
          {"unequal_sessions", names_value(found.sessions.unequal)}};
}

}  // namespace

int run(const DiffArgs& args, Output& out) {
  Sides sides;
  const std::string* operands[2] = {&args.a, &args.b};
  for (int i = 0; i < 2; ++i) {
    auto side = DiffSide::open(*operands[i]);
    if (!side) return out.fail(*operands[i], side.error());
    sides.side[i] = std::move(*side);
  }
  const Geometry& shape = sides.side[0]->geometry();
  if (const std::string other = shape.row_difference(sides.side[1]->geometry()); !other.empty()) {
    return out.fail(args.b, Error{Errc::incompatible, 0,
                                  fmt::format("its rows cannot be compared: {}", other)});
  }
  if (const auto named = name_spaces(sides, args.namespaces); !named) {
    return out.fail("", named.error());
  }
  for (int i = 0; i < 2; ++i) {
    if (const auto filled = fill(sides, i); !filled) return out.fail(*operands[i], filled.error());
  }
  Difference found;
  found.model = sides.side[0]->model().difference(sides.side[1]->model());
  found.only[0] = only_here(sides.paths[0], sides.paths[1]);
  found.only[1] = only_here(sides.paths[1], sides.paths[0]);
  found.sessions = compare_sessions(sides);
  found.other_keys = sides.keys[0] != sides.keys[1];
  ProgressLine progress(out, "comparing");
  auto rows = compare_rows({*sides.side[0], sides.paths[0]}, {*sides.side[1], sides.paths[1]},
                           progress.callback());
  progress.done();
  if (!rows) return out.fail("", rows.error());
  found.rows = std::move(*rows);
  show(args, found, out);
  if (sides.keys[0] + sides.keys[1] != 0) {
    out.note("", fmt::format("{} and {} under opaque keys were counted, not compared",
                             format_items(sides.keys[0], "block"), format_count(sides.keys[1])));
  }
  out.json(values(args, found));
  return code(found.equal() ? Exit::ok : Exit::no);
}

}  // namespace esker::cli
