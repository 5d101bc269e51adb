#include "rows_source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "input_kind.hpp"
#include "llama/rotation.hpp"
#include "llama/seq_reader.hpp"
#include "path_name.hpp"
#include "session_operand.hpp"
#include "store_operand.hpp"

namespace esker::cli {

namespace {

constexpr std::size_t listed_names = 5;
/// The geometry of a file has no blocks; any number is right.
constexpr std::uint32_t any_block_tokens = 32;

/// The rows of one file of llama.cpp.
class LlamaRows final : public RowsSource {
 public:
  LlamaRows(llama::SeqFile file, ModelId model)
      : file_(std::move(file)),
        geometry_(file_.geometry(any_block_tokens)),
        model_(std::move(model)) {
    tokens_.assign(file_.tokens().begin(), file_.tokens().end());
    asked_ = tokens_.size();
  }
  void take_first(std::uint32_t tokens) {
    asked_ = tokens;
    tokens_.resize(std::min<std::size_t>(tokens_.size(), tokens));
  }

  [[nodiscard]] const Geometry& geometry() const override { return geometry_; }
  [[nodiscard]] const ModelId& model() const override { return model_; }
  [[nodiscard]] Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<std::byte> out) const override {
    return file_.rows(layer, plane, range, out);
  }
  [[nodiscard]] const llama::SeqLayout* layout() const noexcept override { return &file_.layout(); }
  [[nodiscard]] Result<void> check_unchanged() const override { return file_.check_unchanged(); }

 private:
  llama::SeqFile file_;
  Geometry geometry_;
  ModelId model_;
};

/// A file, or a pipe with a name. Stores are directories.
bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

template <class Item, class Name>
std::string listed(std::span<const Item> items, const Name& name) {
  std::string list;
  for (std::size_t i = 0; i < items.size() && i < listed_names; ++i) list += ' ' + name(items[i]);
  if (items.size() > listed_names) list += " ...";
  return list;
}

tl::unexpected<Error> invalid(std::string message) {
  return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
}

}  // namespace

Result<SourceKind> kind_of_source(const std::string& operand) {
  if (operand == "-") return SourceKind::llama;
  if (is_store_in_home(operand) || !is_file(operand)) return SourceKind::store;
  return is_snapshot_file(operand) ? SourceKind::snapshot : SourceKind::llama;
}

Result<std::unique_ptr<RowsSource>> open_rows(const std::string& operand,
                                              const PrefixChoice& choice, RowsCheck check) {
  const auto kind = kind_of_source(operand);
  if (!kind) return tl::make_unexpected(kind.error());
  if (*kind == SourceKind::store) return open_store_rows(operand, choice, check);
  return *kind == SourceKind::snapshot ? open_snapshot_rows(operand, choice)
                                       : open_llama_rows(operand, choice);
}

Result<std::unique_ptr<RowsSource>> open_llama_rows(const std::string& file,
                                                    const PrefixChoice& choice) {
  if (!choice.path.empty() || !choice.session.empty() || !choice.prompt.ids_file.empty()) {
    return invalid(fmt::format(
        "{}: a file of llama.cpp holds one text: leave PATH, --session and --ids out", file));
  }
  auto opened = llama::SeqFile::open(file);
  if (!opened) return tl::make_unexpected(opened.error());
  ModelId model;
  if (const auto added = llama::add_rotation(opened->layout(), model); !added) {
    return tl::make_unexpected(added.error());
  }
  auto rows = std::make_unique<LlamaRows>(std::move(*opened), std::move(model));
  if (choice.prompt.first) rows->take_first(*choice.prompt.first);
  return rows;
}

Result<PrefixChoice> only_choice(const std::string& operand, std::span<const std::string> sessions,
                                 std::span<const std::uint64_t> paths) {
  PrefixChoice choice;
  if (sessions.size() == 1) {
    choice.session = sessions.front();
    return choice;
  }
  if (sessions.size() > 1) {
    return invalid(fmt::format("{}: holds {} sessions; say which by --session:{}", operand,
                               sessions.size(), listed(sessions, quoted)));
  }
  if (paths.size() == 1) {
    choice.path = full_path_name(paths.front());
    return choice;
  }
  if (paths.empty()) return invalid(fmt::format("{}: holds no path and no session", operand));
  return invalid(fmt::format("{}: holds {} paths; say which:{}", operand, paths.size(),
                             listed(paths, path_name)));
}

}  // namespace esker::cli
