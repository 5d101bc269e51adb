#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <span>
#include <string>
#include <vector>

#include "llama/cache_section.hpp"
#include "llama/input_file.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

/// One sequence of llama.cpp: its tokens and its K and V rows, as `POST /slots/N?action=save` and
/// `llama_state_seq_save_file` write it, or `llama_state_save_file` for a context of one sequence.
/// Threads:  `rows` from any thread.
/// Lifetime: keeps the file open; tokens and layout are read once, rows when they are asked for.
/// Errors:   `open` refuses whatever does not check against the size of the file, and names kinds
///           of files that cannot be shared in blocks. `rows` is `Errc::io` when the file shrank.
/// Cost:     `open` reads the headers and keeps 8 bytes per token; `rows` is one pread for adjacent
///           rows, more where cells are shuffled or V is stored by channels.
class SeqFile {
 public:
  /// "-" is standard input.
  [[nodiscard]] static Result<SeqFile> open(const std::string& path);
  [[nodiscard]] static Result<SeqFile> parse(InputFile file);

  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.bytes(); }
  [[nodiscard]] const SeqLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] Tokens tokens() const noexcept { return tokens_; }
  [[nodiscard]] Geometry geometry(std::uint32_t block_tokens) const {
    return layout_.geometry(block_tokens);
  }

  /// The rows of `range` in order of position, whatever the order in the file. `out` holds exactly
  /// these rows.
  [[nodiscard]] Result<void> rows(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<std::byte> out) const;

  /// Fails when someone wrote to the file since `open`: then rows may belong to other tokens.
  [[nodiscard]] Result<void> check_unchanged() const { return file_.check_unchanged(); }

 private:
  explicit SeqFile(InputFile file) : file_(std::move(file)) {}
  [[nodiscard]] Result<void> read_packed(const PlanePlace& place, TokenRange range,
                                         std::span<std::byte> out) const;
  [[nodiscard]] Result<void> read_transposed(const PlanePlace& place, TokenRange range,
                                             std::span<std::byte> out) const;

  InputFile file_;
  SeqLayout layout_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint32_t> row_of_position_;
  std::vector<PlanePlace> keys_;
  std::vector<PlanePlace> values_;
};

/// The geometry that a store needs for files like this one.
[[nodiscard]] Result<Geometry> geometry_of_file(const std::string& path,
                                                std::uint32_t block_tokens);

}  // namespace esker::cli::llama
