// Rows that were given up for size: how far they may be off, and that this is told.

#include <xxhash.h>

#include "catch.hpp"
#include "codec/quantise.hpp"
#include "codec_support.hpp"

using namespace esker;
using namespace esker::detail;
using namespace esker::test;

namespace {

std::vector<float> floats(const RowShape& shape, const Bytes& rows) {
  std::vector<float> values;
  for (std::size_t i = 0; i < rows.size(); i += shape.element_bytes) {
    std::uint32_t word = 0;
    std::memcpy(&word, &rows[i], shape.element_bytes);
    const auto narrow = static_cast<std::uint16_t>(word);
    values.push_back(shape.element_bytes == 4   ? SingleBits::to_float(word)
                     : shape.exponent_bits == 5 ? HalfBits::to_float(narrow)
                                                : BrainBits::to_float(narrow));
  }
  return values;
}

struct Outcome {
  ChunkCoding coding;
  Bytes stored;
  Bytes rows;
  ErrorSums error;
};

Outcome through(const Bytes& rows, const RowShape& shape, const CodecChoice& choice) {
  Outcome outcome;
  CodecMemory memory;
  const auto coding = encode_chunk(rows, shape, choice, memory, outcome.stored, &outcome.error);
  REQUIRE(coding);
  outcome.coding = *coding;
  outcome.rows.resize(rows.size());
  REQUIRE(decode_chunk(*coding, shape, outcome.stored, outcome.rows, memory, "chunk"));
  return outcome;
}

double relative(const ErrorSums& error) { return std::sqrt(error.squared_error / error.squared); }

}  // namespace

TEST_CASE("quantised rows are close to the exact ones, and the error that is told is theirs",
          "[codec]") {
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::uint32_t bytes = std::string(dtype) == "f32" ? 4 : 2;
      const RowShape shape = RowShape::of(dtype, plane, 192 * bytes);
      // Values share a step with other channels, keys with other tokens: let them fit together.
      const Bytes rows = plane == Plane::key ? rows_of(shape, 200, Content::bell, 11)
                                             : rows_of(RowShape::of(dtype, plane, bytes), 200 * 192,
                                                       Content::bell, 12);
      for (const Lossy lossy : {Lossy::q8, Lossy::q4}) {
        const Outcome outcome = through(rows, shape, {Compression::lz4, 0, lossy});
        CHECK(outcome.coding.lossy == static_cast<std::uint8_t>(lossy));
        CHECK(relative(outcome.error) < (lossy == Lossy::q8 ? 0.012 : 0.09));
        CHECK(relative(outcome.error) > 0.0005);
        CHECK(outcome.error.elements == 200 * 192);
        const auto before = floats(shape, rows);
        const auto after = floats(shape, outcome.rows);
        double worst = 0;
        double squares = 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
          const double off = double{after[i]} - double{before[i]};
          worst = std::max(worst, std::abs(off));
          squares += off * off;
        }
        CHECK(outcome.error.max_absolute == worst);
        CHECK(outcome.error.squared_error == Approx(squares));
      }
    }
  }
}

TEST_CASE("no element is off by more than a step of its group", "[codec]") {
  const RowShape shape = RowShape::of("f32", Plane::key, 4 * 8);
  const Bytes rows = rows_of(shape, 32, Content::bell, 21);
  for (const Lossy lossy : {Lossy::q8, Lossy::q4}) {
    const auto before = floats(shape, rows);
    const auto after = floats(shape, through(rows, shape, {Compression::zstd, 0, lossy}).rows);
    for (std::size_t channel = 0; channel < 8; ++channel) {
      float least = before[channel];
      float most = before[channel];
      for (std::size_t i = channel; i < before.size(); i += 8) {
        least = std::min(least, before[i]);
        most = std::max(most, before[i]);
      }
      // Half a step, of one that was widened for a least value and a step in bf16.
      const float widened = (most - least + std::abs(least) / 128) * 1.01F;
      const float bound = widened / (lossy == Lossy::q8 ? 191.0F : 15.0F) * 0.5F + 1e-6F;
      for (std::size_t i = channel; i < before.size(); i += 8) {
        CHECK(std::abs(before[i] - after[i]) <= bound);
      }
    }
  }
}

TEST_CASE("a channel that never changes and one of the largest numbers survive", "[codec]") {
  const RowShape shape = RowShape::of("f16", Plane::key, 2 * 2);
  Bytes rows;
  for (int token = 0; token < 64; ++token) {
    const HalfBits::Word fixed = HalfBits::from_float(0.5F);
    const HalfBits::Word wild = HalfBits::from_float(token % 2 == 0 ? 65504.0F : -65504.0F);
    for (const HalfBits::Word word : {fixed, wild}) {
      rows.push_back(static_cast<std::byte>(word & 0xFFU));
      rows.push_back(static_cast<std::byte>(word >> 8));
    }
  }
  for (const Lossy lossy : {Lossy::q8, Lossy::q4}) {
    const auto after = floats(shape, through(rows, shape, {Compression::lz4, 0, lossy}).rows);
    for (std::size_t i = 0; i < after.size(); i += 2) CHECK(after[i] == 0.5F);
    for (std::size_t i = 1; i < after.size(); i += 2) {
      CHECK(std::isfinite(after[i]));
      CHECK(std::abs(std::abs(after[i]) - 65504.0F) < 600);
    }
  }
}

