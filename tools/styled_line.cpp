#include "styled_line.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plain_text.hpp"

namespace esker::cli {

StyledLine& StyledLine::add(std::string_view text, std::string_view style) {
  std::string plain = harmless(text);
  used_ += width(plain);
  pieces_.emplace_back(std::move(plain), style);
  return *this;
}

StyledLine& StyledLine::right(std::string_view text, std::size_t columns, std::string_view style) {
  const std::size_t letters = width(harmless(text));
  if (used_ + letters + 1 > columns) return *this;
  return add(std::string(columns - used_ - letters, ' ')).add(text, style);
}

std::string StyledLine::text(std::size_t columns, bool colored) const {
  std::string out;
  std::size_t left = columns;
  for (const auto& [text, style] : pieces_) {
    const std::string cut = fitted(text, std::min(left, width(text)));
    left -= width(cut);
    if (!colored || style.empty() || cut.empty()) {
      out += cut;
    } else {
      out += "\x1b[" + style + "m" + cut + "\x1b[0m";
    }
  }
  return out;
}

void add_bar(StyledLine& line, std::size_t letters, double share, std::string_view style) {
  const double filled = std::clamp(share, 0.0, 1.0) * static_cast<double>(letters);
  const auto full = static_cast<std::size_t>(std::lround(filled));
  line.add("[").add(std::string(full, '|'), style).add(std::string(letters - full, ' ') + "]");
}

void add_bar(StyledLine& line, std::size_t letters, const std::vector<BarPart>& parts,
             std::uint64_t whole) {
  line.add("[");
  std::size_t left = letters;
  for (const BarPart& part : parts) {
    if (part.amount == 0 || whole == 0) continue;
    const double share = static_cast<double>(part.amount) / static_cast<double>(whole);
    const auto wanted = static_cast<std::size_t>(share * static_cast<double>(letters) + 0.5);
    const std::size_t count = std::min(left, std::max<std::size_t>(wanted, 1));
    line.add(std::string(count, part.letter), part.style);
    left -= count;
  }
  line.add(std::string(left, ' ') + "]");
}

}  // namespace esker::cli
