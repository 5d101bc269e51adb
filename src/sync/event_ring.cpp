// Invariants
// 1. An entry counts only if its sequence is the expected one before and after it was copied; the
//    writer clears the sequence first and stores it last.
#include "sync/event_ring.hpp"

#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/clock.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t record_words = sizeof(EventRecord) / sizeof(std::uint64_t);
using RecordWords = std::array<std::uint64_t, record_words>;

}  // namespace

void post_event(const Control& control, EventKind kind, std::uint32_t seat, std::uint32_t block,
                std::int32_t os_error, std::string_view note) noexcept {
  EventRecord record{};
  record.sequence = control.event_sequence().fetch_add(1, std::memory_order_relaxed) + 1;
  record.unix_ns = unix_ns();
  record.kind = static_cast<std::uint32_t>(kind);
  record.pid = static_cast<std::uint32_t>(getpid());
  record.block = block;
  record.os_error = os_error;
  record.seat = seat;
  std::copy_n(note.begin(), std::min(note.size(), record.note.size() - 1), record.note.begin());
  const auto words = std::bit_cast<RecordWords>(record);
  std::uint64_t* entry = control.event_words(record.sequence);
  AtomicWord(entry[0]).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 1; i < record_words; ++i) {
    AtomicWord(entry[i]).store(words[i], std::memory_order_relaxed);
  }
  AtomicWord(entry[0]).store(words[0], std::memory_order_release);
}

std::vector<Event> read_events(const Control& control, std::uint64_t since) {
  std::vector<Event> events;
  const std::uint64_t last = control.event_sequence().load(std::memory_order_relaxed);
  std::uint64_t first = last > event_ring_entries ? last - event_ring_entries + 1 : 1;
  first = std::max(first, since == UINT64_MAX ? UINT64_MAX : since + 1);
  for (std::uint64_t sequence = first; sequence <= last && sequence != 0; ++sequence) {
    std::uint64_t* entry = control.event_words(sequence);
    RecordWords words{};
    words[0] = AtomicWord(entry[0]).load(std::memory_order_acquire);
    for (std::size_t i = 1; i < record_words; ++i) {
      words[i] = AtomicWord(entry[i]).load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (words[0] != sequence || AtomicWord(entry[0]).load(std::memory_order_relaxed) != sequence) {
      continue;
    }
    const auto record = std::bit_cast<EventRecord>(words);
    Event event;
    event.sequence = record.sequence;
    event.unix_ns = record.unix_ns;
    event.kind = static_cast<EventKind>(record.kind);
    event.pid = record.pid;
    event.block = record.block;
    event.os_error = record.os_error;
    event.seat = record.seat;
    event.note.assign(record.note.data(), strnlen(record.note.data(), record.note.size()));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace esker::detail
