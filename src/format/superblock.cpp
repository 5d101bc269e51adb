#include "format/superblock.hpp"

#include <algorithm>
#include <cstring>
#include <esker/version.hpp>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "format/segment_layout.hpp"
#include "format/shape_table.hpp"

namespace esker::detail {

namespace {

constexpr std::array<char, 8> superblock_magic{'E', 'S', 'K', 'E', 'R', 'S', 'U', 'P'};
static_assert(sizeof(SuperblockHeader) == shape_table_offset);

std::uint64_t slot_checksum(std::span<const std::byte> slot) {
  return xxh3(slot.first(superblock_checksum_offset));
}

Failure bad(std::string_view path, std::string_view field, const std::string& found,
            const std::string& expected) {
  return fail_field(Errc::corrupt, path, field, found, expected,
                    "the file is damaged: restore it from a copy, or remove the store");
}

Result<SuperblockHeader> check_frame(std::span<const std::byte> slot, std::string_view path) {
  SuperblockHeader header;
  std::memcpy(&header, slot.data(), sizeof header);
  if (header.magic != superblock_magic) return bad(path, "magic", "something else", "ESKERSUP");
  std::uint64_t stored = 0;
  std::memcpy(&stored, slot.data() + superblock_checksum_offset, sizeof stored);
  if (const std::uint64_t sum = slot_checksum(slot); sum != stored) {
    return bad(path, "checksum", hex(stored), hex(sum));
  }
  return header;
}

Result<void> check_versions(const SuperblockHeader& header, std::string_view path) {
  if (header.read_version > format_write_version) {
    return fail_field(Errc::incompatible, path, "read_version", std::to_string(header.read_version),
                      "at most " + std::to_string(format_write_version),
                      "this store was written by a newer Esker; nothing was changed");
  }
  if (header.incompatible_features != 0) {
    return fail_field(Errc::incompatible, path, "incompatible_features",
                      hex(header.incompatible_features), "0",
                      "this store uses a feature that this Esker does not know");
  }
  return {};
}

Result<void> read_geometry(const SuperblockHeader& header, std::span<const std::byte> slot,
                           std::string_view path, Superblock& out) {
  const auto text = slot.first(superblock_checksum_offset);
  auto shape =
      read_shape({header.layers, header.block_tokens, header.model_id_bytes, header.dtype}, text);
  if (!shape) return bad(path, shape.error().field, shape.error().found, shape.error().expected);
  if (!all_zero(text.subspan(shape->end))) {
    return bad(path, "the space after the model id", "not zero", "zero");
  }
  out.geometry = std::move(shape->geometry);
  out.model = std::move(shape->model);
  return {};
}

Result<void> check_shape(const SuperblockHeader& header, std::string_view path,
                         const Superblock& out) {
  const SegmentLayout layout(out.geometry, header.segment_blocks);
  if (header.planes != layout.planes().size()) {
    return bad(path, "planes", std::to_string(header.planes),
               std::to_string(layout.planes().size()));
  }
  if (header.block_header_bytes != layout.block_header_bytes()) {
    return bad(path, "block_header_bytes", std::to_string(header.block_header_bytes),
               std::to_string(layout.block_header_bytes()));
  }
  if (header.segment_blocks == 0 || header.max_segments == 0 ||
      std::uint64_t{header.segment_blocks} * header.max_segments >= max_store_blocks) {
    return bad(path, "segment_blocks × max_segments",
               std::to_string(header.segment_blocks) + " × " + std::to_string(header.max_segments),
               "1…" + std::to_string(max_store_blocks - 1));
  }
  if (header.segment_file_bytes != layout.file_bytes()) {
    return bad(path, "segment_file_bytes", std::to_string(header.segment_file_bytes),
               std::to_string(layout.file_bytes()));
  }
  if (header.slots == 0 || header.slots > max_seats) {
    return bad(path, "slots", std::to_string(header.slots), "1…" + std::to_string(max_seats));
  }
  if (header.sharing > static_cast<std::uint32_t>(Sharing::group)) {
    return bad(path, "sharing", std::to_string(header.sharing), "0 or 1");
  }
  if (!all_zero(std::as_bytes(std::span(header.reserved)))) {
    return bad(path, "reserved", "not zero", "zero");
  }
  return {};
}

Result<Superblock> decode_slot(std::span<const std::byte> slot, std::string_view path) {
  auto header = check_frame(slot, path);
  if (!header) return tl::make_unexpected(std::move(header).error());
  if (auto ok = check_versions(*header, path); !ok) return tl::make_unexpected(ok.error());
  Superblock out;
  if (auto ok = read_geometry(*header, slot, path, out); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = check_shape(*header, path, out); !ok) return tl::make_unexpected(ok.error());
  out.write_version = header->write_version;
  out.read_version = header->read_version;
  out.read_only_features = header->read_only_features;
  out.sequence = header->sequence;
  out.uuid = header->uuid;
  out.secret = header->secret;
  out.created_unix_ns = header->created_unix_ns;
  out.capacity_bytes = header->capacity_bytes;
  out.segments_bytes = header->segments_bytes;
  out.sessions_bytes = header->sessions_bytes;
  out.cold_bytes = header->cold_bytes;
  out.segment_file_bytes = header->segment_file_bytes;
  out.segment_blocks = header->segment_blocks;
  out.max_segments = header->max_segments;
  out.seats = header->slots;
  out.sharing = static_cast<Sharing>(header->sharing);
  return out;
}

}  // namespace

void encode_superblock(const Superblock& superblock, SuperblockSlot& slot) {
  slot.fill(std::byte{0});
  const SegmentLayout layout(superblock.geometry, superblock.segment_blocks);
  const std::string model = superblock.model.text();
  SuperblockHeader header{};
  header.magic = superblock_magic;
  header.write_version = format_write_version;
  header.read_version = format_read_version;
  header.sequence = superblock.sequence;
  header.uuid = superblock.uuid;
  header.secret = superblock.secret;
  header.created_unix_ns = superblock.created_unix_ns;
  header.capacity_bytes = superblock.capacity_bytes;
  header.segments_bytes = superblock.segments_bytes;
  header.sessions_bytes = superblock.sessions_bytes;
  header.cold_bytes = superblock.cold_bytes;
  header.segment_file_bytes = superblock.segment_file_bytes;
  header.segment_blocks = superblock.segment_blocks;
  header.max_segments = superblock.max_segments;
  header.block_tokens = superblock.geometry.block_tokens;
  header.layers = static_cast<std::uint32_t>(superblock.geometry.layers.size());
  header.planes = static_cast<std::uint32_t>(layout.planes().size());
  header.block_header_bytes = layout.block_header_bytes();
  header.slots = superblock.seats;
  header.model_id_bytes = static_cast<std::uint32_t>(model.size());
  std::copy(superblock.geometry.dtype.begin(), superblock.geometry.dtype.end(),
            header.dtype.begin());
  header.sharing = static_cast<std::uint32_t>(superblock.sharing);
  std::memcpy(slot.data(), &header, sizeof header);
  write_shape(superblock.geometry, model, slot);
  const std::uint64_t sum = slot_checksum(slot);
  std::memcpy(slot.data() + superblock_checksum_offset, &sum, sizeof sum);
}

Result<Superblock> decode_superblock(std::span<const std::byte> both_slots, std::string_view path) {
  if (both_slots.size() != superblock_bytes) {
    return bad(path, "file size", std::to_string(both_slots.size()),
               std::to_string(superblock_bytes));
  }
  auto first = decode_slot(both_slots.first(superblock_slot_bytes), path);
  auto second = decode_slot(both_slots.subspan(superblock_slot_bytes), path);
  // A slot of a newer version must not be hidden by an older one that is still readable.
  for (const auto* slot : {&first, &second}) {
    if (!*slot && slot->error().code == Errc::incompatible) return *slot;
  }
  if (first && second) return first->sequence > second->sequence ? first : second;
  return first ? first : second ? second : first;
}

}  // namespace esker::detail
