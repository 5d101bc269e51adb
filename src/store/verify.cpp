// Invariants
// 1. Everything is read with pread: a file that is truncated meanwhile is a finding, not a signal.
// 2. A block is judged only if its word and generation are the same before and after it was read.
#include <fcntl.h>
#include <cerrno>
#include <cstring>
#include <vector>

#include "archive/reader.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "store/cold_file.hpp"
#include "store/cold_files.hpp"
#include "store/house.hpp"
#include "store/session_paths.hpp"

namespace esker::detail {

namespace {

class Verifier {
 public:
  Verifier(Core& core, const Progress& progress)
      : core_(core), progress_(progress), header_(core.segments.layout().block_header_bytes()) {}

  VerifyReport run() {
    core_.follow_growth();
    check_superblock();
    check_segments();
    check_sessions();
    check_cold();
    const std::uint64_t total = ready_bytes();
    for (std::uint32_t block = 0; block < core_.known_blocks(); ++block) {
      check_block(block);
      if (progress_) progress_(std::min(report_.bytes, total), total);
    }
    return std::move(report_);
  }

 private:
  void found(std::string file, std::uint32_t block, std::string what) {
    report_.damage.push_back(Damage{std::move(file), block, std::move(what)});
  }

  void check_superblock() {
    const std::string path = core_.directory.path() + "/" + file_names::superblock;
    auto file = File::open_at(core_.directory.fd(), core_.directory.path(), file_names::superblock,
                              O_RDONLY);
    std::vector<std::byte> bytes(superblock_bytes);
    auto read = file ? file->read_at(0, bytes) : Result<void>(tl::make_unexpected(file.error()));
    if (!read) return found(path, 0, read.error().message);
    for (std::size_t slot = 0; slot < 2; ++slot) {
      // Each slot by itself, paired with itself: the other one must not hide it.
      std::vector<std::byte> twice(superblock_bytes);
      const std::byte* source = bytes.data() + slot * superblock_slot_bytes;
      std::memcpy(twice.data(), source, superblock_slot_bytes);
      std::memcpy(twice.data() + superblock_slot_bytes, source, superblock_slot_bytes);
      if (auto decoded = decode_superblock(twice, path + " (slot " + std::to_string(slot) + ")");
          !decoded) {
        found(path, 0, decoded.error().message);
      }
    }
  }

  void check_segments() {
    for (std::uint32_t index = 0; index < core_.segments.count(); ++index) {
      const std::string path = core_.segments_directory.path() + "/" + segment_name(index);
      const Segment* segment = core_.segments.segment(index);
      if (segment == nullptr) {
        found(path, index * core_.superblock.segment_blocks, core_.segments.failure(index).message);
        continue;
      }
      // Opened anew: the file may have been replaced or truncated since it was mapped.
      auto again = open_segment(core_.segments_directory, core_.segments.plan(), index, false);
      if (!again) {
        found(path, index * core_.superblock.segment_blocks, again.error().message);
      } else if (again->inode != segment->inode || again->device != segment->device) {
        found(path, index * core_.superblock.segment_blocks,
              path + ": another file than the one that is in use");
      }
    }
  }

  void check_sessions() {
    const std::string path = core_.directory.path() + "/" + file_names::sessions;
    auto files = session_files(core_, false);
    if (!files) return found(path, 0, files.error().message);
    auto names = files->names();
    if (!names) return found(path, 0, names.error().message);
    for (const std::string& name : *names) {
      const std::size_t before = report_.damage.size();
      check_session(*files, name, path);
      if (report_.damage.size() == before) ++report_.sessions;
    }
  }

  void check_session(const SessionFiles& files, const std::string& name, const std::string& path) {
    // One that was removed meanwhile is no finding.
    const auto judge_error = [&](const Error& error) {
      if (error.code != Errc::missing) found(path, 0, error.message);
    };
    if (auto record = files.read(name); !record) return judge_error(record.error());
    auto attachments = files.attachments(name);
    if (!attachments) return judge_error(attachments.error());
    for (const auto& [record, damage] : *attachments) {
      if (auto state = files.state(name, record.label); !state) judge_error(state.error());
    }
  }

  void check_cold() {
    const std::string path = core_.directory.path() + "/" + file_names::cold;
    auto cold = open_cold(core_.directory);
    if (!cold) return found(path, 0, cold.error().message);
    if (!*cold) return;
    auto files = list_cold(**cold);
    if (!files) return found(path, 0, files.error().message);
    for (const ColdFileStatus& status : *files) check_cold_file(**cold, status.name);
  }

