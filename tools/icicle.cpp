#include "icicle.hpp"

#include <algorithm>

namespace esker::cli {

namespace {

class Layout {
 public:
  Layout(std::span<const Branch> branches, const IcicleLimits& limits)
      : branches_(branches), limits_(limits), children_(branches.size()) {
    for (std::uint32_t i = 1; i < branches.size(); ++i) children_[branches[i].parent].push_back(i);
    for (auto& children : children_) {
      std::sort(children.begin(), children.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(branches[b].total_bytes, a) < std::pair(branches[a].total_bytes, b);
      });
    }
  }

  /// False when more pieces would come out than the limit allows.
  bool run(double least_width) {
    pieces_.clear();
    least_width_ = least_width;
    place(0, 0, 0);
    // By index: what follows a piece is put behind it.
    for (std::size_t i = 0; i < pieces_.size() && pieces_.size() <= limits_.pieces; ++i) {
      if (pieces_[i].branch != UINT32_MAX) place_children(i);
    }
    return pieces_.size() <= limits_.pieces;
  }

  [[nodiscard]] std::vector<Icicle> take() { return std::move(pieces_); }

 private:
  [[nodiscard]] double width_of(std::uint64_t bytes) const {
    const auto all = static_cast<double>(std::max<std::uint64_t>(branches_[0].total_bytes, 1));
    return limits_.width * static_cast<double>(bytes) / all;
  }

  void place(std::uint32_t at, double x, std::uint32_t row) {
    const Branch& branch = branches_[at];
    Icicle& piece = pieces_.emplace_back();
    piece.x = x;
    piece.width = at == 0 ? limits_.width : width_of(branch.total_bytes);
    piece.row = row;
    piece.branch = at;
    piece.paths = branch.paths;
    piece.bytes = branch.total_bytes;
    piece.last_used_unix_ns = branch.last_used_unix_ns;
    piece.cut = row + 1 == limits_.rows && !children_[at].empty();
  }

  void place_children(std::size_t piece) {
    if (pieces_[piece].cut) return;
    double x = pieces_[piece].x;
    const std::uint32_t row = pieces_[piece].row + 1;
    const std::vector<std::uint32_t>& children = children_[pieces_[piece].branch];
    std::size_t i = 0;
    for (; i < children.size(); ++i) {
      const double width = width_of(branches_[children[i]].total_bytes);
      if (width < least_width_) break;
      place(children[i], x, row);
      x += width;
    }
    join({children.begin() + static_cast<std::ptrdiff_t>(i), children.end()}, x, row);
  }

  /// Makes pieces that are wide enough of branches that are not.
  void join(std::vector<std::uint32_t> narrow, double x, std::uint32_t row) {
    std::sort(narrow.begin(), narrow.end(), [&](std::uint32_t a, std::uint32_t b) {
      return branches_[a].last_used_unix_ns > branches_[b].last_used_unix_ns;
    });
    Icicle joined;
    const auto put = [&] {
      constexpr double least_visible = 0.4;
      joined.x = x;
      joined.row = row;
      joined.width = width_of(joined.bytes);
      if (joined.width >= least_visible) pieces_.push_back(joined);
      x += joined.width;
    };
    joined.branches = 0;
    for (const std::uint32_t at : narrow) {
      const Branch& branch = branches_[at];
      ++joined.branches;
      joined.paths += branch.paths;
      joined.bytes += branch.total_bytes;
      joined.last_used_unix_ns = std::max(joined.last_used_unix_ns, branch.last_used_unix_ns);
      if (width_of(joined.bytes) < least_width_) continue;
      put();
      joined = {};
      joined.branches = 0;
    }
    if (joined.branches != 0) put();
  }

  std::span<const Branch> branches_;
  const IcicleLimits& limits_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<Icicle> pieces_;
  double least_width_ = 0;
};

}  // namespace

std::vector<Icicle> lay_out(std::span<const Branch> branches, const IcicleLimits& limits) {
  Layout layout(branches, limits);
  double least_width = 2;
  while (!layout.run(least_width) && least_width < limits.width) least_width *= 1.5;
  return layout.take();
}

}  // namespace esker::cli
