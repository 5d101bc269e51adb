#include "snapshot_operand.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "input_kind.hpp"
#include "store_operand.hpp"

namespace esker::cli {

bool means_snapshot(const std::string& operand) {
  if (operand == "-") return true;
  if (is_store_in_home(operand)) return false;
  std::error_code ignored;
  // A file whose first bytes are damaged still is what its name says.
  const bool called_so =
      operand.ends_with(".esnap") && std::filesystem::is_regular_file(operand, ignored);
  return called_so || is_snapshot_file(operand);
}

std::string input_name(const std::string& operand) {
  return operand == "-" ? "standard input" : operand;
}

Result<OpenSnapshot> adopt_snapshot(llama::UniqueFd input, const std::string& operand) {
  auto snapshot = Snapshot::open(input.get(), input_name(operand));
  if (!snapshot) return tl::make_unexpected(std::move(snapshot).error());
  return OpenSnapshot{std::move(input), std::move(*snapshot)};
}

Result<OpenSnapshot> open_snapshot(const std::string& operand) {
  auto input = open_input(operand);
  if (!input) return tl::make_unexpected(std::move(input).error());
  return adopt_snapshot(std::move(*input), operand);
}

std::uint32_t thread_count(std::uint32_t given) noexcept {
  return given != 0 ? given : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace esker::cli
