// Invariants
// 1. A block is retired only when a cold file that holds it has its name and is on disk. Killed
//    before, it is in the segments; killed in between, in both.
// 2. A block is frozen only with all READY blocks that hang under it: children name their parent by
//    its node id, which it loses. So leaves go first, and a parent only when no child is left.
// 3. What was used, pinned or kept since it was chosen stays where it is.
// 4. COLD is held while a batch is written and its blocks are retired, and given up in between.
#include "store/freeze.hpp"

#include <time.h>
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/cold_tier.hpp"
#include "store/cold_write.hpp"
#include "store/kept.hpp"
#include "store/retire.hpp"
#include "store/trie_scan.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t evictor_wait_ms = 20;
constexpr std::uint64_t batch_bytes_most = std::uint64_t{256} << 20;
constexpr std::uint64_t batches_per_share = 8;  // so that files go one by one, not all at once
constexpr std::uint32_t none = UINT32_MAX;

/// A block that was chosen.
struct Choice {
  std::uint32_t entry = 0;  ///< in the scan
  Victim victim;
};

/// What a pass over the store found out before anything is written.
struct Chosen {
  std::vector<ScannedBlock> scanned;
  std::vector<Choice> choices;      ///< leaves first
  std::vector<std::uint32_t> left;  ///< per scanned block: READY children that are still there
};

/// Victims whose path can be spelled and below which nothing stays.
Chosen choose(Core& core, std::span<const Victim> victims, std::uint64_t most_blocks) {
  Chosen chosen;
  chosen.scanned = scan_trie(core);
  const std::vector<ScannedBlock>& scanned = chosen.scanned;
  std::unordered_map<std::uint32_t, std::uint32_t> entries;
  std::vector<bool> rooted(scanned.size());
  chosen.left.resize(scanned.size());
  for (std::uint32_t i = 0; i < scanned.size(); ++i) {
    const std::uint32_t parent = scanned[i].parent_entry;
    rooted[i] = scanned[i].parent.root() || (parent != none && rooted[parent]);
    chosen.left[i] = scanned[i].children;
    entries.emplace(scanned[i].block, i);
  }
  std::vector<std::uint32_t> staying = chosen.left;
  for (const Victim& victim : victims) {
    if (chosen.choices.size() >= most_blocks) break;
    const auto found = entries.find(victim.block);
    if (found == entries.end()) continue;
    const std::uint32_t entry = found->second;
    const bool same = scanned[entry].generation == victim.generation;
    if (!same || !rooted[entry] || staying[entry] > 0) continue;
    chosen.choices.push_back({entry, victim});
    if (scanned[entry].parent_entry != none) --staying[scanned[entry].parent_entry];
  }
  return chosen;
}

/// A scanned block as it is spelled in a file.
struct Spelled {
  std::vector<std::byte> label;
  std::string name_space;
  std::uint64_t published_unix_ns = 0;
  std::uint64_t used_unix_ns = 0;
  BlockKind kind = BlockKind::tokens;
  std::vector<ColdPlace> copies;  ///< the same path in cold files, with rows or without
};

/// The paths of a batch of blocks, spelled out.
class Speller {
 public:
  Speller(Core& core, const std::vector<ScannedBlock>& scanned, const ColdView& view)
      : core_(core), scanned_(scanned), view_(view) {}

  void spell(std::span<const Choice> batch) {
    std::vector<std::uint32_t> wanted;
    std::vector<bool> seen(scanned_.size());
    for (const Choice& choice : batch) {
      for (std::uint32_t at = choice.entry; at != none && !seen[at];
           at = scanned_[at].parent_entry) {
        seen[at] = true;
        wanted.push_back(at);
      }
    }
    std::sort(wanted.begin(), wanted.end());  // parents come first
    for (const std::uint32_t entry : wanted) spell_one(entry);
    order_ = std::move(wanted);
  }

