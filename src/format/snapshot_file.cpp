#include "format/snapshot_file.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "format/shape_table.hpp"

namespace esker::detail {

namespace {

constexpr std::array<char, 8> snapshot_magic{'E', 'S', 'K', 'E', 'R', 'S', 'N', 'P'};
constexpr std::uint32_t max_head_bytes = 32'768;
static_assert(sizeof(SnapshotHeader) == shape_table_offset);

Failure bad(std::string_view path, std::string_view field, const std::string& found,
            const std::string& expected) {
  return fail_field(Errc::corrupt, path, field, found, expected,
                    "the file is damaged or no snapshot: get it anew, or export it again");
}

std::uint32_t head_bytes_of(std::size_t layers, std::size_t model_bytes) {
  return static_cast<std::uint32_t>(align_up(sizeof(SnapshotHeader) + 8 * layers + model_bytes, 8) +
                                    8);
}

std::uint32_t planes_of(const Geometry& geometry) {
  std::uint32_t planes = 0;
  for (const LayerRows& rows : geometry.layers) {
    planes += (rows.key_row_bytes != 0 ? 1U : 0U) + (rows.value_row_bytes != 0 ? 1U : 0U);
  }
  return planes;
}

/// What the model id has to say of rows that are not exact, or nothing.
std::string_view lossy_mark(Lossy lossy) {
  if (lossy == Lossy::q8) return "q8";
  if (lossy == Lossy::q4) return "q4";
  return {};
}

std::uint64_t frame_checksum(const FrameHeader& frame, const SnapshotHead& head) {
  const auto covered = std::as_bytes(std::span(&frame, 1)).first(offsetof(FrameHeader, checksum));
  return xxh3(covered, xxh3_of(head.id));
}

Result<void> check_versions(const SnapshotHeader& header, std::string_view path) {
  if (header.read_version > snapshot_write_version) {
    return fail_field(Errc::incompatible, path, "read_version", std::to_string(header.read_version),
                      "at most " + std::to_string(snapshot_write_version),
                      "this snapshot was written by a newer Esker: update this one");
  }
  if (header.incompatible_features != 0) {
    return fail_field(Errc::incompatible, path, "incompatible_features",
                      hex(header.incompatible_features), "0",
                      "this snapshot uses a feature that this Esker does not know: update it");
  }
  return {};
}

Result<void> check_fields(const SnapshotHeader& header, const SnapshotHead& head,
                          std::string_view path) {
  if (header.lossy > static_cast<std::uint32_t>(Lossy::q4)) {
    return bad(path, "lossy", std::to_string(header.lossy), "0…2");
  }
  if (header.use > static_cast<std::uint32_t>(SnapshotUse::cold)) {
    return bad(path, "use", std::to_string(header.use), "0 or 1");
  }
  if (const std::uint32_t planes = planes_of(head.geometry); header.planes != planes) {
    return bad(path, "planes", std::to_string(header.planes), std::to_string(planes));
  }
  const auto dtype = std::as_bytes(std::span(header.dtype)).subspan(head.geometry.dtype.size());
  if (!all_zero(dtype)) return bad(path, "dtype", "not padded with zeros", "zeros behind the text");
  if (!all_zero(std::as_bytes(std::span(header.reserved)))) {
    return bad(path, "reserved", "not zero", "zero");
  }
  const std::string_view mark = lossy_mark(static_cast<Lossy>(header.lossy));
  if (!mark.empty() && head.model.get("lossy") != mark) {
    return bad(path, "lossy of the model id", "'" + std::string(head.model.get("lossy")) + "'",
               "'" + std::string(mark) + "'");
  }
  return {};
}

/// What is zero in frames of some kinds.
Result<void> check_unused(const FrameHeader& frame, FrameKind kind, const std::string& where) {
  const bool chunk = kind == FrameKind::chunk;
  const auto zero = [&where](std::string_view field, std::uint64_t value) -> Result<void> {
    if (value == 0) return {};
    return bad(where, field, std::to_string(value), "0");
  };
  if (auto ok = zero("reserved", frame.reserved); !ok) return ok;
  if (!chunk) {
    if (auto ok = zero("compression", frame.compression); !ok) return ok;
    if (auto ok = zero("filter", frame.filter); !ok) return ok;
    if (auto ok = zero("lossy", frame.lossy); !ok) return ok;
    if (auto ok = zero("first_row", frame.first_row); !ok) return ok;
  }
  if (!chunk && kind != FrameKind::span && kind != FrameKind::namespaces) {
    if (auto ok = zero("rows", frame.rows); !ok) return ok;
  }
  if (kind == FrameKind::namespaces || kind == FrameKind::index || kind == FrameKind::end) {
    if (auto ok = zero("number", frame.number); !ok) return ok;
  }
  if (kind == FrameKind::namespaces || kind == FrameKind::session || kind == FrameKind::state) {
    if (auto ok = zero("content", frame.content); !ok) return ok;
  }
  if (kind == FrameKind::end) return zero("payload_bytes", frame.payload_bytes);
  return {};
}

}  // namespace

std::string frame_text(std::uint64_t sequence, std::string_view path) {
  return std::string(path) + ": frame " + std::to_string(sequence);
}

Result<std::vector<std::byte>> encode_snapshot_head(const SnapshotHead& head) {
  if (auto valid = head.geometry.validate(); !valid) return failure_of(valid);
  const std::string model = head.model.text();
  if (model.size() > ModelId::max_text_bytes) {
    return fail(Errc::invalid, "the model id has " + std::to_string(model.size()) +
                                   " bytes, allowed are " +
                                   std::to_string(ModelId::max_text_bytes));
  }
  const std::string_view mark = lossy_mark(head.lossy);
  if (!mark.empty() && head.model.get("lossy") != mark) {
    return fail(Errc::invalid, "a snapshot of quantised rows needs lossy=" + std::string(mark) +
                                   " in its model id, so that they never mix with exact ones");
  }
  SnapshotHeader out{};
  out.magic = snapshot_magic;
  out.write_version = head.write_version;
  out.read_version = head.read_version;
  out.id = head.id;
  out.salt = head.salt;
  out.created_unix_ns = head.created_unix_ns;
  out.header_bytes = head_bytes_of(head.geometry.layers.size(), model.size());
  out.block_tokens = head.geometry.block_tokens;
  out.layers = static_cast<std::uint32_t>(head.geometry.layers.size());
  out.planes = planes_of(head.geometry);
  out.model_id_bytes = static_cast<std::uint32_t>(model.size());
  out.lossy = static_cast<std::uint32_t>(head.lossy);
  std::copy(head.geometry.dtype.begin(), head.geometry.dtype.end(), out.dtype.begin());
  out.use = static_cast<std::uint32_t>(head.use);
  std::vector<std::byte> bytes(out.header_bytes);
  std::memcpy(bytes.data(), &out, sizeof out);
  write_shape(head.geometry, model, bytes);
  const std::uint64_t sum = xxh3(std::span(bytes).first(bytes.size() - sizeof(std::uint64_t)));
  std::memcpy(bytes.data() + bytes.size() - sizeof sum, &sum, sizeof sum);
  return bytes;
}

Result<std::uint32_t> snapshot_head_bytes(std::span<const std::byte> first, std::string_view path) {
  SnapshotHeader header;
  if (first.size() < sizeof header) {
    return bad(path, "size", std::to_string(first.size()), "at least 256");
  }
  std::memcpy(&header, first.data(), sizeof header);
  if (header.magic != snapshot_magic) return bad(path, "magic", "something else", "ESKERSNP");
  if (auto ok = check_versions(header, path); !ok) return failure_of(ok);
  if (header.layers == 0 || header.layers > Geometry::max_layers) {
    return bad(path, "layers", std::to_string(header.layers),
               "1…" + std::to_string(Geometry::max_layers));
  }
  if (header.model_id_bytes > ModelId::max_text_bytes) {
    return bad(path, "model_id_bytes", std::to_string(header.model_id_bytes),
               "at most " + std::to_string(ModelId::max_text_bytes));
  }
  const std::uint32_t expected = head_bytes_of(header.layers, header.model_id_bytes);
  static_assert(sizeof(SnapshotHeader) + 8 * Geometry::max_layers + ModelId::max_text_bytes + 16 <=
                max_head_bytes);
  if (header.header_bytes != expected) {
    return bad(path, "header_bytes", std::to_string(header.header_bytes), std::to_string(expected));
  }
  return expected;
}

Result<SnapshotHead> decode_snapshot_head(std::span<const std::byte> bytes, std::string_view path) {
  auto expected = snapshot_head_bytes(bytes, path);
  if (!expected) return failure_of(expected);
  if (bytes.size() != *expected) {
    return bad(path, "header_bytes", std::to_string(*expected), std::to_string(bytes.size()));
  }
  SnapshotHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto covered = bytes.first(bytes.size() - sizeof(std::uint64_t));
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + covered.size(), sizeof stored);
  if (const std::uint64_t sum = xxh3(covered); sum != stored) {
    return bad(path, "header checksum", hex(stored), hex(sum));
  }
  auto shape = read_shape({header.layers, header.block_tokens, header.model_id_bytes, header.dtype},
                          covered);
  if (!shape) return bad(path, shape.error().field, shape.error().found, shape.error().expected);
  if (!all_zero(covered.subspan(shape->end))) {
    return bad(path, "the space after the model id", "not zero", "zero");
  }
  SnapshotHead head;
  head.geometry = std::move(shape->geometry);
  head.model = std::move(shape->model);
  if (auto ok = check_fields(header, head, path); !ok) return failure_of(ok);
  head.id = header.id;
  head.salt = header.salt;
  head.write_version = header.write_version;
  head.read_version = header.read_version;
  head.created_unix_ns = header.created_unix_ns;
  head.use = static_cast<SnapshotUse>(header.use);
  head.lossy = static_cast<Lossy>(header.lossy);
  return head;
}

