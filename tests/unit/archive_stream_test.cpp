#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "unit/archive_support.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Both ends of a pipe or of a socket.
struct Ends {
  int read = -1;
  int write = -1;
  explicit Ends(bool socket) {
    std::array<int, 2> fds{};
    const int rc = socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data())
                          : pipe2(fds.data(), O_CLOEXEC);
    REQUIRE(rc == 0);
    read = fds[0];
    write = fds[1];
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  void close_write() {
    close(write);
    write = -1;
  }
  void close_read() {
    close(read);
    read = -1;
  }
};

/// Gives the bytes away in pieces of any size.
void trickle(int fd, std::span<const std::byte> bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!bytes.empty()) {
    const std::size_t most = std::size_t{1} << (random() % 18);
    const std::size_t now = std::min<std::size_t>(bytes.size(), 1 + random() % most);
    const ssize_t put = ::write(fd, bytes.data(), now);
    if (put <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

Sample larger_sample() {
  SampleBuilder builder(geometry_of(2, 1024, 640, 16, "bf16"));
  const auto trunk = builder.chain(no_node, 0, 30, 5, 1);
  builder.new_span();
  builder.chain(trunk, 0, 40, 0, 9);
  builder.session("chat", std::vector<std::int32_t>(1000, 5), 3);
  return std::move(builder.sample());
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> names_in(const TempDir& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

int write_until_killed(const Arguments& arguments) {
  auto sink = FileSink::create(arguments[0], arguments[1] == "replace");
  if (!sink) return 1;
  const std::vector<std::byte> some(1 << 20);
  if (!(*sink)->write(some)) return 1;
  say("written");
  (void)listen();
  return 1;
}
const RoleName writer_role("write a file until killed", &write_until_killed);

}  // namespace

TEST_CASE("a snapshot comes through a pipe or a socket in pieces of any size", "[archive]") {
  const Sample sample = larger_sample();
  for (const bool socket : {false, true}) {
    for (const std::uint32_t threads : {1U, 2U}) {
      const auto bytes = bytes_of(sample, Compression::lz4);
      Ends ends(socket);
      std::jthread giver([&] {
        trickle(ends.write, bytes, threads);
        ends.close_write();
      });
      auto reader = ArchiveReader::open_stream(ends.read, "stdin");
      REQUIRE(reader);
      CHECK(!reader->seekable());
      CHECK(reader->file_bytes() == 0);
      const auto index = reader->index();
      REQUIRE(!index);
      CHECK(index.error().code == Errc::invalid);
      check_all(*reader, sample, threads);
    }
  }
}

TEST_CASE("a stream whose rows are not taken goes on behind them", "[archive]") {
  const Sample sample = larger_sample();
  const auto bytes = bytes_of(sample);
  Ends ends(false);
  std::jthread giver([&] {
    trickle(ends.write, bytes, 5);
    ends.close_write();
  });
  auto reader = ArchiveReader::open_stream(ends.read, "stdin");
  REQUIRE(reader);
  std::size_t spans = 0;
  for (;;) {
    auto part = reader->next();
    REQUIRE(part);
    if (std::holds_alternative<ArchiveEnd>(*part)) break;
    if (!std::holds_alternative<ArchiveSpan>(*part)) continue;
    // Every other span: a few rows, and an error of whoever takes them.
    if (spans++ % 2 == 1) continue;
    const RowTaker full = [](std::size_t, std::uint32_t, std::span<const std::byte>) {
      return Result<void>(tl::make_unexpected(Error{Errc::full, 0, "no room"}));
    };
    const auto done = reader->rows({}, full, 2);
    REQUIRE(!done);
    CHECK(done.error().message == "no room");
    CHECK(reader->rows({}, full, 1).error().code == Errc::invalid);
  }
  CHECK(spans == sample.spans.size());
  CHECK(reader->nodes().size() == 71);
}

TEST_CASE("only chunks with wanted rows are decoded", "[archive]") {
  SampleBuilder builder(geometry_of(1, 64 * 1024, 1024, 16));
  builder.chain(no_node, 0, 10, 0, 1);
  const Sample& sample = builder.sample();
  auto reader = ArchiveReader::open(file_of(bytes_of(sample)));
  REQUIRE(reader);
  REQUIRE(reader->next());
  std::vector<std::pair<std::size_t, std::uint32_t>> got;
  const RowFilter wanted = [](std::uint32_t first, std::uint32_t rows) {
    return first <= 40 && 40 < first + rows;
  };
  const RowTaker take = [&](std::size_t plane, std::uint32_t first, std::span<const std::byte>) {
    got.emplace_back(plane, first);
    return Result<void>();
  };
  REQUIRE(reader->rows(wanted, take, 1));
  CHECK(got == std::vector<std::pair<std::size_t, std::uint32_t>>{{0, 32}, {1, 0}});
}

TEST_CASE("a snapshot goes into a pipe that takes little at a time", "[archive]") {
  const Sample sample = larger_sample();
  for (const bool socket : {false, true}) {
    Ends ends(socket);
    // Writing must wait and not fail when the pipe is full.
    fcntl(ends.write, F_SETFL, O_NONBLOCK);
    std::string got;
    std::jthread taker([&] {
      std::array<char, 3000> part{};
      for (;;) {
        const ssize_t some = ::read(ends.read, part.data(), part.size());
        if (some <= 0) return;
        got.append(part.data(), static_cast<std::size_t>(some));
      }
    });
    const auto sink = sink_to(ends.write, "stdout");
    CHECK(sink->label() == "stdout");
    const auto totals = write_sample(sample, *sink, {{Compression::lz4, 0, Lossy::none}, 2});
    ends.close_write();
    taker.join();
    CHECK(got.size() == totals.file_bytes);
    CHECK((got == text_of(bytes_of(sample, Compression::lz4))));
  }
}

TEST_CASE("a reader that goes away is an error, and no signal", "[archive]") {
  for (const bool socket : {false, true}) {
    Ends ends(socket);
    ends.close_read();
    const auto sink = sink_to(ends.write, "stdout");
    const auto done = sink->write(std::vector<std::byte>(100));
    REQUIRE(!done);
    CHECK(done.error().os_error == EPIPE);
    CHECK_THAT(done.error().message, contains("stdout: write"));
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
  }
}

TEST_CASE("after a failed write nothing more is written", "[archive]") {
  const Sample sample = small_sample();
  Ends ends(false);
  const auto sink = sink_to(ends.write, "stdout");
  auto writer = ArchiveWriter::start(*sink, sample.head, sample.namespaces, {});
  REQUIRE(writer);
  ends.close_read();
  CHECK(!writer->span(sample.spans[0], rows_of(sample, sample.spans[0])));
  const auto again = writer->span(sample.spans[0], rows_of(sample, sample.spans[0]));
  REQUIRE(!again);
  CHECK_THAT(again.error().message, contains("failed before"));
  CHECK(!writer->finish());
}

TEST_CASE("a file has its name when it is whole, and then replaces another", "[archive]") {
  const TempDir dir(Place::disk);
  const std::string path = dir / "a.esnap";
  {
    auto sink = FileSink::create(path, false);
    REQUIRE(sink);
    REQUIRE((*sink)->write(std::vector<std::byte>(10, std::byte{'x'})));
    CHECK(!std::filesystem::exists(path));
  }
  CHECK(names_in(dir).empty());
  for (const std::string text : {"first", "second"}) {
    const bool replace = text == "second";
    auto sink = FileSink::create(path, replace);
    REQUIRE(sink);
    REQUIRE((*sink)->write(std::as_bytes(std::span(text))));
    REQUIRE((*sink)->commit());
    CHECK(slurp(path) == text);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
  }
  const auto refused = FileSink::create(path, false);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::invalid);
  CHECK_THAT(refused.error().message, contains(path));
  CHECK(names_in(dir) == std::vector<std::string>{"a.esnap"});
}

TEST_CASE("a file that appeared meanwhile is not replaced", "[archive]") {
  const TempDir dir(Place::disk);
  const std::string path = dir / "a.esnap";
  auto sink = FileSink::create(path, false);
  REQUIRE(sink);
  REQUIRE((*sink)->write(std::vector<std::byte>(10)));
  std::ofstream(path) << "of someone else";
  const auto done = (*sink)->commit();
  REQUIRE(!done);
  CHECK(done.error().code == Errc::invalid);
  sink->reset();
  CHECK(slurp(path) == "of someone else");
  CHECK(names_in(dir) == std::vector<std::string>{"a.esnap"});
}

TEST_CASE("names that are no files are refused", "[archive]") {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() / "d");
  CHECK(!FileSink::create(dir / "d", true));
  CHECK(!FileSink::create((dir / "d") + "/", false));
  CHECK(!FileSink::create(dir / "none/a.esnap", false));
  CHECK(!FileSink::create("", false));
}

TEST_CASE("a file whose writer is killed never appears", "[archive]") {
  const TempDir dir(Place::disk);
  const std::string path = dir / "a.esnap";
  for (const std::string mode : {"new", "replace"}) {
    if (mode == "replace") std::ofstream(path) << "old";
    Child child("write a file until killed", {path, mode});
    CHECK(child.hear() == "written");
    child.kill();
    // Where the file system knows files without names nothing else is left either.
    for (const std::string& name : names_in(dir)) {
      CHECK((name == "a.esnap" || name.starts_with(".a.esnap.tmp-")));
    }
    CHECK(slurp(path) == (mode == "replace" ? "old" : ""));
  }
}

TEST_CASE("a file within a store gets its name and mode when it is whole", "[archive]") {
  const TempDir dir;
  const auto directory = Directory::create(dir / "cold", Sharing::group);
  REQUIRE(directory);
  {
    auto dropped = FileSink::create_in(*directory, "1.esnap", Sharing::group);
    REQUIRE(dropped);
    REQUIRE((*dropped)->write(std::vector<std::byte>(5)));
  }
  CHECK(directory->names()->empty());
  auto sink = FileSink::create_in(*directory, "1.esnap", Sharing::group);
  REQUIRE(sink);
  REQUIRE((*sink)->write(std::vector<std::byte>(5)));
  REQUIRE((*sink)->commit());
  CHECK(*directory->names() == std::vector<std::string>{"1.esnap"});
  const auto file = directory->open_file("1.esnap", O_RDONLY, Sharing::group);
  REQUIRE(file);
  CHECK(file->status()->st_size == 5);
  auto twin = FileSink::create_in(*directory, "1.esnap", Sharing::group);
  REQUIRE(twin);
  CHECK(!(*twin)->commit());
  CHECK(*directory->names() == std::vector<std::string>{"1.esnap"});
}