  /// nullptr: it, or what is above it, has gone since the scan.
  [[nodiscard]] const Spelled* find(std::uint32_t entry) const {
    const auto found = spelled_.find(entry);
    return found == spelled_.end() ? nullptr : &found->second;
  }
  /// What was asked for and what is above it; parents first.
  [[nodiscard]] const std::vector<std::uint32_t>& order() const noexcept { return order_; }

 private:
  void spell_one(std::uint32_t entry) {
    const ScannedBlock& block = scanned_[entry];
    const bool at_root = block.parent.root();
    const Spelled* parent = at_root ? nullptr : find(block.parent_entry);
    if (!at_root && parent == nullptr) return;
    const Found found = pin_node(core_, block.block, block.generation, block.node);
    if (!found) return;
    const BlockHeader& header = *found.header;
    if (header.tokens == block.tokens) {
      Spelled spelled = read(header, block);
      find_copies(block, parent, spelled);
      spelled_.emplace(entry, std::move(spelled));
    }
    core_.pins.unpin(found.pinned.block);
  }

  [[nodiscard]] Spelled read(const BlockHeader& header, const ScannedBlock& block) const {
    Spelled spelled;
    const auto label = core_.prover.label(header);
    spelled.label.assign(label.begin(), label.end());
    spelled.name_space.assign(header.name_space.data(),
                              std::min<std::size_t>(header.namespace_bytes, max_namespace_bytes));
    spelled.published_unix_ns = header.published_unix_ns;
    spelled.kind = static_cast<BlockKind>(header.kind);
    const auto touch =
        TouchWord::unpack(core_.control.touch(block.block).load(std::memory_order_relaxed));
    spelled.used_unix_ns = unix_of_stamp(touch.stamp);
    return spelled;
  }

  void find_copies(const ScannedBlock& block, const Spelled* parent, Spelled& spelled) const {
    ColdFile::Step step{no_node, spelled.name_space, block.chain_hash, spelled.label, spelled.kind};
    const auto look = [&](const std::shared_ptr<const ColdFile>& file) {
      const std::uint32_t node = file->find(step);
      if (node != no_node) spelled.copies.push_back({file, node});
    };
    if (parent == nullptr) {
      for (const auto& file : view_.files) look(file);
      return;
    }
    for (const ColdPlace& above : parent->copies) {
      step.parent = above.node;
      look(above.file);
    }
  }

  Core& core_;
  const std::vector<ScannedBlock>& scanned_;
  const ColdView& view_;
  std::unordered_map<std::uint32_t, Spelled> spelled_;
  std::vector<std::uint32_t> order_;
};

/// The file in which the rows of a block are already.
const ColdPlace* known_copy(const Spelled& spelled) {
  for (const ColdPlace& copy : spelled.copies) {
    if (copy.file->serves(copy.node)) return &copy;
  }
  return nullptr;
}

/// What is to be written of a batch, with all that spells it.
class Drafter {
 public:
  Drafter(const std::vector<ScannedBlock>& scanned, const Speller& speller)
      : scanned_(scanned), speller_(speller) {}

  ColdDraft draft(std::span<const Choice> batch) {
    for (const Choice& choice : batch) {
      with_rows_.insert(choice.entry);
      for (std::uint32_t at = choice.entry; at != none; at = scanned_[at].parent_entry) {
        if (!needed_.emplace(at, none).second) break;
      }
    }
    for (const std::uint32_t entry : speller_.order()) {
      if (needed_.count(entry) != 0) add(entry);
    }
    return std::move(draft_);
  }
  /// Of the draft's nodes, which block of the scan each is.
  [[nodiscard]] const std::vector<std::uint32_t>& entries() const noexcept { return entries_; }
  /// Blocks of the scan that are the same path as another one that has been drafted, and its node.
  [[nodiscard]] const std::vector<std::pair<std::uint32_t, std::uint32_t>>& twins() const noexcept {
    return twins_;
  }

