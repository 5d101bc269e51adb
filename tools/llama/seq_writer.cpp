#include "llama/seq_writer.hpp"

#include <algorithm>
#include <vector>

#include "llama/container.hpp"
#include "llama/token_payload.hpp"
#include "llama/transpose.hpp"

namespace esker::cli::llama {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t channels_bytes = std::size_t{64} << 20;

/// One export. Each member writes one part of the file and says whether that worked.
class Writer {
 public:
  Writer(const SeqLayout& layout, Tokens tokens, const RowFill& fill, ByteSink& sink,
         const Progress& progress)
      : layout_(layout), tokens_(tokens), fill_(fill), sink_(sink), progress_(progress) {}

  /// Leaves gaps for the rows instead, and notes where.
  void leave_gaps(std::vector<RowPlace>& places) { places_ = &places; }

  Result<void> run() {
    const auto layers = static_cast<std::uint32_t>(layout_.layers.size());
    auto done = write_head();
    for (std::uint32_t layer = 0; layer < layers && done; ++layer) done = write_keys(layer);
    for (std::uint32_t layer = 0; layer < layers && done; ++layer) {
      if (layout_.row_bytes(layer, Plane::value) > 0) done = write_values(layer);
    }
    for (std::uint32_t stream = 1; stream < layout_.streams && done; ++stream) done = words({0});
    return done ? sink_.flush() : done;
  }

 private:
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(tokens_.size()); }

  Result<void> words(std::initializer_list<std::uint32_t> list) {
    return sink_.put(std::as_bytes(std::span(list.begin(), list.size())));
  }

  Result<void> write_head() {
    const std::vector<std::int32_t> token_list = token_words(layout_.payload, tokens_);
    const bool session = layout_.container == Container::session;
    auto done = words({session ? session_magic : sequence_magic,
                       written_version(layout_.container, layout_.version)});
    if (done) done = sink_.put(std::as_bytes(std::span(token_list)));
    if (done && session) done = write_architecture();
    if (done) done = words({layout_.streams, count()});
    for (std::uint32_t position = 0; position < count() && done; ++position) {
      done = words({position, 1, 0});
    }
    const std::uint32_t transposed = layout_.values_transposed ? 1 : 0;
    if (done) done = words({transposed, static_cast<std::uint32_t>(layout_.layers.size())});
    if (done && layout_.version >= rotation_version) {
      done = words({layout_.key_rotation, layout_.value_rotation});
    }
    return done;
  }

  Result<void> write_architecture() {
    auto done = sink_.put_u32(static_cast<std::uint32_t>(layout_.architecture.size()));
    return done ? sink_.put(std::as_bytes(std::span(layout_.architecture))) : done;
  }

  Result<void> write_keys(std::uint32_t layer) {
    auto done = sink_.put_u32(layout_.key_type);
    if (done) done = sink_.put_u64(layout_.row_bytes(layer, Plane::key));
    return done ? write_rows(layer, Plane::key) : done;
  }

