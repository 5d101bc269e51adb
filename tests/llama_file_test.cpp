#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "llama/rotation.hpp"
#include "llama/store_fit.hpp"
#include "llama_support.hpp"

namespace fs = std::filesystem;
using namespace esker;
using namespace esker::test;

TEST_CASE("a real dense file tells its tokens and its layout", "[llama]") {
  const auto file = SeqFile::open(golden("dense-tiny.slot"));
  REQUIRE(file);
  CHECK(file->tokens().size() == 188);
  CHECK(file->tokens()[0] == 259);
  CHECK(file->tokens()[187] == 263);
  const SeqLayout& layout = file->layout();
  CHECK(layout.version == 4);
  CHECK(layout.streams == 1);
  CHECK(layout.payload == TokenPayload::packed);
  CHECK_FALSE(layout.values_transposed);
  CHECK(layout.key_rotation == 0);
  CHECK(layout.value_rotation == 0);
  CHECK(layout.dtype() == "f16");
  CHECK(layout.layers == std::vector<LayerRows>(2, {128, 128}));
  CHECK(layout.file_bytes(188) == file->bytes());

  const Geometry geometry = file->geometry(16);
  CHECK(geometry.block_tokens == 16);
  CHECK(geometry.token_bytes() == 512);
  CHECK(geometry.validate());
}

TEST_CASE("the rows of a real file are the bytes at their place", "[llama]") {
  const std::string bytes = content_of(golden("dense-tiny.slot"));
  const auto file = SeqFile::open(golden("dense-tiny.slot"));
  REQUIRE(file);
  // 12 + 4·192 words, 8 + 12·188 cells, 16 layout; each plane has a head of 12 bytes.
  const std::size_t planes = 12 + 4 * 192 + 8 + 12 * 188 + 16;
  const std::size_t plane_bytes = 12 + 188 * 128;
  CHECK(rows_of(*file, 0, Plane::key, {0, 188}) == bytes.substr(planes + 12, 188 * 128));
  CHECK(rows_of(*file, 1, Plane::value, {50, 60}) ==
        bytes.substr(planes + 3 * plane_bytes + 12 + 50 * 128, 10 * 128));
}

TEST_CASE("a real file without flash attention delivers V token by token", "[llama]") {
  const std::string bytes = content_of(golden("smollm2-noflash-16.slot"));
  const auto file = SeqFile::open(golden("smollm2-noflash-16.slot"));
  REQUIRE(file);
  REQUIRE(file->layout().values_transposed);
  CHECK(file->layout().layers == std::vector<LayerRows>(30, {384, 384}));
  const std::size_t values = bytes.size() - 30 * (12 + 16 * 384);
  const std::string rows = rows_of(*file, 0, Plane::value, {0, 16});
  std::string expected;
  for (std::size_t token = 0; token < 16; ++token) {
    for (std::size_t channel = 0; channel < 192; ++channel) {
      expected += bytes.substr(values + 12 + (channel * 16 + token) * 2, 2);
    }
  }
  CHECK(rows == expected);
}

TEST_CASE("a real file of the larger model is read", "[llama]") {
  const auto file = SeqFile::open(golden("smollm2-f16.slot"));
  REQUIRE(file);
  CHECK(file->tokens().size() == 96);
  CHECK(file->tokens()[0] == 42185);
  CHECK(file->geometry(32).token_bytes() == 23040);
}

TEST_CASE("a real sliding-window file is refused by name", "[llama]") {
  const auto file = SeqFile::open(golden("swa-tiny.slot"));
  REQUIRE_FALSE(file);
  CHECK(file.error().code == Errc::incompatible);
  CHECK_THAT(file.error().message, contains("swa-tiny.slot"));
  CHECK_THAT(file.error().message, contains("sliding-window"));
  CHECK_FALSE(geometry_of_file(golden("swa-tiny.slot"), 32));
}

TEST_CASE("a plain real file that is written again is the same, byte for byte", "[llama]") {
  std::vector<std::string> paths;
  const char* other = std::getenv("ESKER_TEST_DATA");
  const std::string directory = other != nullptr ? std::string(other) + "/slots" : golden("");
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".slot") paths.push_back(entry.path().string());
  }
  std::size_t rewritten = 0;
  for (const std::string& path : paths) {
    const auto file = SeqFile::open(path);
    if (!file && file.error().code == Errc::incompatible) continue;  // named and tested above
    INFO(path);
    REQUIRE(file);
    const bool same = written(*file, all_of(*file).end) == content_of(path);
    CHECK((same || file->layout().streams > 1));  // other streams come out as the first
    const std::uint32_t part = all_of(*file).end / 2 + 1;
    const auto shorter = parse(written(*file, part));
    REQUIRE(shorter);
    CHECK(shorter->tokens().size() == part);
    CHECK(same_rows(*file, *shorter, {0, part}));
    ++rewritten;
  }
  CHECK(rewritten >= 4);
}

