// Invariants
// 1. Before a row below the committed length is overwritten, the live page holds a new epoch with
//    a length at or below that row, and `clean` of both tables is at or below it.
// 2. Before a row at or above `touched` is written, `touched` is raised.
// 3. In a forked child nothing is touched and nothing is unmapped.
// 4. A live page counts only with the identity of this file in this boot, and only as far as its
//    words prove themselves; else the records of syncs decide.
#include "cache/file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace esker::detail {

CacheFile::CacheFile(Parts parts) noexcept : parts_(std::move(parts)) {}

CacheFile::~CacheFile() {
  if (parts_.mapping.data() == nullptr) return;
  if (*alive() == 0) {
    parts_.mapping.abandon();
    return;
  }
  if (writable() && live_.load(std::memory_order_relaxed)) {
    close_record(moment(std::memory_order_relaxed).length);
  }
}

bool CacheFile::is_live() const noexcept {
  if (live_.load(std::memory_order_acquire)) return true;
  if (live_identity().load(std::memory_order_acquire) != parts_.identity) return false;
  const auto proved = word(live().length).proved();
  if (!proved || Moment::unpack(*proved).length > parts_.header.max_tokens) return false;
  live_.store(true, std::memory_order_release);
  return true;
}

Moment CacheFile::moment(std::memory_order order) const noexcept {
  if (!is_live()) return {0, recovered_, false};
  Moment now = Moment::unpack(word(live().length).load(order));
  now.length = std::min(now.length, parts_.header.max_tokens);
  return now;
}

void CacheFile::publish(const Moment& moment) noexcept { word(live().length).store(moment.pack()); }

void CacheFile::set_touched(std::uint32_t tokens) noexcept {
  touched_ = tokens;
  word(live().touched).store(tokens);
}

void CacheFile::note_writer() noexcept {
  CacheLivePage& page = live();
  page.writer_pid = static_cast<std::uint32_t>(getpid());
  std::array<char, 16> command{};
  const int fd = ::open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const ssize_t got = read(fd, command.data(), command.size() - 1);
    close(fd);
    for (char& letter : command) {
      if (letter == '\n' || got <= 0) letter = 0;
    }
  }
  page.writer_command = command;
}

void CacheFile::begin_reading() noexcept {
  if (is_live()) return;
  read_records();
  recovered_ = recover().length;
  // A writer that came meanwhile made the page live before it changed a row: then this length is
  // of no use, and nobody uses it, since `moment` looks at the page first.
  std::atomic_thread_fence(std::memory_order_acquire);
}

void CacheFile::begin_writing(bool fresh) noexcept {
  read_records();
  CacheLivePage& page = live();
  const std::uint32_t max_tokens = parts_.header.max_tokens;
  if (!fresh && is_live()) {
    const auto clean = word(page.clean).proved().value_or(0);
    const auto touched = word(page.touched).proved().value_or(max_tokens);
    const std::uint32_t length = moment(std::memory_order_relaxed).length;
    clean_ = {std::min(static_cast<std::uint32_t>(clean), length),
              std::min(static_cast<std::uint32_t>(clean >> 32), length)};
    touched_ =
        touched < length || touched > max_tokens ? max_tokens : static_cast<std::uint32_t>(touched);
    for (int slot = 0; slot < 2; ++slot) {
      if (records_[static_cast<std::size_t>(slot)].sequence == 0) continue;
      if (records_[static_cast<std::size_t>(slot)].sequence != page.durable_sequence) continue;
      durable_ = slot;
      synced_ = true;
    }
    note_writer();
    return;
  }
  const Recovered found = fresh ? Recovered{} : recover();
  const std::uint32_t epoch = Moment::unpack(page.length.word).epoch + 1;
  // Readers that look on meanwhile go by the records, until the page is whole.
  live_identity().store(0, std::memory_order_release);
  page.magic = cache_live_magic;
  page.durable_sequence = 0;
  page.reserved = {};
  durable_ = found.slot;
  if (found.slot >= 0) clean_[static_cast<std::size_t>(found.slot)] = found.length;
  word(page.length).store(Moment{epoch, found.length}.pack());
  store_clean();
  set_touched(fresh ? 0 : max_tokens);
  note_writer();
  live_identity().store(parts_.identity, std::memory_order_release);
  live_.store(true, std::memory_order_release);
}

}  // namespace esker::detail