void seal_frame(FrameHeader& frame, std::span<const std::byte> payload, const SnapshotHead& head) {
  seal_frame_of_sum(frame, xxh3(payload), head);
}

void seal_frame_of_sum(FrameHeader& frame, std::uint64_t payload_checksum,
                       const SnapshotHead& head) {
  frame.magic = frame_magic;
  frame.payload_checksum = payload_checksum;
  frame.checksum = frame_checksum(frame, head);
}

Result<void> check_frame(const FrameHeader& frame, std::uint64_t sequence, const SnapshotHead& head,
                         std::string_view path) {
  const std::string where = frame_text(sequence, path);
  if (frame.magic != frame_magic) return bad(where, "magic", hex(frame.magic), hex(frame_magic));
  if (const std::uint64_t sum = frame_checksum(frame, head); frame.checksum != sum) {
    return bad(where, "header checksum", hex(frame.checksum), hex(sum));
  }
  if (frame.sequence != sequence) {
    return bad(where, "sequence", std::to_string(frame.sequence), std::to_string(sequence));
  }
  if (frame.kind < static_cast<std::uint8_t>(FrameKind::namespaces) ||
      frame.kind > static_cast<std::uint8_t>(FrameKind::end)) {
    return bad(where, "kind", std::to_string(frame.kind), "1…7");
  }
  return check_unused(frame, static_cast<FrameKind>(frame.kind), where);
}

}  // namespace esker::detail
