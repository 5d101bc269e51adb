#include "catch.hpp"

#include <algorithm>

#include "support/stores.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE("a uniform geometry has the row sizes of its dtype") {
  const auto row = [](const char* dtype) {
    return need(Geometry::uniform(2, 8, 128, dtype)).layers[1].key_row_bytes;
  };
  CHECK(row("f32") == 4'096);
  CHECK(row("f16") == 2'048);
  CHECK(row("bf16") == 2'048);
  CHECK(row("f8_e4m3") == 1'024);
  CHECK(row("f8_e5m2") == 1'024);
  CHECK(row("i8") == 1'024);
  CHECK(row("q8_0") == 1'088);
  CHECK(row("q4_0") == 576);
}

TEST_CASE("a uniform geometry of an unknown dtype is refused by name") {
  const Result<Geometry> geometry = Geometry::uniform(2, 8, 128, "f17");
  REQUIRE_FALSE(geometry);
  CHECK(geometry.error().code == Errc::invalid);
  CHECK_THAT(geometry.error().message, contains("f17") && contains("bf16"));
}

TEST_CASE("a uniform geometry that overflows or is nothing is refused") {
  CHECK_FALSE(Geometry::uniform(0, 8, 128, "f16").has_value());
  CHECK_FALSE(Geometry::uniform(2, 0, 128, "f16").has_value());
  CHECK_FALSE(Geometry::uniform(2, 8, 0, "f16").has_value());
  CHECK_FALSE(Geometry::uniform(2, UINT32_MAX, UINT32_MAX, "f16").has_value());
  CHECK_FALSE(Geometry::uniform(UINT32_MAX, 8, 128, "f16").has_value());
  CHECK_FALSE(Geometry::uniform(2, 8, 128, "f16", 0).has_value());
}

TEST_CASE("bytes per token and block are the sums over layers and planes") {
  const Geometry geometry = small_geometry(16);
  CHECK(geometry.token_bytes() == 215);
  CHECK(geometry.block_bytes() == 215 * 16);
  CHECK(geometry.row_bytes(1, Plane::value) == 0);
  CHECK(geometry.row_bytes(2, Plane::value) == 57);
  CHECK(geometry.row_bytes(3, Plane::key) == 0);
}

TEST_CASE("the largest geometry counts its bytes without overflow") {
  Geometry geometry;
  geometry.layers.assign(Geometry::max_layers, {Geometry::max_row_bytes, Geometry::max_row_bytes});
  geometry.block_tokens = Geometry::max_block_tokens;
  geometry.dtype = "f32";
  CHECK(geometry.validate().has_value());
  CHECK(geometry.token_bytes() == std::uint64_t{1} << 36);
  CHECK(geometry.block_bytes() == std::uint64_t{1} << 46);
  geometry.layers[7].value_row_bytes += 1;
  CHECK_FALSE(geometry.validate().has_value());
}

TEST_CASE("equal geometries have no difference, others name theirs") {
  CHECK(small_geometry().difference(small_geometry()) == "");
  CHECK_THAT(small_geometry().difference(small_geometry(32)), contains("block_tokens"));
}

TEST_CASE("a model id is sorted lines of key and value, in whatever order they came") {
  const ModelId one = need(ModelId::parse("b=2\n\na=1\n"));
  CHECK(one.text() == "a=1\nb=2\n");
  CHECK(one == need(ModelId::parse("a=1\nb=2")));
  CHECK(one.get("a") == "1");
  CHECK(one.get("c") == "");
  CHECK_FALSE(one.unnamed());
  CHECK(ModelId().unnamed());
  CHECK(need(ModelId::parse("")).unnamed());
  CHECK(need(ModelId::parse("a=b=c")).get("a") == "b=c");
}

TEST_CASE("a model id names exactly the keys that differ") {
  const ModelId one = need(ModelId::parse("a=1\nb=2\nc=3\n"));
  const ModelId two = need(ModelId::parse("a=1\nb=9\nd=4\n"));
  CHECK(one.differing_keys(two) == std::vector<std::string>{"b", "c", "d"});
  CHECK(one.differing_keys(one).empty());
}

TEST_CASE("a model id that is no lines of key and value is refused") {
  for (const std::string& text :
       {std::string("novalue\n"), std::string("=x\n"), std::string("a=1\na=2\n"),
        std::string("a=\x01\n"), std::string("a=b\0c\n", 6)}) {
    const Result<ModelId> id = ModelId::parse(text);
    REQUIRE_FALSE(id);
    CHECK(id.error().code == Errc::invalid);
  }
  ModelId id;
  CHECK_FALSE(id.set("", "x").has_value());
  CHECK_FALSE(id.set("a=b", "x").has_value());
  CHECK_FALSE(id.set("a\nb", "x").has_value());
  CHECK_FALSE(id.set("a", "x\ny").has_value());
  CHECK_FALSE(id.set("a", std::string(ModelId::max_text_bytes, 'x')).has_value());
  CHECK(id.unnamed());
}

TEST_CASE("every error code, plane and event has a name of its own") {
  std::vector<std::string> names;
  for (int code = 1; code <= 9; ++code) names.emplace_back(name(static_cast<Errc>(code)));
  for (std::uint32_t kind = 1; kind <= 9; ++kind)
    names.emplace_back(name(static_cast<EventKind>(kind)));
  names.emplace_back(name(Plane::key));
  names.emplace_back(name(Plane::value));
  std::sort(names.begin(), names.end());
  CHECK(std::unique(names.begin(), names.end()) == names.end());
  CHECK(names.front() != "");
  CHECK(name(Errc::incompatible) == "incompatible");
  CHECK(version() == "0.1.0");
}
