#include <sys/stat.h>
#include <unistd.h>

#include "llama/store_fit.hpp"
#include "llama_support.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE("a real file cut anywhere in its head is refused", "[llama]") {
  const std::string bytes = content_of(golden("dense-tiny.slot"));
  const std::size_t head = 12 + 4 * 192 + 8 + 12 * 188 + 16;
  std::size_t accepted = 0;
  for (std::size_t length = 0; length <= head + 24; ++length) {
    if (parse(std::string_view(bytes).substr(0, length))) ++accepted;
  }
  CHECK(accepted == 0);
}

TEST_CASE("a real file cut at any boundary of its planes is refused", "[llama]") {
  const std::string bytes = content_of(golden("dense-tiny.slot"));
  const std::size_t planes = 12 + 4 * 192 + 8 + 12 * 188 + 16;
  const std::size_t plane_bytes = 12 + 188 * 128;
  REQUIRE(planes + 4 * plane_bytes == bytes.size());
  for (std::size_t plane = 0; plane < 4; ++plane) {
    for (const std::size_t inside :
         {0UL, 4UL, 12UL, 13UL, 140UL, plane_bytes / 2, plane_bytes - 1}) {
      // Here the file of a model without V would end; only a store's geometry can tell.
      if (plane == 2 && inside == 0) continue;
      const std::size_t length = planes + plane * plane_bytes + inside;
      INFO(length);
      CHECK_FALSE(parse(std::string_view(bytes).substr(0, length)));
    }
  }
  const auto keys_only = parse(std::string_view(bytes).substr(0, planes + 2 * plane_bytes));
  const auto whole = parse(bytes);
  REQUIRE(whole);
  REQUIRE(keys_only);
  const auto fits = check_fit(*keys_only, whole->geometry(32), {});
  REQUIRE_FALSE(fits);
  CHECK(fits.error().code == Errc::incompatible);
}

