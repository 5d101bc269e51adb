#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace esker::cli {

/// A line of a live view: pieces of text, each in its own style, cut to the width of the screen.
class StyledLine {
 public:
  /// `style` is what stands between "\x1b[" and "m", such as "1;32"; "" for none.
  StyledLine& add(std::string_view text, std::string_view style = "");
  /// So that the next piece ends at the right edge, if there is room.
  StyledLine& right(std::string_view text, std::size_t columns, std::string_view style = "");
  [[nodiscard]] std::string text(std::size_t columns, bool colored) const;

 private:
  std::size_t used_ = 0;
  std::vector<std::pair<std::string, std::string>> pieces_;
};

/// A bar of so many letters with a part of it filled; "[|||    ]" with its brackets.
void add_bar(StyledLine& line, std::size_t letters, double share, std::string_view style);

/// A part of a bar of several.
struct BarPart {
  std::uint64_t amount = 0;
  char letter = '|';
  std::string_view style;
};
/// Parts side by side; one that is not 0 gets at least a letter.
void add_bar(StyledLine& line, std::size_t letters, const std::vector<BarPart>& parts,
             std::uint64_t whole);

}  // namespace esker::cli
