/// A store's superblock, and the header of a block: whatever the bytes are, they are refused, or
/// what was read can be written and read again.
///
/// Input: one byte of `Treatment`, then the file.

#include <cstring>
#include <span>

#include "base/hash.hpp"
#include "format/block_header.hpp"
#include "format/segment_layout.hpp"
#include "format/superblock.hpp"
#include "fuzz/fuzz_target.hpp"

using namespace esker;
using namespace esker::detail;

namespace {

enum Treatment : std::uint8_t {
  block_header = 1,  ///< the header of a block, not a superblock
  right_sums = 2,    ///< its checksums are made right first
};

std::uint64_t accepted_inputs = 0;

Superblock sample(std::uint64_t sequence) {
  Superblock superblock;
  superblock.sequence = sequence;
  superblock.uuid.fill(7);
  superblock.secret.fill(9);
  superblock.created_unix_ns = 1'700'000'000'000'000'000;
  superblock.capacity_bytes = 1U << 24U;
  superblock.segments_bytes = 1U << 24U;
  superblock.segment_blocks = 8;
  superblock.max_segments = 16;
  superblock.seats = 32;
  superblock.geometry.layers = {{34, 40}, {66, 0}, {18, 57}};
  superblock.geometry.dtype = "f16";
  superblock.geometry.block_tokens = 16;
  superblock.model = ModelId::parse("weights=0123abcd\nrope=10000\n").value();
  const SegmentLayout layout(superblock.geometry, superblock.segment_blocks);
  superblock.segment_file_bytes = layout.file_bytes();
  return superblock;
}

void append(fuzz::Bytes& out, std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  out.insert(out.end(), data, data + bytes.size());
}

fuzz::Bytes superblock_file(std::uint8_t treatment, std::uint64_t first, std::uint64_t second) {
  fuzz::Bytes out;
  out.reserve(1 + superblock_bytes);
  out.push_back(treatment);
  SuperblockSlot slot;
  for (const std::uint64_t sequence : {first, second}) {
    encode_superblock(sample(sequence), slot);
    append(out, slot);
  }
  return out;
}

fuzz::Bytes block_file(BlockKind kind) {
  BlockHeader header{};
  header.magic = block_magic;
  header.header_bytes = block_header_bytes_of(16, 5);
  header.node_random = 1;
  header.node_counter = 2;
  header.tokens = kind == BlockKind::key ? 16 : 5;
  header.label_bytes = kind == BlockKind::key ? 9 : 20;
  header.kind = static_cast<std::uint8_t>(kind);
  header.namespace_bytes = 3;
  header.name_space = {'o', 'n', 'e'};
  fuzz::Bytes out;
  out.reserve(1 + sizeof header);
  out.push_back(block_header);
  append(out, std::as_bytes(std::span(&header, 1)));
  return out;
}

bool same(const Superblock& a, const Superblock& b) {
  return a.sequence == b.sequence && a.uuid == b.uuid && a.secret == b.secret &&
         a.created_unix_ns == b.created_unix_ns && a.capacity_bytes == b.capacity_bytes &&
         a.segments_bytes == b.segments_bytes && a.sessions_bytes == b.sessions_bytes &&
         a.cold_bytes == b.cold_bytes && a.segment_file_bytes == b.segment_file_bytes &&
         a.segment_blocks == b.segment_blocks && a.max_segments == b.max_segments &&
         a.seats == b.seats && a.sharing == b.sharing && a.geometry == b.geometry &&
         a.model == b.model;
}

void try_superblock(std::span<std::byte> file, bool fix) {
  for (std::size_t at = 0; fix && at + superblock_slot_bytes <= file.size();
       at += superblock_slot_bytes) {
    const std::uint64_t sum = xxh3(file.subspan(at, superblock_checksum_offset));
    std::memcpy(file.data() + at + superblock_checksum_offset, &sum, sizeof sum);
  }
  const Result<Superblock> first = decode_superblock(file, "fuzz");
  if (!first) {
    fuzz::require(first.error().message.find("fuzz") != std::string::npos, "errors name the file");
    return;
  }
  ++accepted_inputs;
  fuzz::require(first->geometry.validate().has_value(), "a superblock has a valid geometry");
  fuzz::require(first->max_blocks() > 0 && first->max_blocks() < max_store_blocks,
                "a superblock has blocks, and not too many");
  std::vector<std::byte> again(superblock_bytes);
  SuperblockSlot slot;
  encode_superblock(*first, slot);
  std::memcpy(again.data(), slot.data(), slot.size());
  std::memcpy(again.data() + slot.size(), slot.data(), slot.size());
  const Result<Superblock> second = decode_superblock(again, "fuzz");
  fuzz::require(second && same(*first, *second), "what was read can be written and read again");
}

void try_block_header(std::span<const std::byte> file) {
  BlockHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  if (!well_formed(header, 16, block_header_bytes_of(16, 5))) return;
  ++accepted_inputs;
  fuzz::require(header.label_bytes <= label_capacity_of(16), "a label has its place");
  fuzz::require(sizeof header + header.label_bytes <= header.header_bytes,
                "a label ends inside the header");
  fuzz::require(header.tokens >= 1 && header.tokens <= 16, "a block holds 1…block_tokens tokens");
  fuzz::require(header.namespace_bytes <= header.name_space.size(), "a namespace has its place");
}

}  // namespace

std::vector<fuzz::Bytes> esker::fuzz::corpus() {
  return {superblock_file(0, 1, 2), superblock_file(right_sums, 1, 2),
          superblock_file(right_sums, 9, 8), block_file(BlockKind::tokens),
          block_file(BlockKind::key)};
}

std::uint64_t esker::fuzz::accepted() { return accepted_inputs; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(begin + 1, begin + size);
  if ((data[0] & block_header) != 0) {
    try_block_header(file);
  } else {
    try_superblock(file, (data[0] & right_sums) != 0);
  }
  return 0;
}