TEST_CASE("a flipped bit in the head is refused, unless it makes another valid head", "[llama]") {
  const std::string bytes = content_of(golden("dense-tiny.slot"));
  const std::size_t tokens = 12 + 12;
  const std::size_t cells = 12 + 4 * 192 + 8;
  const std::size_t layout = cells + 12 * 188;
  std::size_t wrong = 0;
  for (std::size_t bit = 0; bit < 8 * (layout + 16 + 12); ++bit) {
    std::string flipped = bytes;
    char& byte = flipped[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const auto file = parse(flipped);
    if (!file) continue;
    // Only the values of token ids, the saving slot's number and the rotation are free.
    const std::size_t at = bit / 8;
    const bool token = at >= tokens && at < tokens + 4 * 188;
    const bool slot = at >= cells && at < layout && (at - cells) % 12 >= 8;
    const bool rotation = at >= layout + 8 && at < layout + 16;
    const bool sound = (token || slot || rotation) && file->tokens().size() == 188 &&
                       file->layout().layers == std::vector<LayerRows>(2, {128, 128});
    if (!sound) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("counts that no file can hold are refused before they size anything", "[llama]") {
  const SlotBuilder slot;
  const std::string bytes = slot.build();
  const std::size_t layout = slot.layout_offset();
  const std::uint32_t huge = UINT32_MAX;
  CHECK_THAT(refusal(patched(bytes, 8, huge)).message, contains("token words"));
  CHECK_THAT(refusal(patched(bytes, 20, huge)).message, contains("n_tokens"));
  CHECK_THAT(refusal(patched(bytes, 20, 39)).message, contains("n_media"));
  CHECK_THAT(refusal(patched(bytes, slot.memory_offset(), huge)).message, contains("n_stream"));
  CHECK_THAT(refusal(patched(bytes, slot.memory_offset(), 0)).message, contains("n_stream"));
  CHECK_THAT(refusal(patched(bytes, slot.memory_offset() + 4, huge)).message, contains("cells"));
  CHECK_THAT(refusal(patched(bytes, layout + 4, huge)).message, contains("n_layer"));
  CHECK_THAT(refusal(patched(bytes, layout + 4, 0)).message, contains("n_layer"));
  CHECK_THAT(refusal(patched(bytes, layout + 4, 2048)).message, contains("layer 6"));
  CHECK_THAT(refusal(patched(bytes, layout, 2)).message, contains("v_trans"));
  CHECK_THAT(refusal(patched(bytes, layout + 8, 3)).message, contains("rot_k"));
  for (const std::uint64_t row : {UINT64_MAX, UINT64_MAX / 40 + 1, std::uint64_t{1} << 32,
                                  std::uint64_t{1} << 24, std::uint64_t{0}, std::uint64_t{63}}) {
    std::string word;
    SlotBuilder::put(word, row);
    CHECK_THAT(refusal(patched(bytes, layout + 20, word)).message, contains("row size of K"));
  }
}

TEST_CASE("hostile counts of V by channels are refused", "[llama]") {
  SlotBuilder slot;
  slot.transposed = true;
  const std::string bytes = slot.build();
  const std::size_t value = bytes.size() - 3 * (12 + 40 * 48);
  CHECK_THAT(refusal(patched(bytes, value + 4, UINT32_MAX)).message, contains("el_size"));
  CHECK_THAT(refusal(patched(bytes, value + 4, 0)).message, contains("el_size"));
  CHECK_THAT(refusal(patched(bytes, value + 8, UINT32_MAX)).message, contains("row size of V"));
  CHECK_THAT(refusal(patched(bytes, value + 8, 0)).message, contains("row size of V"));
  CHECK_THAT(refusal(patched(bytes, value + 8, 8'000'000)).message, contains("row size of V"));
}

TEST_CASE("positions that are no permutation are refused", "[llama]") {
  const SlotBuilder slot;
  const std::string bytes = slot.build();
  const std::size_t fifth = slot.cells_offset() + 12 * 5;
  CHECK_THAT(refusal(patched(bytes, fifth, 4)).message, contains("cell 4 has it already"));
  CHECK_THAT(refusal(patched(bytes, fifth, 40)).message, contains("found 40, expected 0…39"));
  CHECK_THAT(refusal(patched(bytes, fifth, UINT32_MAX)).message, contains("found -1"));
  CHECK_THAT(refusal(patched(bytes, fifth + 4, 2)).message, contains("n_seq_id of cell 5"));
}

TEST_CASE("a file with cells in two streams is refused", "[llama]") {
  SlotBuilder slot;
  slot.streams = 4;
  slot.stream = 1;
  const std::string bytes = slot.build();
  CHECK_THAT(refusal(patched(bytes, bytes.size() - 4, 1)).message,
             contains("cell_count of stream 3 at byte"));
  CHECK_THAT(refusal(patched(bytes, bytes.size() - 8, 1)).message,
             contains("found 1, expected 0: another stream holds the sequence already"));
  CHECK_THAT(refusal(bytes.substr(0, bytes.size() - 1)).message, contains("cell_count"));
  CHECK_THAT(refusal(bytes + std::string(4, '\0')).message, contains("4 bytes behind the end"));
}

TEST_CASE("tokens and cells that do not agree are refused", "[llama]") {
  SlotBuilder slot;
  slot.packed = false;
  std::string bytes = slot.build();
  bytes.erase(12, 4);
  CHECK_THAT(refusal(patched(bytes, 8, 39)).message, contains("39 tokens, but holds cells for 40"));
  const std::string empty = SlotBuilder::words({0x67677371, 4, 0, 1, 0});
  CHECK_THAT(refusal(empty).message, contains("empty sequence"));
}

TEST_CASE("media and payloads of the future are refused by name", "[llama]") {
  const SlotBuilder slot;
  const std::string bytes = slot.build();
  const std::size_t media = slot.memory_offset() - 4;
  std::string picture = bytes;
  picture.insert(media + 4, SlotBuilder::words({5, 8, 1, 2}));  // its start, its size, itself
  picture = patched(patched(picture, 8, 48), media, 1);
  Error error = refusal(picture);
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("1 media chunks (images or sound)"));
  CHECK_THAT(refusal(patched(bytes, media, 1)).message, contains("n_media"));
  CHECK_THAT(refusal(patched(picture, media, 0)).message, contains("4 more words behind it"));
  error = refusal(patched(bytes, 16, 2));
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("token payload version: found 2, expected 1"));
  CHECK_THAT(refusal(patched(bytes, 24 + 4 * 7, UINT32_MAX)).message, contains("token 7"));
  CHECK_THAT(refusal(SlotBuilder::words({0x67677371, 4, 1, UINT32_MAX, 0, 0})).message,
             contains("at least 4 for packed tokens"));
}

TEST_CASE("versions and kinds of files that are not read are named", "[llama]") {
  const std::string bytes = SlotBuilder().build();
  for (const std::uint32_t version : {0U, 2U, 5U, UINT32_MAX}) {
    const Error error = refusal(patched(bytes, 4, version));
    CHECK(error.code == Errc::incompatible);
    CHECK_THAT(error.message, contains("found " + std::to_string(version) + ", expected 3…4"));
  }
  CHECK_THAT(refusal(patched(bytes, 0, 0x6767736e)).message, contains("session"));
  CHECK_THAT(refusal(patched(bytes, 0, "GGUF")).message, contains("model (GGUF)"));
  CHECK_THAT(refusal(patched(bytes, 0, 7)).message, contains("magic"));
}

TEST_CASE("extended cells are refused by name, also with a single token", "[llama]") {
  for (const std::uint32_t tokens : {1U, 2U, 40U}) {
    for (const std::uint32_t streams : {1U, 3U}) {
      SlotBuilder slot(tokens);
      slot.extended = true;
      slot.streams = streams;
      const Error error = refusal(slot.build());
      CHECK(error.code == Errc::incompatible);
      CHECK_THAT(error.message, contains("M-RoPE"));
    }
  }
}

TEST_CASE("a recurrent model's file is refused by name", "[llama]") {
  const std::string head = SlotBuilder::words({0x67677371, 4, 3, 5, 6, 7});
  const std::string state =
      SlotBuilder::words({1, 2, 0, 0, 24, 0, 256, 0}) + std::string(4096, 'x');
  Error error = refusal(head + state);
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("recurrent"));
  // Hybrid models keep the state behind the cache.
  SlotBuilder slot;
  slot.tail = state;
  error = refusal(slot.build());
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("recurrent"));
}