 private:
  void add(std::uint32_t entry) {
    const Spelled& spelled = *speller_.find(entry);
    const ScannedBlock& block = scanned_[entry];
    DraftNode draft;
    draft.node.parent = block.parent_entry == none ? no_node : needed_[block.parent_entry];
    draft.node.name_space = number_of(spelled.name_space);
    draft.node.first_token = block.first_token;
    draft.node.tokens = block.tokens;
    draft.node.path_hash = block.chain_hash;
    draft.node.published_unix_ns = spelled.published_unix_ns;
    draft.node.used_unix_ns = spelled.used_unix_ns;
    draft.node.kind = spelled.kind;
    draft.node.has_rows = with_rows_.count(entry) != 0;
    draft.node.label = spelled.label;
    draft.block = block.block;
    draft.generation = block.generation;
    draft.id = block.node;
    const auto [known, added] =
        numbers_.emplace(identity(draft.node), static_cast<std::uint32_t>(draft_.nodes.size()));
    needed_[entry] = known->second;
    if (!added) return join(entry, known->second, std::move(draft));
    entries_.push_back(entry);
    draft_.nodes.push_back(std::move(draft));
  }

  /// Two blocks may hold the same path, when the way to one was lost: the file has it once.
  void join(std::uint32_t entry, std::uint32_t number, DraftNode draft) {
    if (!draft.node.has_rows) return;
    DraftNode& first = draft_.nodes[number];
    if (first.node.has_rows) {
      twins_.emplace_back(entry, number);
      return;
    }
    first = std::move(draft);
    entries_[number] = entry;
  }

  /// Equal for nodes that may not stand in a file both.
  static std::string identity(const ArchiveNode& node) {
    std::string text = std::to_string(node.parent) + ' ' + std::to_string(node.name_space) + ' ' +
                       std::to_string(static_cast<int>(node.kind)) + ' ';
    text.append(reinterpret_cast<const char*>(node.label.data()), node.label.size());
    return text;
  }

  std::uint32_t number_of(const std::string& name_space) {
    const auto [found, added] =
        namespaces_.emplace(name_space, static_cast<std::uint32_t>(draft_.namespaces.size()));
    if (added) draft_.namespaces.push_back(name_space);
    return found->second;
  }

  const std::vector<ScannedBlock>& scanned_;
  const Speller& speller_;
  ColdDraft draft_;
  std::vector<std::uint32_t> entries_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> twins_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  ///< by identity
  std::unordered_set<std::uint32_t> with_rows_;
  std::unordered_map<std::uint32_t, std::uint32_t> needed_;  ///< entry → index in the draft
  std::unordered_map<std::string, std::uint32_t> namespaces_;
};

/// Entry of the scan → the cold file that has its rows.
using Copies = std::unordered_map<std::uint32_t, std::string>;

class Freezer {
 public:
  Freezer(Core& core, const FreezeOptions& options, std::uint32_t wait_ms)
      : core_(core), options_(options), wait_ms_(wait_ms) {}

  Result<void> run(std::span<const Victim> victims) {
    const std::uint64_t block_bytes = core_.superblock.geometry.block_bytes();
    chosen_ = choose(core_, victims, options_.most_bytes / block_bytes);
    const std::uint64_t share = core_.superblock.cold_bytes;
    batch_blocks_ = std::max<std::uint64_t>(
        std::min(batch_bytes_most, share / batches_per_share) / block_bytes, 1);
    std::span<const Choice> rest(chosen_.choices);
    while (!rest.empty()) {
      const auto batch = rest.first(std::min<std::size_t>(rest.size(), batch_blocks_));
      auto done = options_.dry_run ? count_batch(batch) : freeze_batch(batch);
      if (!done && done.error().code == Errc::full && batch.size() > 1) {
        batch_blocks_ = batch.size() / 2;
        continue;
      }
      if (!done) return done;
      rest = rest.subspan(batch.size());
      if (options_.progress) {
        options_.progress((chosen_.choices.size() - rest.size()) * block_bytes,
                          chosen_.choices.size() * block_bytes);
      }
    }
    return {};
  }

