#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.hpp"
#include "llama/byte_sink.hpp"
#include "llama/model_digest.hpp"
#include "llama/output_file.hpp"
#include "support/temp_dir.hpp"

namespace {

namespace fs = std::filesystem;
using namespace esker;
using namespace esker::cli::llama;
using esker::test::contains;
using esker::test::TempDir;

void put_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_text(OutputFile& file, std::string_view text) {
  ByteSink sink(file.fd(), file.name());
  REQUIRE(sink.put(std::as_bytes(std::span(text))));
  REQUIRE(sink.flush());
}

std::size_t entries_of(const TempDir& dir) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir.path()), {}));
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE("an output file appears whole, at commit, for its owner only", "[llama]") {
  for (const auto place : {test::Place::memory, test::Place::disk}) {
    const TempDir dir(place);
    auto file = OutputFile::create(dir / "out", false);
    REQUIRE(file);
    REQUIRE(file->reserve(8));
    write_text(*file, "complete");
    CHECK_FALSE(fs::exists(dir / "out"));
    REQUIRE(file->commit());
    CHECK(content_of(dir / "out") == "complete");
    CHECK(mode_of(dir / "out") == 0600);
    CHECK(entries_of(dir) == 1);
  }
}

TEST_CASE("an output file that is dropped leaves nothing", "[llama]") {
  const TempDir dir;
  {
    auto file = OutputFile::create(dir / "out", false);
    REQUIRE(file);
    write_text(*file, "half");
  }
  CHECK(entries_of(dir) == 0);
}

TEST_CASE("an existing file is replaced only by force, and keeps its mode", "[llama]") {
  const TempDir dir;
  put_file(dir / "out", "precious");
  REQUIRE(::chmod((dir / "out").c_str(), 0644) == 0);
  const auto refused = OutputFile::create(dir / "out", false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::invalid);
  CHECK_THAT(refused.error().message, contains("exists already"));

  auto forced = OutputFile::create(dir / "out", true);
  REQUIRE(forced);
  write_text(*forced, "new");
  CHECK(content_of(dir / "out") == "precious");
  REQUIRE(forced->commit());
  CHECK(content_of(dir / "out") == "new");
  CHECK(mode_of(dir / "out") == 0644);
  CHECK(entries_of(dir) == 1);
}

TEST_CASE("a file that appears while another is written is not replaced", "[llama]") {
  const TempDir dir;
  auto file = OutputFile::create(dir / "out", false);
  REQUIRE(file);
  write_text(*file, "mine");
  put_file(dir / "out", "theirs");
  const auto done = file->commit();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::invalid);
  CHECK(content_of(dir / "out") == "theirs");
  file = OutputFile::create(dir / "other", false);  // drops the first
  REQUIRE(file);
  CHECK(entries_of(dir) == 1);
}

TEST_CASE("a forced output behind a symbolic link replaces what it points at", "[llama]") {
  const TempDir dir;
  put_file(dir / "target", "old");
  fs::create_symlink("target", dir / "link");
  auto file = OutputFile::create(dir / "link", true);
  REQUIRE(file);
  write_text(*file, "new");
  REQUIRE(file->commit());
  CHECK(fs::is_symlink(dir / "link"));
  CHECK(content_of(dir / "target") == "new");
}

TEST_CASE("directories, missing directories and terminals are no output", "[llama]") {
  const TempDir dir;
  CHECK_THAT(OutputFile::create(dir.path().string(), true).error().message,
             contains("is a directory"));
  const auto missing = OutputFile::create(dir / "no/out", false);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().os_error == ENOENT);

  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  REQUIRE(terminal.get() >= 0);
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  char name[64];
  REQUIRE(::ptsname_r(terminal.get(), name, sizeof(name)) == 0);
  const auto refused = OutputFile::create(name, true);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, contains("is a terminal"));
}

TEST_CASE("a full disk is told before anything is written", "[llama]") {
  if (!test::may_mount()) return;
  const test::SmallDisk disk(1 << 20);
  auto file = OutputFile::create(disk / "out", false);
  REQUIRE(file);
  const auto room = file->reserve(std::uint64_t{4} << 20);
  REQUIRE_FALSE(room);
  CHECK(room.error().code == Errc::io);
  CHECK(room.error().os_error == ENOSPC);
}

TEST_CASE("a model's digest covers every byte of every part", "[llama]") {
  const TempDir dir;
  const std::string text = "GGUF" + std::string(5'000'000, 'w');
  put_file(dir / "model.gguf", text);
  std::uint64_t last = 0;
  const auto digest =
      model_digest(dir / "model.gguf", [&](std::uint64_t done, std::uint64_t total) {
        CHECK(total == text.size());
        CHECK(done > last);
        last = done;
      });
  REQUIRE(digest);
  CHECK(last == text.size());
  CHECK(digest->bytes == text.size());
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  char expected[64];
  std::snprintf(expected, sizeof(expected), "xxh3-128:%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  CHECK(digest->text == expected);

  put_file(dir / "m-00001-of-00002.gguf", text.substr(0, 3'000'000));
  const auto incomplete = model_digest(dir / "m-00001-of-00002.gguf");
  REQUIRE_FALSE(incomplete);
  CHECK_THAT(incomplete.error().message, contains("m-00002-of-00002.gguf"));
  put_file(dir / "m-00002-of-00002.gguf", "GGUF2");
  const auto first = model_digest(dir / "m-00001-of-00002.gguf");
  const auto second = model_digest(dir / "m-00002-of-00002.gguf");
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->text == second->text);
  CHECK(first->bytes == 3'000'005);

  put_file(dir / "other", "ggml model");
  const auto other = model_digest(dir / "other");
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message, contains("no GGUF model"));
}