  void check_cold_file(const Directory& cold, const std::string& name) {
    const std::string path = cold.path() + "/" + name;
    auto file = cold.open_file(name, O_RDONLY, core_.superblock.sharing);
    if (!file) {
      // One that was removed meanwhile is no finding.
      if (file.error().os_error != ENOENT) found(path, 0, file.error().message);
      return;
    }
    auto reader = ArchiveReader::open(std::move(*file));
    if (!reader) return found(path, 0, reader.error().message);
    if (auto ours = check_cold_head(*reader, core_.superblock); !ours) {
      return found(path, 0, ours.error().message);
    }
    auto checked = check_archive(*reader, {});
    if (!checked) return found(path, 0, checked.error().message);
    const bool whole = checked->damage.empty();
    for (Damage& damage : checked->damage) report_.damage.push_back(std::move(damage));
    if (whole) ++report_.cold_files;
  }

  [[nodiscard]] std::uint64_t ready_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t block = 0; block < core_.known_blocks(); ++block) {
      if (core_.word(block, std::memory_order_relaxed).state == BlockState::ready) {
        bytes += core_.superblock.geometry.block_bytes();
      }
    }
    return bytes;
  }

  void check_block(std::uint32_t block) {
    const BlockWord before = core_.word(block);
    const Segment* segment = core_.segments.segment_of(block);
    if (before.owner > core_.control.layout().seats) {
      return found(core_.directory.path() + "/" + file_names::control, block,
                   "the owner of block " + std::to_string(block) + " is no seat");
    }
    if (before.state != BlockState::ready || segment == nullptr) return;
    core_.pins.pin(block);
    if (core_.word(block, std::memory_order_seq_cst).ready(before.generation)) {
      const std::string what = judge(block, before.generation, *segment);
      const BlockWord after = core_.word(block, std::memory_order_seq_cst);
      const bool stable = after.generation == before.generation &&
                          (after.state == BlockState::ready || after.state == BlockState::retired);
      if (!stable || (!what.empty() && !same_on_disk(block, *segment))) {
        ++report_.changed;
      } else if (what.empty()) {
        ++report_.blocks;
      } else {
        found(segment->file.path(), block, what);
      }
    }
    core_.pins.unpin(block);
  }

  /// A handle that cannot pin may have read a block while others recycled it.
  bool same_on_disk(std::uint32_t block, const Segment& segment) {
    if (core_.options.access != Access::inspect) return true;
    std::vector<std::byte> again(header_.size());
    const auto offset = core_.segments.layout().header_offset(core_.segments.local(block));
    return segment.file.read_at(offset, again).has_value() && again == header_;
  }

  std::string judge(std::uint32_t block, std::uint32_t generation, const Segment& segment) {
    const SegmentLayout& layout = core_.segments.layout();
    const std::uint32_t local = core_.segments.local(block);
    const std::string subject = "block " + std::to_string(block);
    if (auto read = segment.file.read_at(layout.header_offset(local), header_); !read) {
      return read.error().message;
    }
    BlockHeader header;
    std::memcpy(&header, header_.data(), sizeof header);
    const std::uint64_t check = core_.control.check(block).load(std::memory_order_relaxed);
    if (!core_.prover.valid(block, header_.data()) || header.generation != generation ||
        (check != 0 && check != header.checksum)) {
      return subject + ": the header does not match its checksum; the block is not served";
    }
    for (std::size_t plane = 0; plane < layout.planes().size(); ++plane) {
      const PlaneRegion& region = layout.planes()[plane];
      rows_.resize(std::size_t{header.tokens} * region.row_bytes);
      if (auto read = segment.file.read_at(layout.row_offset(plane, local, 0), rows_); !read) {
        return read.error().message;
      }
      report_.bytes += rows_.size();
      std::uint64_t sum = 0;
      std::memcpy(&sum, header_.data() + sizeof(BlockHeader) + layout.label_capacity() + 8 * plane,
                  sizeof sum);
      if (xxh3(rows_) != sum) {
        return subject + ", layer " + std::to_string(region.layer) + " " +
               std::string(name(region.plane)) +
               ": the payload does not match its checksum; the block is not served";
      }
    }
    return {};
  }

  Core& core_;
  const Progress& progress_;
  VerifyReport report_;
  std::vector<std::byte> header_;
  std::vector<std::byte> rows_;
};

}  // namespace

Result<VerifyReport> verify(Core& core, const Progress& progress) {
  return Verifier(core, progress).run();
}

}  // namespace esker::detail