TEST_CASE("a chunk with an infinity or no number is coded exactly", "[codec]") {
  const RowShape shape = RowShape::of("bf16", Plane::value, 128);
  const Bytes finite = rows_of(shape, 40, Content::bell, 31);
  for (const unsigned bits : {0x7F80U, 0xFF80U, 0x7FC1U}) {
    const auto odd = static_cast<std::uint16_t>(bits);
    Bytes rows = finite;
    std::memcpy(&rows[1000], &odd, sizeof odd);
    const Outcome outcome = through(rows, shape, {Compression::zstd, 0, Lossy::q8});
    CHECK(outcome.coding.lossy == 0);
    CHECK(outcome.rows == rows);
    CHECK(outcome.error.squared_error == 0);
    CHECK(outcome.error.elements == 40 * 64 - 1);
    CHECK(std::isfinite(outcome.error.squared));
  }
}

TEST_CASE("numbers whose difference is beyond a float are coded exactly", "[codec]") {
  const RowShape shape = RowShape::of("f32", Plane::value, 4 * 64);
  Bytes rows = rows_of(shape, 8, Content::bell, 41);
  for (std::size_t row = 0; row < 8; ++row) {
    const std::array<float, 2> ends{3.4e38F, -3.4e38F};
    std::memcpy(&rows[row * 256], ends.data(), sizeof ends);
  }
  const Outcome outcome = through(rows, shape, {Compression::lz4, 0, Lossy::q8});
  CHECK(outcome.coding.lossy == 0);
  CHECK(outcome.rows == rows);
}

TEST_CASE("a dtype that holds no floats is not quantised", "[codec]") {
  for (const char* dtype : {"i8", "q8_0", "q4_0", "f8_e4m3", "nobody's"}) {
    const RowShape shape = RowShape::of(dtype, Plane::key, 34 * 18);
    CodecMemory memory;
    Bytes stored;
    const auto refused =
        encode_chunk(Bytes(34 * 18 * 4), shape, {Compression::lz4, 0, Lossy::q8}, memory, stored);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::invalid);
    CHECK_THAT(refused.error().message, contains("q8"));
    CHECK_FALSE(known_coding({0, 0, 1}, shape));
  }
}

TEST_CASE("rows of every shape go through both lossy codes, and a second time exactly", "[codec]") {
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    for (const std::uint32_t width : {1U, 2U, 33U, 64U, 129U, 300U}) {
      for (const std::size_t count : {1U, 2U, 33U, 130U}) {
        for (const Plane plane : {Plane::key, Plane::value}) {
          const std::uint32_t bytes = std::string(dtype) == "f32" ? 4 : 2;
          const RowShape shape = RowShape::of(dtype, plane, width * bytes);
          const Bytes rows = rows_of(shape, count, Content::bell, width + count);
          for (const Compression compression : all_compressions) {
            for (const Lossy lossy : {Lossy::q8, Lossy::q4}) {
              const Outcome once = through(rows, shape, {compression, 0, lossy});
              if (once.stored.size() > rows.size()) FAIL("longer than the rows");
              if (relative(once.error) > 0.3) FAIL("far off");
              const Outcome again = through(once.rows, shape, {compression, 0, Lossy::none});
              if (again.rows != once.rows) FAIL("not exact");
            }
          }
        }
      }
    }
  }
}

TEST_CASE("codes decode to the same bits on every machine and with every compiler", "[codec]") {
  const auto decoded = [](const char* dtype, Plane plane, Lossy lossy) {
    const std::uint32_t bytes = std::string(dtype) == "f32" ? 4 : 2;
    const RowShape shape = RowShape::of(dtype, plane, 200 * bytes);
    Bytes rows(150 * std::size_t{shape.row_bytes});
    Bytes codes = garbage(quantised_bytes(shape, lossy, rows.size()), 77);
    // Scales of a file are numbers: without the upper bit of their exponents these are as well.
    const std::size_t groups = (codes.size() - 150 * (lossy == Lossy::q8 ? 200 : 100)) / 4;
    for (std::size_t i = 2 * groups; i < 4 * groups; ++i) codes[i] &= std::byte{0xBF};
    dequantise(codes, shape, lossy, rows);
    return XXH3_64bits(rows.data(), rows.size());
  };
  CHECK(decoded("f16", Plane::key, Lossy::q8) == 0xEF9913C4CF9E5CB2);
  CHECK(decoded("f16", Plane::value, Lossy::q4) == 0xFB2DE7AEEADEA199);
  CHECK(decoded("bf16", Plane::key, Lossy::q4) == 0x4351896B351C8150);
  CHECK(decoded("bf16", Plane::value, Lossy::q8) == 0x3BD0BCCCF53CED48);
  CHECK(decoded("f32", Plane::key, Lossy::q8) == 0x5C044A4589BA9BEE);
}

TEST_CASE("halves and floats turn into each other as the standard says", "[codec]") {
  CHECK(HalfBits::from_float(1.0F) == 0x3C00);
  CHECK(HalfBits::from_float(-2.0F) == 0xC000);
  CHECK(HalfBits::from_float(65504.0F) == 0x7BFF);
  CHECK(HalfBits::from_float(1e9F) == 0x7BFF);
  CHECK(HalfBits::from_float(0x1p-24F) == 0x0001);
  CHECK(HalfBits::from_float(0x1p-25F) == 0x0000);
  CHECK(HalfBits::from_float(0x1.8p-24F) == 0x0002);
  CHECK(HalfBits::from_float(1.0F + 0x1p-11F) == 0x3C00);
  CHECK(HalfBits::from_float(1.0F + 0x1.8p-10F) == 0x3C02);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & HalfBits::exponent_mask) == HalfBits::exponent_mask) continue;
    if (HalfBits::from_float(HalfBits::to_float(half)) != half) FAIL("half " << bits);
  }
}
