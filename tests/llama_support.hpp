#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <esker/geometry.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "llama/seq_reader.hpp"
#include "llama/seq_writer.hpp"
#include "slot_builder.hpp"

/// What the tests of sequence files share.
namespace esker::test {

using namespace esker::cli::llama;

inline std::string golden(const std::string& name) { return ESKER_TEST_DATA_DIR "/slots/" + name; }

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline UniqueFd memory_file(std::string_view bytes) {
  UniqueFd fd(::memfd_create("slot", MFD_CLOEXEC));
  REQUIRE(fd.get() >= 0);
  REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return fd;
}

inline Result<SeqFile> parse(std::string_view bytes) {
  auto file = InputFile::adopt(memory_file(bytes), "test.slot");
  REQUIRE(file);
  return SeqFile::parse(std::move(*file));
}

/// The reason why these bytes are refused.
inline Error refusal(std::string_view bytes) {
  const auto file = parse(bytes);
  REQUIRE_FALSE(file);
  CHECK_THAT(file.error().message, contains("test.slot: "));
  return file.error();
}

inline std::string patched(std::string bytes, std::size_t offset, std::string_view with) {
  REQUIRE(offset + with.size() <= bytes.size());
  return bytes.replace(offset, with.size(), with);
}

inline std::string patched(const std::string& bytes, std::size_t offset, std::uint32_t word) {
  return patched(bytes, offset, SlotBuilder::words({word}));
}

inline TokenRange all_of(const SeqFile& file) {
  return {0, static_cast<std::uint32_t>(file.tokens().size())};
}

inline std::string rows_of(const SeqFile& file, std::uint32_t layer, Plane plane,
                           TokenRange range) {
  std::string out(std::size_t{range.size()} * file.layout().row_bytes(layer, plane), '\0');
  const auto read = file.rows(layer, plane, range, std::as_writable_bytes(std::span(out)));
  REQUIRE(read);
  return out;
}

/// True when every row that the file delivers is the one that the builder promised, whatever the
/// range that is asked for.
inline bool delivers(const SeqFile& file, const SlotBuilder& slot) {
  const auto count = static_cast<std::uint32_t>(slot.tokens.size());
  if (!std::equal(file.tokens().begin(), file.tokens().end(), slot.tokens.begin(),
                  slot.tokens.end())) {
    return false;
  }
  for (std::uint32_t layer = 0; layer < slot.layers; ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::uint32_t bytes = file.layout().row_bytes(layer, plane);
      if (bytes == 0) continue;
      const std::string expected = slot.rows(layer, plane == Plane::value);
      for (const TokenRange range : {TokenRange{0, count}, TokenRange{1, 2}, TokenRange{3, 3},
                                     TokenRange{count / 2, count}}) {
        const std::string found = rows_of(file, layer, plane, range);
        if (found != expected.substr(std::size_t{range.begin} * bytes, found.size())) return false;
      }
    }
  }
  return true;
}

/// What the writer makes of the first `tokens` tokens of a file.
inline std::string written(const SeqFile& file, std::uint32_t tokens) {
  UniqueFd fd(::memfd_create("written", MFD_CLOEXEC));
  ByteSink sink(fd.get(), "written");
  const RowFill fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                           std::span<std::byte> out) {
    return file.rows(layer, plane, range, out);
  };
  const auto done = write_sequence(file.layout(), file.tokens().first(tokens), fill, sink);
  REQUIRE(done);
  CHECK(sink.bytes() == file.layout().file_bytes(tokens));
  std::string bytes(sink.bytes(), '\0');
  REQUIRE(::pread(fd.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

inline bool same_rows(const SeqFile& a, const SeqFile& b, TokenRange range) {
  for (std::uint32_t layer = 0; layer < a.layout().layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      if (a.layout().row_bytes(layer, plane) == 0) continue;
      if (rows_of(a, layer, plane, range) != rows_of(b, layer, plane, range)) return false;
    }
  }
  return true;
}

}  // namespace esker::test