  Result<void> write_values(std::uint32_t layer) {
    const std::uint32_t row_bytes = layout_.row_bytes(layer, Plane::value);
    auto done = sink_.put_u32(layout_.value_type);
    if (!layout_.values_transposed) {
      if (done) done = sink_.put_u64(row_bytes);
      return done ? write_rows(layer, Plane::value) : done;
    }
    const std::uint32_t element_bytes = find_element_type(layout_.value_type)->block_bytes;
    const std::uint32_t channels = row_bytes / element_bytes;
    if (done) done = words({element_bytes, channels});
    const std::size_t channel_bytes = std::size_t{count()} * element_bytes;
    const auto group = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(channels_bytes / channel_bytes, 1, channels));
    for (std::uint32_t first = 0; first < channels && done; first += group) {
      done = write_channels(layer, first, std::min(group, channels - first));
    }
    return done;
  }

  Result<void> write_channels(std::uint32_t layer, std::uint32_t first, std::uint32_t channels) {
    const std::uint32_t element_bytes = find_element_type(layout_.value_type)->block_bytes;
    std::vector<std::byte> buffer(std::size_t{count()} * channels * element_bytes);
    const std::uint32_t row_bytes = layout_.row_bytes(layer, Plane::value);
    const auto gather = [&](TokenRange range, std::span<const std::byte> rows) -> Result<void> {
      rows_to_channels(rows, row_bytes, element_bytes,
                       {buffer, first, channels, range.begin, count()});
      return {};
    };
    const auto done = for_chunks(layer, Plane::value, gather);
    return done ? put_payload(buffer) : done;
  }

  Result<void> write_rows(std::uint32_t layer, Plane plane) {
    if (places_ != nullptr) {
      places_->push_back({layer, plane, sink_.bytes()});
      return sink_.skip(std::uint64_t{count()} * layout_.row_bytes(layer, plane));
    }
    return for_chunks(layer, plane, [this](TokenRange, std::span<const std::byte> rows) {
      return put_payload(rows);
    });
  }

  Result<void> put_payload(std::span<const std::byte> bytes) {
    auto done = sink_.put(bytes);
    if (done && progress_) progress_(sink_.bytes(), layout_.file_bytes(count()));
    return done;
  }

  template <class Use>
  Result<void> for_chunks(std::uint32_t layer, Plane plane, const Use& use) {
    const std::size_t row_bytes = layout_.row_bytes(layer, plane);
    const auto step =
        static_cast<std::uint32_t>(std::clamp<std::size_t>(chunk_bytes / row_bytes, 1, count()));
    chunk_.resize(step * row_bytes);
    for (std::uint32_t begin = 0; begin < count(); begin += step) {
      const TokenRange range{begin, std::min(begin + step, count())};
      const auto rows = std::span(chunk_).first(range.size() * row_bytes);
      auto done = fill_(layer, plane, range, rows);
      if (done) done = use(range, rows);
      if (!done) return done;
    }
    return {};
  }

  const SeqLayout& layout_;
  Tokens tokens_;
  const RowFill& fill_;
  ByteSink& sink_;
  const Progress& progress_;
  std::vector<RowPlace>* places_ = nullptr;
  std::vector<std::byte> chunk_;
};

Result<void> check_layout(const SeqLayout& layout, Tokens tokens) {
  const auto fail = [](const char* what) -> Result<void> {
    return tl::unexpected(Error{Errc::invalid, 0, what});
  };
  const bool version_known = layout.version >= oldest_version && layout.version <= newest_version;
  if (!version_known) return fail("sequence file: version out of range");
  const bool nameless =
      layout.container == Container::session && !is_architecture(layout.architecture);
  if (nameless) return fail("session file: the model's architecture is not known");
  if (tokens.empty()) return fail("sequence file: no tokens to write");
  if (layout.layers.empty()) return fail("sequence file: no layers to write");
  const ElementType* type = find_element_type(layout.value_type);
  if (layout.values_transposed && layout.has_values() &&
      (type == nullptr || type->block_elements != 1)) {
    return fail("sequence file: V cannot be stored by channels when it is quantised");
  }
  return {};
}

}  // namespace

Result<void> write_sequence(const SeqLayout& layout, Tokens tokens, const RowFill& fill,
                            ByteSink& sink, const Progress& progress) {
  const auto checked = check_layout(layout, tokens);
  if (!checked) return checked;
  return Writer(layout, tokens, fill, sink, progress).run();
}

Result<std::vector<RowPlace>> write_frame(const SeqLayout& layout, Tokens tokens, ByteSink& sink) {
  const auto checked = check_layout(layout, tokens);
  if (!checked) return tl::unexpected(checked.error());
  std::vector<RowPlace> places;
  const RowFill no_rows;
  const Progress no_progress;
  Writer writer(layout, tokens, no_rows, sink, no_progress);
  writer.leave_gaps(places);
  const auto done = writer.run();
  if (!done) return tl::unexpected(done.error());
  return places;
}

}  // namespace esker::cli::llama
