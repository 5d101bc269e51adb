#include "catch.hpp"

#include <cmath>
#include <cstring>

#include "snapshot_support.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr std::uint32_t tokens_stored = 96;

Geometry float_geometry() { return need(Geometry::uniform(2, 2, 16, "f32", 16)); }

/// Smooth rows of floats, as KV rows are.
std::vector<float> float_rows(std::uint32_t layer, Plane plane) {
  std::vector<float> rows;
  for (std::uint32_t token = 0; token < tokens_stored; ++token) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      const float channel = static_cast<float>(i + 32 * layer) * 0.37F;
      const float shift = plane == Plane::key ? 1.0F : 0.5F;
      rows.push_back(std::sin(channel) * shift + 0.1F * std::cos(static_cast<float>(token)));
    }
  }
  return rows;
}

Store float_store(const std::string& path) {
  Store store = make_store(path, float_geometry());
  Reservation room = need(store.reserve(prompt(tokens_stored, 1)));
  each_plane(store.geometry(), [&](std::uint32_t layer, Plane plane) {
    const auto rows = float_rows(layer, plane);
    need(room.write(layer, plane, 0, std::as_bytes(std::span(rows))));
  });
  static_cast<void>(need(std::move(room).publish()));
  return store;
}

ExportOptions lossy(Lossy how) {
  ExportOptions options;
  options.lossy = how;
  return options;
}

}  // namespace

TEST_CASE("quantised rows are near the exact ones, as near as the report says", "[snapshot]") {
  const TempDir dir;
  const Lossy how = GENERATE(Lossy::q8, Lossy::q4);
  const Store from = float_store(dir / "from");
  const auto written = need(export_snapshot(from, dir / "s.esnap", lossy(how)));
  CHECK(written.lossy_error[0].rms > 0);
  CHECK(written.lossy_error[1].rms_relative > 0);
  CHECK(written.lossy_error[0].rms_relative < (how == Lossy::q8 ? 0.01 : 0.1));
  const Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
  CHECK(snapshot.info().lossy == how);
  CHECK(snapshot.model().get("lossy") == name(how));
  each_plane(from.geometry(), [&](std::uint32_t layer, Plane plane) {
    const auto exact = float_rows(layer, plane);
    std::vector<float> found(exact.size());
    need(snapshot.copy(prompt(tokens_stored, 1), 0, layer, plane, {},
                       std::as_writable_bytes(std::span(found))));
    const double most = written.lossy_error[static_cast<std::size_t>(plane)].max_absolute;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      REQUIRE(std::abs(double{found[i]} - double{exact[i]}) <= most * 1.0001);
    }
  });
}

TEST_CASE("lossy rows never mix with exact ones", "[snapshot]") {
  const TempDir dir;
  Store from = float_store(dir / "from");
  need(export_snapshot(from, dir / "lossy.esnap", lossy(Lossy::q8)));
  need(export_snapshot(from, dir / "exact.esnap"));
  Snapshot file = need(Snapshot::open(dir / "lossy.esnap"));
  const auto refused = import_snapshot(from, file);
  REQUIRE(refused.error().code == Errc::incompatible);
  CHECK_THAT(refused.error().message, contains("lossy"));
  ImportOptions assume;
  assume.assume_same = {"lossy"};
  CHECK(import_snapshot(from, file, assume).error().code == Errc::invalid);

  Store to = need(Store::create(dir / "to", file.geometry(), file.model(), small_options()));
  CHECK(need(import_snapshot(to, file)).stored_blocks == 6);
  Snapshot exact = need(Snapshot::open(dir / "exact.esnap"));
  CHECK(import_snapshot(to, exact).error().code == Errc::incompatible);

  // Exported as they are, they stay marked; quantised otherwise they would be wrong twice.
  need(export_snapshot(to, dir / "again.esnap"));
  const Snapshot again = need(Snapshot::open(dir / "again.esnap"));
  CHECK(again.info().lossy == Lossy::q8);
  CHECK(again.model() == file.model());
  std::vector<std::byte> left(tokens_stored * 128);
  std::vector<std::byte> right(left.size());
  need(file.copy(prompt(tokens_stored, 1), 0, 1, Plane::key, {}, left));
  need(again.copy(prompt(tokens_stored, 1), 0, 1, Plane::key, {}, right));
  CHECK(left == right);
  CHECK(export_snapshot(to, dir / "q4.esnap", lossy(Lossy::q4)).error().code == Errc::invalid);
}

TEST_CASE("what is no float cannot be quantised, and choices that do not exist are refused",
          "[snapshot]") {
  const TempDir dir;
  Geometry geometry = small_geometry();
  geometry.dtype = "q8_0";
  Store from = make_store(dir / "from", geometry);
  put(from, prompt(40, 1));
  const auto refused = export_snapshot(from, dir / "s.esnap", lossy(Lossy::q8));
  REQUIRE(refused.error().code == Errc::invalid);
  CHECK_THAT(refused.error().message, contains("q8_0"));
  ExportOptions options;
  options.level = 20;
  CHECK(export_snapshot(from, dir / "s.esnap", options).error().code == Errc::invalid);
  options.level = 0;
  options.compression = static_cast<Compression>(9);
  CHECK(export_snapshot(from, dir / "s.esnap", options).error().code == Errc::invalid);
}