TEST_CASE("every kind of plain file delivers the same rows", "[llama]") {
  for (const std::uint32_t version : {3U, 4U}) {
    for (const bool packed : {false, true}) {
      for (const bool transposed : {false, true}) {
        for (const std::uint32_t streams : {1U, 4U}) {
          SlotBuilder slot;
          slot.version = version;
          slot.packed = packed;
          slot.transposed = transposed;
          slot.streams = streams;
          slot.stream = streams - 1;
          INFO("version " << version << " packed " << packed << " transposed " << transposed
                          << " streams " << streams);
          const auto file = parse(slot.build());
          REQUIRE(file);
          CHECK(file->layout().streams == streams);
          CHECK(delivers(*file, slot));
          // Written again, the cells stand in stream 0, and slot 0 saved them.
          slot.stream = 0;
          const auto again = parse(written(*file, 40));
          REQUIRE(again);
          CHECK(delivers(*again, slot));
          CHECK(again->layout().version == version);
          CHECK(again->layout().streams == streams);
          CHECK(again->layout().values_transposed == transposed);
          CHECK(again->bytes() == slot.build().size());
        }
      }
    }
  }
}

TEST_CASE("cells in any order deliver rows in order of position", "[llama]") {
  for (const bool transposed : {false, true}) {
    SlotBuilder slot(100);
    slot.transposed = transposed;
    for (std::uint32_t i = 0; i < 100; ++i) slot.positions.push_back(i * 37 % 100);
    const auto file = parse(slot.build());
    REQUIRE(file);
    CHECK(delivers(*file, slot));
    slot.positions.clear();
    const auto sorted = parse(written(*file, 100));
    REQUIRE(sorted);
    CHECK(delivers(*sorted, slot));
  }
}

