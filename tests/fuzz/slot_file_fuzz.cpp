/// A sequence or session file of llama.cpp: whatever the bytes are, they are refused by an error
/// that names the file, or all rows that are told can be read. What was accepted and is written
/// again, as it was or as the other kind of file, is accepted with the same tokens and rows.
///
/// Input: the file.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "llama/seq_reader.hpp"
#include "llama/seq_writer.hpp"
#include "slot_builder.hpp"

using namespace esker;
using namespace esker::cli::llama;
using esker::fuzz::require;

namespace {

std::uint64_t accepted_inputs = 0;

UniqueFd memory_file(std::span<const std::byte> bytes) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  const ssize_t written = ::pwrite(fd.get(), bytes.data(), bytes.size(), 0);
  require(written == static_cast<ssize_t>(bytes.size()), "the fuzzer's files are written");
  return fd;
}

Result<SeqFile> parse(std::span<const std::byte> bytes) {
  auto input = InputFile::adopt(memory_file(bytes), "fuzz.slot");
  require(input.has_value(), "a file in memory can be opened");
  return SeqFile::parse(std::move(*input));
}

std::vector<std::byte> rows_of(const SeqFile& file, std::uint32_t layer, Plane plane) {
  const auto tokens = static_cast<std::uint32_t>(file.tokens().size());
  std::vector<std::byte> rows(std::size_t{tokens} * file.layout().row_bytes(layer, plane));
  if (rows.empty()) return rows;
  require(file.rows(layer, plane, {0, tokens}, rows).has_value(), "rows that are told are there");
  return rows;
}

std::vector<std::byte> written(const SeqFile& file, const SeqLayout& layout) {
  const UniqueFd fd = memory_file({});
  ByteSink sink(fd.get(), "fuzz.written");
  const RowFill fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                           std::span<std::byte> out) {
    return file.rows(layer, plane, range, out);
  };
  require(write_sequence(layout, file.tokens(), fill, sink).has_value(),
          "what was read can be written");
  require(sink.bytes() == layout.file_bytes(file.tokens().size()), "the size is known before");
  std::vector<std::byte> bytes(sink.bytes());
  const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
  require(got == static_cast<ssize_t>(bytes.size()), "all bytes were written");
  return bytes;
}

void require_same(const SeqFile& a, const SeqFile& b) {
  require(std::vector(a.tokens().begin(), a.tokens().end()) ==
              std::vector(b.tokens().begin(), b.tokens().end()),
          "the tokens stay as they are");
  require(a.geometry(32) == b.geometry(32), "the geometry stays as it is");
  for (std::uint32_t layer = 0; layer < a.layout().layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      require(rows_of(a, layer, plane) == rows_of(b, layer, plane), "the rows stay as they are");
    }
  }
}

void write_again(const SeqFile& file) {
  const auto again = parse(written(file, file.layout()));
  require(again.has_value(), "what was written is accepted");
  require_same(file, *again);
  SeqLayout other = file.layout();
  const bool session = other.container == Container::session;
  other.container = session ? Container::sequence : Container::session;
  other.architecture = session ? "" : "llama";
  const auto converted = parse(written(file, other));
  require(converted.has_value(), "what was converted is accepted");
  require_same(file, *converted);
}

fuzz::Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string session_of(const test::SlotBuilder& slot) {
  const std::string sequence = slot.build();
  const std::size_t memory = slot.memory_offset();
  return test::SlotBuilder::words({session_magic, slot.version + session_version_lead}) +
         sequence.substr(8, memory - 8) + test::SlotBuilder::words({5}) + "llama" +
         sequence.substr(memory);
}

}  // namespace

std::vector<fuzz::Bytes> esker::fuzz::corpus() {
  std::vector<Bytes> inputs;
  for (const std::uint32_t version : {3U, 4U}) {
    for (const bool transposed : {false, true}) {
      test::SlotBuilder slot(5);
      slot.version = version;
      slot.transposed = transposed;
      slot.layers = 2;
      inputs.push_back(bytes_of(slot.build()));
      slot.packed = false;
      slot.streams = 3;
      slot.stream = 1;
      slot.positions = {2, 0, 1, 4, 3};
      slot.values = !transposed;
      slot.tail = transposed ? "" : "PKCS" + test::SlotBuilder::words({1, 0});
      inputs.push_back(bytes_of(slot.build()));
      slot.tail.clear();
      inputs.push_back(bytes_of(session_of(slot)));
    }
  }
  return inputs;
}

std::uint64_t esker::fuzz::accepted() { return accepted_inputs; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = parse(std::as_bytes(std::span(data, size)));
  if (!file) {
    require(file.error().message.find("fuzz.slot") != std::string::npos, "an error names the file");
    return 0;
  }
  ++accepted_inputs;
  require(!file->tokens().empty(), "an accepted file has tokens");
  require(file->geometry(32).validate().has_value(), "an accepted file has a valid geometry");
  for (const std::int32_t token : file->tokens()) require(token >= 0, "tokens are ids of text");
  write_again(*file);
  return 0;
}
