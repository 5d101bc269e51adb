#include "diff_paths.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace esker::cli {

namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20;

std::uint32_t common_tokens(const DiffPath& a, const DiffPath& b) {
  if (a.space != b.space) return 0;
  const auto end =
      std::mismatch(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end()).first;
  return static_cast<std::uint32_t>(end - a.tokens.begin());
}

/// The path of `paths` that has most leading tokens in common with `path`, and how many.
struct Match {
  const DiffPath* path = nullptr;
  std::uint32_t tokens = 0;
};

/// In sorted order the best match stands right before or right behind.
Match best_match(const DiffPath& path, std::span<const DiffPath> paths) {
  const auto behind = std::lower_bound(
      paths.begin(), paths.end(), path, [](const DiffPath& entry, const DiffPath& wanted) {
        return std::tie(entry.space, entry.tokens) < std::tie(wanted.space, wanted.tokens);
      });
  Match best;
  const auto consider = [&](const DiffPath& entry) {
    const std::uint32_t tokens = common_tokens(path, entry);
    if (tokens > best.tokens) best = {&entry, tokens};
  };
  if (behind != paths.end()) consider(*behind);
  if (behind != paths.begin()) consider(*(behind - 1));
  return best;
}

/// Tokens of paths[i] that the paths before it have too: in sorted order all of them are the
/// neighbour's.
std::uint32_t seen_tokens(std::span<const DiffPath> paths, std::size_t i) {
  return i == 0 ? 0 : common_tokens(paths[i], paths[i - 1]);
}

/// What is to be compared of a path of the first side.
struct Task {
  const DiffPath* a = nullptr;
  const DiffPath* b = nullptr;
  TokenRange tokens;
  std::uint32_t new_tokens = 0;  ///< that no path before it has
};

/// Paths that fork inside a block have copies of its first rows, so whole blocks are compared.
std::vector<Task> tasks_of(const Listed& a, const Listed& b) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < a.paths.size(); ++i) {
    const Match match = best_match(a.paths[i], b.paths);
    const std::uint32_t seen = seen_tokens(a.paths, i);
    if (seen >= match.tokens) continue;
    std::uint32_t begin = seen;
    for (const DiffSide* side : {&a.side, &b.side}) {
      begin = std::min(begin, seen - seen % side->geometry().block_tokens);
    }
    tasks.push_back({&a.paths[i], match.path, {begin, match.tokens}, match.tokens - seen});
  }
  return tasks;
}

/// Compares a plane piece by piece.
class Comparison {
 public:
  Comparison(const Geometry& geometry, RowDifference& found) : geometry_(geometry), found_(found) {}

  Result<void> plane(const Task& task, const DiffRows& a, const DiffRows& b, std::uint32_t layer,
                     Plane plane) {
    const std::size_t row_bytes = geometry_.row_bytes(layer, plane);
    if (row_bytes == 0) return {};
    Unequal unequal{task.a, layer, plane, 0, 0};
    const auto step = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(piece_bytes / row_bytes, 1, task.tokens.size()));
    for (std::uint32_t begin = task.tokens.begin; begin < task.tokens.end;) {
      const TokenRange range{begin, begin + std::min(step, task.tokens.end - begin)};
      left_.resize(range.size() * row_bytes);
      right_.resize(range.size() * row_bytes);
      auto done = a.copy(layer, plane, range, left_);
      if (done) done = b.copy(layer, plane, range, right_);
      if (!done) return done;
      count(range, row_bytes, unequal);
      begin = range.end;
    }
    if (unequal.rows != 0) found_.unequal.push_back(unequal);
    found_.rows += unequal.rows;
    return {};
  }

 private:
  void count(TokenRange range, std::size_t row_bytes, Unequal& unequal) const {
    if (left_ == right_) return;
    for (std::uint32_t i = 0; i < range.size(); ++i) {
      const std::size_t at = i * row_bytes;
      if (std::memcmp(left_.data() + at, right_.data() + at, row_bytes) == 0) continue;
      if (unequal.rows++ == 0) unequal.first_token = range.begin + i;
    }
  }

  const Geometry& geometry_;
  RowDifference& found_;
  std::vector<std::byte> left_;
  std::vector<std::byte> right_;
};

}  // namespace

std::vector<OnlyHere> only_here(std::span<const DiffPath> paths, std::span<const DiffPath> other) {
  std::vector<OnlyHere> found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::uint32_t known = std::max(best_match(paths[i], other).tokens, seen_tokens(paths, i));
    const TokenRange tokens{known, static_cast<std::uint32_t>(paths[i].tokens.size())};
    if (!tokens.empty()) found.push_back({&paths[i], tokens});
  }
  return found;
}

Result<RowDifference> compare_rows(const Listed& a, const Listed& b, const Progress& progress) {
  const std::vector<Task> tasks = tasks_of(a, b);
  const Geometry& geometry = a.side.geometry();
  const std::uint64_t token_bytes = geometry.token_bytes();
  std::uint64_t total = 0;
  for (const Task& task : tasks) total += task.new_tokens * token_bytes;
  RowDifference found;
  Comparison comparison(geometry, found);
  for (const Task& task : tasks) {
    const auto left = a.side.rows(*task.a);
    if (!left) return tl::make_unexpected(left.error());
    const auto right = b.side.rows(*task.b);
    if (!right) return tl::make_unexpected(right.error());
    for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
      for (const Plane plane : {Plane::key, Plane::value}) {
        const auto done = comparison.plane(task, **left, **right, layer, plane);
        if (!done) return tl::make_unexpected(done.error());
      }
    }
    found.tokens += task.new_tokens;
    if (progress) progress(found.tokens * token_bytes, total);
  }
  return found;
}

}  // namespace esker::cli