  [[nodiscard]] Frozen& report() noexcept { return report_; }
  /// Blocks that became FREE.
  [[nodiscard]] std::uint32_t freed() const noexcept { return freed_; }

 private:
  Result<void> count_batch(std::span<const Choice> batch) {
    const auto view = core_.cold->index.view(core_);
    Speller speller(core_, chosen_.scanned, *view);
    speller.spell(batch);
    for (const Choice& choice : batch) {
      const Spelled* spelled = speller.find(choice.entry);
      if (spelled == nullptr) continue;
      ++report_.blocks;
      if (known_copy(*spelled) != nullptr) ++report_.known_blocks;
    }
    report_.raw_bytes =
        (report_.blocks - report_.known_blocks) * core_.superblock.geometry.block_bytes();
    return {};
  }

  Result<void> freeze_batch(std::span<const Choice> batch) {
    // Whoever waits for COLD, perhaps to remove something, gets it between two batches.
    if (++batches_ > 1) nanosleep(&between_batches, nullptr);
    auto made =
        Directory::create_below(core_.directory, file_names::cold, core_.superblock.sharing);
    if (!made) return failure_of(made);
    // As every reader opens it: what a symbolic link leads to would never be found again.
    auto opened = open_cold(core_.directory);
    if (!opened) return failure_of(opened);
    if (!*opened) return {};
    const Directory& cold = **opened;
    auto lock = lock_cold(core_.directory, core_.superblock.sharing, wait_ms_);
    if (!lock) return failure_of(lock);
    sweep_unfinished_cold(cold);
    const auto view = core_.cold->index.view(core_);
    Speller speller(core_, chosen_.scanned, *view);
    speller.spell(batch);
    std::vector<Choice> unknown;
    Copies copies;
    std::string fresh;
    for (const Choice& choice : batch) {
      const Spelled* spelled = speller.find(choice.entry);
      if (spelled == nullptr) continue;
      if (const ColdPlace* copy = known_copy(*spelled)) {
        touch_cold(cold, copy->file->name());
        copies.emplace(choice.entry, copy->file->name());
      } else {
        unknown.push_back(choice);
      }
    }
    if (!unknown.empty()) {
      auto written = write_batch(cold, *view, speller, unknown, copies);
      if (!written) return failure_of(written);
      fresh = std::move(*written);
    }
    retire_choices(batch, copies, fresh);
    return {};
  }

  /// Notes in `copies` what is in the new file, and takes out what was in files that had to go.
  /// The new file's name.
  Result<std::string> write_batch(const Directory& cold, const ColdView& view,
                                  const Speller& speller, const std::vector<Choice>& batch,
                                  Copies& copies) {
    auto room = ColdRoom::open(cold, core_.superblock.cold_bytes);
    if (!room) return failure_of(room);
    Drafter drafter(chosen_.scanned, speller);
    const ColdDraft draft = drafter.draft(batch);
    auto written = write_cold(core_, cold, *room, draft, options_);
    note_dropped(view, room->dropped());
    if (!written) return failure_of(written);
    core_.cold->index.look_again();
    report_.raw_bytes += written->raw_bytes;
    report_.cold_bytes += written->file_bytes;
    const auto& dropped = room->dropped();
    std::erase_if(copies, [&](const auto& copy) {
      return std::find(dropped.begin(), dropped.end(), copy.second) != dropped.end();
    });
    for (const std::uint32_t node : written->frozen) {
      copies.emplace(drafter.entries()[node], written->name);
    }
    for (const auto& [entry, node] : drafter.twins()) {
      if (copies.count(drafter.entries()[node]) != 0) copies.emplace(entry, written->name);
    }
    return std::move(written->name);
  }

  void note_dropped(const ColdView& view, const std::vector<std::string>& names) {
    if (!names.empty()) core_.cold->index.look_again();
    for (const std::string& name : names) {
      for (const auto& file : view.files) {
        if (file->name() == name) report_.dropped_blocks += file->blocks();
      }
    }
  }