TEST_CASE("V by channels that is larger than the writer's buffer comes out whole", "[llama]") {
  SlotBuilder slot(66'000);
  slot.layers = 1;
  slot.key_row = 2;
  slot.value_row = 1024;
  slot.transposed = true;
  const std::string bytes = slot.build();
  const auto file = parse(bytes);
  REQUIRE(file);
  std::string expected = bytes;  // the builder names slot 2 as the one that saved it
  for (std::size_t i = 0; i < slot.tokens.size(); ++i) {
    expected[slot.cells_offset() + 12 * i + 8] = '\0';
  }
  const bool same = written(*file, 66'000) == expected;
  CHECK(same);
}

TEST_CASE("a model that keeps K only is read and written", "[llama]") {
  for (const std::uint32_t streams : {1U, 2U, 5U}) {
    SlotBuilder slot;
    slot.values = false;
    slot.streams = streams;
    const auto file = parse(slot.build());
    REQUIRE(file);
    CHECK_FALSE(file->layout().has_values());
    CHECK(file->geometry(32).row_bytes(0, Plane::value) == 0);
    CHECK(delivers(*file, slot));
    const auto again = parse(written(*file, 40));
    REQUIRE(again);
    CHECK(delivers(*again, slot));
    std::byte none{};
    CHECK(file->rows(0, Plane::value, {0, 1}, std::span(&none, 1)).error().code == Errc::invalid);
  }
}

TEST_CASE("a real file of a server with three slots is read and written", "[llama]") {
  const auto file = SeqFile::open(golden("smollm2-q8-split.slot"));
  REQUIRE(file);
  const SeqLayout& layout = file->layout();
  CHECK(layout.streams == 3);
  CHECK(layout.dtype() == "q8_0");
  CHECK(layout.key_rotation == 64);
  CHECK(layout.value_rotation == 64);
  CHECK(layout.layers == std::vector<LayerRows>(30, {204, 204}));
  const std::string bytes = content_of(golden("smollm2-q8-split.slot"));
  const auto count = static_cast<std::uint32_t>(file->tokens().size());
  const auto again = parse(written(*file, count));
  REQUIRE(again);
  CHECK(again->bytes() == bytes.size());
  CHECK(same_rows(*file, *again, {0, count}));
}

TEST_CASE("quantised and mixed types are named and kept", "[llama]") {
  SlotBuilder slot;
  slot.key_type = 8;
  slot.key_row = 68;
  slot.value_type = 8;
  slot.value_row = 34;
  slot.key_rotation = 64;
  slot.value_rotation = 32;
  auto file = parse(slot.build());
  REQUIRE(file);
  CHECK(file->layout().dtype() == "q8_0");
  CHECK(file->layout().key_rotation == 64);
  CHECK(file->layout().value_rotation == 32);
  CHECK(delivers(*file, slot));

  slot.key_type = 1;
  file = parse(slot.build());
  REQUIRE(file);
  CHECK(file->layout().dtype() == "k:f16,v:q8_0");

  slot.key_row = 66;
  slot.key_type = 8;
  CHECK_THAT(refusal(slot.build()).message, contains("multiple of 34"));
  slot.key_row = 68;
  slot.transposed = true;
  slot.element = 34;
  CHECK_THAT(refusal(slot.build()).message, contains("must not be quantised"));
  slot.transposed = false;
  slot.key_type = 99;
  CHECK_THAT(refusal(slot.build()).message, contains("found 99, expected one of f32 (0)"));
}

TEST_CASE("V of 4-byte elements is transposed as well", "[llama]") {
  SlotBuilder slot;
  slot.transposed = true;
  slot.value_type = 0;
  slot.element = 4;
  const auto file = parse(slot.build());
  REQUIRE(file);
  CHECK(file->layout().dtype() == "k:f16,v:f32");
  CHECK(delivers(*file, slot));
  slot.element = 2;
  CHECK_THAT(refusal(slot.build()).message, contains("el_size"));
}

TEST_CASE("a file that comes through a pipe is the same file", "[llama]") {
  SlotBuilder slot(3000);  // more than a pipe holds
  const std::string bytes = slot.build();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  std::thread writer([&bytes, fd = ends[1]] {
    ByteSink sink(fd, "pipe");
    if (sink.put(std::as_bytes(std::span(bytes)))) (void)sink.flush();
    ::close(fd);
  });
  auto input = InputFile::adopt(UniqueFd(ends[0]), "pipe");
  writer.join();
  REQUIRE(input);
  CHECK(input->bytes() == bytes.size());
  const auto file = SeqFile::parse(std::move(*input));
  REQUIRE(file);
  CHECK(delivers(*file, slot));
}

TEST_CASE("files that are missing or no files are refused with their name", "[llama]") {
  const auto missing = SeqFile::open(golden("no-such.slot"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::io);
  CHECK(missing.error().os_error == ENOENT);
  CHECK_THAT(missing.error().message, contains("no-such.slot: cannot open"));
  const auto directory = SeqFile::open(golden(""));
  REQUIRE_FALSE(directory);
  CHECK_THAT(directory.error().message, contains("is a directory"));
}

TEST_CASE("rotated rows fit only a store that says so", "[llama]") {
  SlotBuilder slot;
  slot.key_type = slot.value_type = 8;
  slot.key_row = slot.value_row = 68;
  slot.key_rotation = slot.value_rotation = 64;
  const auto rotated = parse(slot.build());
  slot.key_rotation = slot.value_rotation = 0;
  const auto plain = parse(slot.build());
  slot.version = 3;
  const auto silent = parse(slot.build());
  REQUIRE(rotated);
  REQUIRE(plain);
  REQUIRE(silent);

  ModelId with;
  REQUIRE(add_rotation(rotated->layout(), with));
  CHECK(with.text() == "kv_rot_k=64\nkv_rot_v=64\n");
  ModelId without;
  REQUIRE(add_rotation(plain->layout(), without));
  CHECK(without.unnamed());
  const Geometry geometry = plain->geometry(32);
  CHECK(check_fit(*rotated, geometry, with));
  CHECK(check_fit(*plain, geometry, without));
  CHECK(check_fit(*silent, geometry, without));
  for (const auto* other : {&plain, &silent}) {
    const auto fits = check_fit(**other, geometry, with);
    REQUIRE_FALSE(fits);
    CHECK(fits.error().code == Errc::incompatible);
    CHECK_THAT(fits.error().message, contains("kv_rot_k"));
  }
  CHECK_THAT(check_fit(*rotated, geometry, without).error().message, contains("the file has 64"));
}

TEST_CASE("a file is taken for the store's model only when both say the same", "[llama]") {
  const auto file = SeqFile::open(golden("dense-tiny.slot"));
  REQUIRE(file);
  const ModelId none;
  const ModelId a = *ModelId::parse("weights=1\n");
  const ModelId b = *ModelId::parse("weights=2\nlora=x\n");
  const ModelId rotated = *ModelId::parse("kv_rot_k=64\nweights=1\n");
  CHECK(check_model(*file, none, none));
  CHECK(check_model(*file, a, a));
  CHECK(check_model(*file, a, rotated));
  CHECK(check_model(*file, none, *ModelId::parse("kv_rot_k=64\n")));
  CHECK(check_model(*file, none, a).error().code == Errc::incompatible);
  CHECK(check_model(*file, a, none).error().code == Errc::incompatible);
  const auto different = check_model(*file, b, a);
  REQUIRE_FALSE(different);
  CHECK(different.error().code == Errc::incompatible);
  CHECK_THAT(different.error().message, contains("lora is 'x', expected nothing"));
  CHECK_THAT(different.error().message, contains("weights is '2', expected '1'"));
}
