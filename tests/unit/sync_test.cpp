#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "region/directory.hpp"
#include "support/temp_dir.hpp"
#include "sync/block_word.hpp"
#include "sync/event_ring.hpp"
#include "sync/lock.hpp"
#include "sync/pins.hpp"
#include "sync/seat.hpp"

using namespace esker;
using namespace esker::detail;

namespace {

BlockWord word_of(std::uint64_t& storage) { return BlockWord::unpack(storage); }

/// Runs `body` in a forked child, which lives until it is killed. Returns its pid once it is ready.
template <class F>
pid_t fork_until_killed(F&& body) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    body();
    const char byte = 1;
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

void kill_and_wait(pid_t child) {
  REQUIRE(kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
}

Directory lock_directory(const std::string& path) {
  auto directory = Directory::create(path, Sharing::owner);
  REQUIRE(directory);
  auto lock = LockFile::open(*directory, Sharing::owner, true);
  REQUIRE(lock);
  REQUIRE(lock->file().allocate(lock_bytes::file_bytes));
  return std::move(*directory);
}

bool seat_held(const Directory& directory, std::uint32_t seat) {
  auto lock = LockFile::open(directory, Sharing::owner);
  REQUIRE(lock);
  return lock->held_by_others(lock_bytes::seat + seat, 1);
}

}  // namespace

TEST_CASE("a block word packs and unpacks", "[sync]") {
  const BlockWord word{0xDEADBEEF, BlockState::retired, 4095};
  CHECK(BlockWord::unpack(word.pack()) == word);
  CHECK(BlockWord::unpack(0) == BlockWord{0, BlockState::free, 0});
  CHECK(BlockWord::unpack(0xF0000000).state == BlockState::bad);
}

TEST_CASE("the generation grows only when a free block is reserved", "[sync]") {
  std::uint64_t storage = 0;
  const AtomicWord word(storage);
  REQUIRE(transition::reserve(word, 0, 3) == 1U);
  REQUIRE(transition::publish(word, 1, 3));
  REQUIRE(transition::settle(word, 1, 3));
  REQUIRE(transition::retire(word, word_of(storage)));
  REQUIRE(transition::free(word, storage));
  CHECK(word_of(storage) == BlockWord{1, BlockState::free, 0});
  CHECK(transition::reserve(word, storage, 4) == 2U);
  REQUIRE(transition::abort(word, 2, 4));
  CHECK(word_of(storage) == BlockWord{2, BlockState::free, 0});
}

TEST_CASE("a transition fails when the word is of another life or owner", "[sync]") {
  std::uint64_t storage = BlockWord{5, BlockState::reserved, 3}.pack();
  const AtomicWord word(storage);
  CHECK_FALSE(transition::publish(word, 4, 3));
  CHECK_FALSE(transition::publish(word, 5, 2));
  CHECK_FALSE(transition::abort(word, 5, 2));
  CHECK_FALSE(transition::settle(word, 5, 3));
  CHECK_FALSE(transition::reserve(word, 0, 1).has_value());
  CHECK(word_of(storage) == BlockWord{5, BlockState::reserved, 3});
}

TEST_CASE("the first life of a block after the last possible one is 1", "[sync]") {
  std::uint64_t storage = BlockWord{UINT32_MAX, BlockState::free, 0}.pack();
  CHECK(transition::reserve(AtomicWord(storage), storage, 1) == 1U);
}

TEST_CASE("a pinned block's bit is set, however many threads pin and unpin it", "[sync]") {
  std::vector<std::uint32_t> counts(64);
  std::vector<std::uint64_t> row(1);
  const PinTable pins(counts.data(), row.data());
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        pins.pin(9);
        if ((std::atomic_ref<std::uint64_t>(row[0]).load() >> 9 & 1) == 0) wrong = true;
        pins.unpin(9);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(wrong);
  CHECK(row[0] == 0);
  CHECK(counts[9] == 0);
}

TEST_CASE("a seat is free the moment its owner is killed, although a forked child lives on",
          "[sync]") {
  const test::TempDir temp;
  const Directory directory = lock_directory(temp / "store");
  int grandchild_pipe[2];
  REQUIRE(pipe(grandchild_pipe) == 0);
  const pid_t owner = fork_until_killed([&] {
    auto seat = new auto(SeatLock::claim(directory, Sharing::owner, 4, 2));
    if (!*seat || (*seat)->index() != 2) _exit(1);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (;;) pause();
    }
    if (write(grandchild_pipe[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(1);
  });
  pid_t grandchild = 0;
  REQUIRE(read(grandchild_pipe[0], &grandchild, sizeof grandchild) == sizeof grandchild);
  CHECK(seat_held(directory, 2));
  kill_and_wait(owner);
  CHECK_FALSE(seat_held(directory, 2));
  CHECK(kill(grandchild, 0) == 0);
  kill(grandchild, SIGKILL);
}

TEST_CASE("a seat survives the closing of every descriptor", "[sync]") {
  const test::TempDir temp;
  const Directory directory = lock_directory(temp / "store");
  const pid_t owner = fork_until_killed([&] {
    auto seat = new auto(SeatLock::claim(directory, Sharing::owner, 4, 1));
    if (!*seat) _exit(1);
    for (int fd = 64; fd < 256; ++fd) close(fd);
  });
  CHECK(seat_held(directory, 1));
  kill_and_wait(owner);
  CHECK_FALSE(seat_held(directory, 1));
}

TEST_CASE("a lock that is held is not waited for beyond its deadline", "[sync]") {
  const test::TempDir temp;
  const Directory directory = lock_directory(temp / "store");
  auto first = LockFile::open(directory, Sharing::owner);
  auto second = LockFile::open(directory, Sharing::owner);
  REQUIRE(first->try_lock(lock_bytes::grow));
  CHECK_FALSE(second->lock(lock_bytes::grow, 20));
  first->unlock(lock_bytes::grow);
  CHECK(second->lock(lock_bytes::grow, 20));
}

TEST_CASE("the event ring keeps the newest events in order", "[sync]") {
  ControlToken token;
  token.layout = ControlLayout(64, 64, 4);
  auto control = Control::build_private(token);
  REQUIRE(control);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    post_event(*control, EventKind::block_bad, 1, i, 5, "a note that is cut when it is too long");
  }
  const auto events = read_events(*control, 0);
  REQUIRE(events.size() == event_ring_entries);
  CHECK(events.front().sequence == 3000 - event_ring_entries + 1);
  CHECK(events.back().block == 2999);
  CHECK(events.back().note == "a note that is cut when it ");
  CHECK(read_events(*control, 2999).size() == 1);
  CHECK(read_events(*control, UINT64_MAX).empty());
}