  /// Those of which there is a copy, that nobody has used since, and below which nothing is left.
  void retire_choices(std::span<const Choice> choices, const Copies& copies,
                      const std::string& fresh) {
    std::uint64_t retired = 0;
    for (const Choice& choice : choices) {
      const std::uint32_t parent = chosen_.scanned[choice.entry].parent_entry;
      const auto copy = copies.find(choice.entry);
      if (copy == copies.end()) {
        const bool gone = !core_.word(choice.victim.block).ready(choice.victim.generation);
        if (gone && parent != none) --chosen_.left[parent];
        continue;
      }
      const auto touch = TouchWord::unpack(
          core_.control.touch(choice.victim.block).load(std::memory_order_relaxed));
      const bool used = touch.stamp != choice.victim.touch.stamp;
      if (used || chosen_.left[choice.entry] > 0 || !evict_one(core_, choice.victim)) continue;
      if (parent != none) --chosen_.left[parent];
      ++retired;
      if (copy->second != fresh) ++report_.known_blocks;
    }
    report_.blocks += retired;
    core_.count(Counter::frozen_blocks, retired);
    freed_ += sweep(core_);
  }

  static constexpr timespec between_batches{0, 5'000'000};

  Core& core_;
  const FreezeOptions& options_;
  std::uint32_t wait_ms_;
  Chosen chosen_;
  std::uint64_t batch_blocks_ = 1;
  std::uint64_t batches_ = 0;
  std::uint32_t freed_ = 0;
  Frozen report_;
};

/// Blocks that were last used before, but stay.
void count_staying(const Core& core, std::uint32_t stamp, std::span<const Victim> victims,
                   Frozen& report) {
  std::uint64_t old = 0;
  std::uint64_t kept = 0;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    if (core.word(block, std::memory_order_relaxed).state != BlockState::ready) continue;
    const auto touch = TouchWord::unpack(core.control.touch(block).load(std::memory_order_relaxed));
    if (touch.stamp > stamp) continue;
    ++old;
    if (touch.kept) ++kept;
  }
  report.kept_blocks = kept;
  report.pinned_blocks = old > kept + victims.size() ? old - kept - victims.size() : 0;
}

}  // namespace

Result<Frozen> freeze(Core& core, std::uint64_t unix_ns, const FreezeOptions& options) {
  if (core.superblock.cold_bytes == 0) {
    return fail(Errc::invalid,
                core.directory.path() +
                    ": no share of the capacity is set aside for cold blocks; create the store "
                    "with one (Options::cold_bytes, `esker create --cold`)");
  }
  if (options.compression > Compression::zstd || options.threads == 0) {
    return fail(Errc::invalid, "freeze: compression is " +
                                   std::to_string(static_cast<int>(options.compression)) +
                                   " and threads is " + std::to_string(options.threads) +
                                   ", allowed are the named compressions and 1 or more threads");
  }
  core.follow_growth();
  const std::uint32_t stamp = stamp_of_unix(unix_ns);
  std::vector<Victim> old = victims(core);
  std::erase_if(old, [stamp](const Victim& victim) { return victim.touch.stamp > stamp; });
  Freezer freezer(core, options, cold_deadline_ms);
  count_staying(core, stamp, old, freezer.report());
  if (auto done = freezer.run(old); !done) return failure_of(done);
  return freezer.report();
}

std::uint32_t freeze_victims(Core& core, std::span<const Victim> victims) noexcept {
  if (core.superblock.cold_bytes == 0) return 0;
  std::uint32_t freed = 0;
  auto done = guarded([&]() -> Result<void> {
    const FreezeOptions options;
    Freezer freezer(core, options, evictor_wait_ms);
    auto ran = freezer.run(victims);
    freed = freezer.freed();
    return ran;
  });
  static_cast<void>(done);  // what could not be frozen is evicted
  return freed;
}

}  // namespace esker::detail