TEST_CASE("what stands behind the cache is skipped only when it is known and harmless", "[llama]") {
  SlotBuilder slot;
  slot.tail = "PKCS" + SlotBuilder::words({1, 0});
  const auto file = parse(slot.build());
  REQUIRE(file);
  CHECK(delivers(*file, slot));

  slot.tail = "PKCS" + SlotBuilder::words({1, 1}) + std::string(100, 'x');
  CHECK_THAT(refusal(slot.build()).message, contains("checkpoints ('SCKP')"));
  slot.tail = "PKCS" + SlotBuilder::words({2, 0});
  CHECK_THAT(refusal(slot.build()).message, contains("checkpoints ('SCKP')"));
  slot.tail = "PKCS";
  CHECK_THAT(refusal(slot.build()).message, contains("checkpoints ('SCKP')"));
  slot.tail = "TXEN" + std::string(20, '\0');
  CHECK_THAT(refusal(slot.build()).message, contains("section 'NEXT'"));
  slot.tail = "x";
  CHECK_THAT(refusal(slot.build()).message, contains("1 bytes behind the end of the cache"));
  SlotBuilder window(20);
  slot.tail = window.build().substr(window.memory_offset());
  CHECK_THAT(refusal(slot.build()).message, contains("sliding-window"));
  window.streams = slot.streams = 3;
  window.stream = slot.stream = 1;
  slot.tail = window.build().substr(window.memory_offset());
  CHECK_THAT(refusal(slot.build()).message, contains("sliding-window"));
  slot.values = false;  // the K-only cache of a model with an indexer
  CHECK_THAT(refusal(slot.build()).message, contains("sliding-window"));
}

TEST_CASE("rows that are not there are invalid, not read", "[llama]") {
  const auto file = SeqFile::open(golden("dense-tiny.slot"));
  REQUIRE(file);
  std::vector<std::byte> out(128);
  CHECK(file->rows(0, Plane::key, {0, 1}, out));
  CHECK(file->rows(2, Plane::key, {0, 1}, out).error().code == Errc::invalid);
  CHECK(file->rows(0, Plane::key, {188, 189}, out).error().code == Errc::invalid);
  CHECK(file->rows(0, Plane::key, {5, 4}, out).error().code == Errc::invalid);
  CHECK(file->rows(0, Plane::key, {0, 2}, out).error().code == Errc::invalid);
}

TEST_CASE("a file that shrinks while it is read is an error, not rows", "[llama]") {
  const SlotBuilder slot;
  const std::string bytes = slot.build();
  UniqueFd fd = memory_file(bytes);
  const UniqueFd other(::dup(fd.get()));
  auto input = InputFile::adopt(std::move(fd), "shrinking.slot");
  REQUIRE(input);
  const auto file = SeqFile::parse(std::move(*input));
  REQUIRE(file);
  REQUIRE(::ftruncate(other.get(), static_cast<off_t>(bytes.size() - 1)) == 0);
  std::vector<std::byte> out(48 * 40);
  CHECK(file->rows(1, Plane::value, {0, 40}, out));
  const auto last = file->rows(2, Plane::value, {0, 40}, out);
  REQUIRE_FALSE(last);
  CHECK(last.error().code == Errc::io);
  CHECK_THAT(last.error().message, contains("shrinking.slot: ends at byte"));
}

TEST_CASE("a file that is written again while it is read is an error", "[llama]") {
  const SlotBuilder slot;
  UniqueFd fd = memory_file(slot.build());
  const UniqueFd other(::dup(fd.get()));
  auto input = InputFile::adopt(std::move(fd), "rewritten.slot");
  REQUIRE(input);
  const auto file = SeqFile::parse(std::move(*input));
  REQUIRE(file);
  CHECK(file->check_unchanged());
  const timespec later[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  REQUIRE(::futimens(other.get(), later) == 0);
  const auto changed = file->check_unchanged();
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == Errc::io);
  CHECK_THAT(changed.error().message, contains("rewritten.slot: someone wrote to it"));
}
