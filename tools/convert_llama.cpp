#include "convert_llama.hpp"

#include <fmt/format.h>

#include <optional>

#include "llama/container.hpp"
#include "llama/seq_reader.hpp"
#include "llama/seq_writer.hpp"
#include "llama/store_fit.hpp"
#include "rows_write.hpp"

namespace esker::cli {

namespace {

tl::unexpected<Error> failure(Errc code, std::string message) {
  return tl::make_unexpected(Error{code, 0, std::move(message)});
}

bool quantised(const llama::SeqLayout& layout) {
  const llama::ElementType* key = llama::find_element_type(layout.key_type);
  const llama::ElementType* value = llama::find_element_type(layout.value_type);
  const bool values = layout.has_values() && value != nullptr && value->block_elements > 1;
  return values || (key != nullptr && key->block_elements > 1);
}

/// Files before `rotation_version` do not tell whether quantised rows are rotated.
Result<void> check_rotation(const RowsSource& source, const llama::SeqLayout& to) {
  const llama::SeqLayout* from = source.layout();
  if (from == nullptr || from->version == to.version || !quantised(*from)) return {};
  if (from->version < llama::rotation_version) {
    return failure(Errc::incompatible,
                   fmt::format("kv_rot_k: version {} does not record how quantised rows are "
                               "rotated, which version {} needs: save it with a newer llama.cpp",
                               from->version, to.version));
  }
  if (from->key_rotation == 0 && from->value_rotation == 0) return {};
  return failure(Errc::incompatible,
                 fmt::format("kv_rot_k: the rows are rotated by {}, which version {} cannot record",
                             from->key_rotation, to.version));
}

/// `--file-version`, as files of this kind count theirs.
Result<void> set_version(const ConvertArgs& args, llama::SeqLayout& layout) {
  if (!args.file_version) return {};
  const std::uint32_t oldest = llama::written_version(layout.container, llama::oldest_version);
  const std::uint32_t newest = llama::written_version(layout.container, llama::newest_version);
  if (*args.file_version < oldest || *args.file_version > newest) {
    return failure(
        Errc::invalid,
        fmt::format("--file-version {}: expected {}…{} for {} files", *args.file_version, oldest,
                    newest, layout.architecture.empty() ? "sequence" : "session"));
  }
  layout.version = *args.file_version - llama::written_version(layout.container, 0);
  return {};
}

/// Makes the layout one of a sequence file or of a session file.
Result<void> set_container(const ConvertArgs& args, FileKind to, const RowsSource& source,
                           llama::SeqLayout& layout) {
  if (to == FileKind::llama) {
    layout.container = llama::Container::sequence;
    layout.architecture.clear();
    return {};
  }
  layout.container = llama::Container::session;
  layout.payload = llama::TokenPayload::plain;  // sessions know no other
  if (!args.architecture.empty()) layout.architecture = args.architecture;
  const bool known = source.layout() != nullptr && !source.layout()->architecture.empty();
  if (layout.architecture.empty() && known) layout.architecture = source.layout()->architecture;
  if (layout.architecture.empty()) {
    return failure(Errc::invalid,
                   "a session file names the model's architecture: give --arch, such as llama, or "
                   "--like with a session file");
  }
  if (llama::is_architecture(layout.architecture)) return {};
  return failure(Errc::invalid, fmt::format("--arch {}: expected a name as llama.cpp has it, such "
                                            "as llama or qwen3",
                                            layout.architecture));
}

}  // namespace

Result<llama::SeqLayout> converted_layout(const ConvertArgs& args, FileKind to,
                                          const RowsSource& source) {
  llama::SeqLayout layout;
  if (!args.like.empty()) {
    const auto like = llama::SeqFile::open(args.like);
    if (!like) return tl::make_unexpected(like.error());
    const auto fits = llama::check_fit(*like, source.geometry(), source.model());
    if (!fits) return tl::make_unexpected(fits.error());
    layout = like->layout();
  } else if (source.layout() != nullptr) {
    layout = *source.layout();
  } else {
    return failure(Errc::invalid,
                   "--like FILE is missing: a file that the target server has saved");
  }
  auto done = set_container(args, to, source, layout);
  if (done) done = set_version(args, layout);
  if (done) done = check_rotation(source, layout);
  if (!done) return tl::make_unexpected(done.error());
  return layout;
}

Result<std::uint64_t> write_llama(const llama::SeqLayout& layout, const RowsSource& source,
                                  llama::OutputFile& output, const Progress& progress) {
  const auto fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                        std::span<std::byte> rows) {
    return source.copy(layer, plane, range, rows);
  };
  auto done = output.reserve(layout.file_bytes(source.tokens().size()));
  if (done) done = prove_rows(source, output);
  llama::ByteSink sink(output.fd(), output.name());
  if (done) done = llama::write_sequence(layout, source.tokens(), fill, sink, progress);
  if (done) done = source.check_unchanged();
  if (!done) return tl::make_unexpected(done.error());
  return sink.bytes();
}

}  // namespace esker::cli
