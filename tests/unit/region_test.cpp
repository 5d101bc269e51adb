#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "catch.hpp"
#include "region/directory.hpp"
#include "region/mapping.hpp"
#include "region/segment.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::detail;

namespace {

SegmentPlan small_plan() {
  Geometry geometry;
  geometry.layers = {{64, 64}};
  geometry.dtype = "f16";
  geometry.block_tokens = 16;
  SegmentPlan plan;
  plan.layout = SegmentLayout(geometry, 4);
  plan.identity = {{1}, geometry_digest(geometry)};
  return plan;
}

}  // namespace

TEST_CASE("descriptors are high and closed on exec", "[region]") {
  const test::TempDir temp;
  auto directory = Directory::create(temp / "d", Sharing::owner);
  REQUIRE(directory);
  auto file = directory->create_file("f", Sharing::owner);
  REQUIRE(file);
  CHECK(file->fd() >= 64);
  CHECK(directory->fd() >= 64);
  CHECK((fcntl(file->fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a symbolic link is never followed to a file", "[region]") {
  const test::TempDir temp;
  auto directory = Directory::create(temp / "d", Sharing::owner);
  REQUIRE(directory);
  REQUIRE(symlink("/etc/passwd", (temp / "d/esker").c_str()) == 0);
  const auto file = directory->open_file("esker", O_RDONLY, Sharing::owner);
  REQUIRE_FALSE(file);
  CHECK(file.error().os_error == ELOOP);
}

TEST_CASE("reading behind the end of a file names the length that was found", "[region]") {
  const test::TempDir temp;
  auto directory = Directory::create(temp / "d", Sharing::owner);
  auto file = directory->create_file("f", Sharing::owner);
  REQUIRE(file->write_at(0, std::as_bytes(std::span("0123456789", 10))));
  std::array<std::byte, 20> out{};
  const auto read = file->read_at(0, out);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::corrupt);
  CHECK(read.error().message.find("length is 10, expected at least 20") != std::string::npos);
}

TEST_CASE("a segment that was built opens, and of another index or store it does not", "[region]") {
  const test::TempDir temp;
  auto directory = Directory::create(temp / "segments", Sharing::owner);
  const SegmentPlan plan = small_plan();
  REQUIRE(build_segment(*directory, plan, 0));
  CHECK(open_segment(*directory, plan, 0, true));
  REQUIRE(rename((temp / "segments/00000").c_str(), (temp / "segments/00001").c_str()) == 0);
  const auto moved = open_segment(*directory, plan, 1, true);
  REQUIRE_FALSE(moved);
  CHECK(moved.error().message.find("index is 0, expected 1") != std::string::npos);
  SegmentPlan other = plan;
  other.identity.uuid = {2};
  const auto foreign = open_segment(*directory, other, 1, true);
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().message.find("uuid is that of another store") != std::string::npos);
}

TEST_CASE("building a segment that exists keeps the one that is there", "[region]") {
  const test::TempDir temp;
  auto directory = Directory::create(temp / "segments", Sharing::owner);
  const SegmentPlan plan = small_plan();
  REQUIRE(build_segment(*directory, plan, 0));
  struct stat before {};
  REQUIRE(stat((temp / "segments/00000").c_str(), &before) == 0);
  REQUIRE(build_segment(*directory, plan, 0));
  struct stat after {};
  REQUIRE(stat((temp / "segments/00000").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(directory->names()->size() == 1);
}

TEST_CASE("punching a range makes it read as zeros and gives the disk back", "[region]") {
  const test::TempDir temp;
  auto directory = Directory::create(temp / "d", Sharing::owner);
  auto file = directory->create_file("f", Sharing::owner);
  const std::vector<std::byte> data(1 << 20, std::byte{0xAB});
  REQUIRE(file->write_at(0, data));
  const auto before = file->status()->st_blocks;
  REQUIRE(file->punch(100, data.size() - 200));
  std::vector<std::byte> out(data.size());
  REQUIRE(file->read_at(0, out));
  CHECK(out[99] == std::byte{0xAB});
  CHECK(out[100] == std::byte{0});
  CHECK(out[data.size() - 101] == std::byte{0});
  CHECK(out[data.size() - 100] == std::byte{0xAB});
  CHECK(file->status()->st_blocks < before);
}

TEST_CASE("a private page is wiped in a forked child only where asked", "[region]") {
  auto guard = ZeroMemory::allocate_wiped_on_fork();
  REQUIRE(guard);
  *guard->data() = std::byte{1};
  const pid_t child = fork();
  if (child == 0) _exit(*guard->data() == std::byte{0} ? 0 : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(*guard->data() == std::byte{1});
}
