#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "catalog_forge.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// What does not come from Esker: other kinds of files, other names, other owners' modes.

TEST_CASE("links, pipes, sockets and directories in the place of files are damage, not hangs",
          "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  const std::string what = GENERATE("link", "dangling link", "pipe", "socket", "directory");
  CAPTURE(what);
  const auto replace = [&](const std::string& name) {
    const std::string path = catalog.path(name);
    fs::rename(path, dir / "moved");
    if (what == "link") fs::create_symlink(dir / "moved", path);
    if (what == "dangling link") fs::create_symlink(dir / "nowhere", path);
    if (what == "pipe") REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    if (what == "directory") fs::create_directory(path);
    if (what != "socket") return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const fs::path before = fs::current_path();
    fs::current_path(catalog.path());
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(fd);
    fs::current_path(before);
  };
  need(catalog->write(record_of("chat", 5'000)));
  need(catalog->attach("chat", {"w", 9, 7, 0}, some_bytes(100, 1)));
  const std::string state = catalog.listing(".state").front();
  const std::string tokens = catalog.listing(".tokens").front();
  replace(state);
  CHECK(catalog->state("chat", "w").error().code == Errc::corrupt);
  REQUIRE(need(catalog->attachments("chat")).size() == 1);
  CHECK_FALSE(need(catalog->attachments("chat"))[0].damage.empty());
  need(catalog->write_fork("chat", record_of("fork", 5'000)));
  need(catalog->detach("chat", "w"));
  replace(tokens);
  CHECK(read_error(catalog, "chat").code == Errc::corrupt);
  CHECK_THAT(read_error(catalog, "chat").message, contains(tokens));
  replace("chat.session");
  CHECK(read_error(catalog, "chat").code == Errc::corrupt);
  CHECK(need(catalog->names()) == std::vector<std::string>{"chat", "fork"});
  CHECK(need(catalog->read("fork")).tokens == some_tokens(5'000));
  catalog->sweep();
  need(catalog->used_bytes());
  need(catalog->remove("chat"));
  CHECK(need(catalog->names()) == std::vector<std::string>{"fork"});
  CHECK(fs::exists(dir / "moved"));
}

TEST_CASE("a file that others could have written is damage", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 5)));
  REQUIRE(::chmod(catalog.path("chat.session").c_str(), 0666) == 0);
  CHECK(read_error(catalog, "chat").code == Errc::corrupt);
  CHECK_THAT(read_error(catalog, "chat").message, contains("mode is 0666"));
}

TEST_CASE("session files with names that Esker never gives are listed and removable", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("good", 5)));
  const std::vector<std::byte> bytes = read_file(catalog.path("good.session"));
  for (const char* name : {"a.b.session", "%41.session", "\xFF\n.session", ".session"}) {
    plant(catalog, name, bytes);
  }
  const std::vector<std::string> expected = {"%41.session", "%FF%0A.session", ".session",
                                             "a.b.session", "good"};
  CHECK(need(catalog->names()) == expected);
  CHECK(need(catalog->read("good")).tokens == some_tokens(5));
  for (const std::string& name : expected) {
    CAPTURE(name);
    if (name == "good") continue;
    CHECK(read_error(catalog, name).code == Errc::corrupt);
    CHECK_THAT(read_error(catalog, name).message, contains("file name is"));
    CHECK_FALSE(catalog->has(name));
    need(catalog->remove(name));
    CHECK(catalog->read(name).error().code == Errc::missing);
  }
  CHECK(need(catalog->names()) == std::vector<std::string>{"good"});
  CHECK(catalog->remove("../esker").error().code == Errc::missing);
}

TEST_CASE("a damaged session can be replaced by one who has its tokens", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 5'000)));
  need(catalog->attach("chat", {"w", 9, 7, 0}, some_bytes(100, 1)));
  flip_byte(catalog.path("chat.session"), 100);
  CHECK(catalog->attachments("chat").error().code == Errc::corrupt);
  CHECK(catalog->attach("chat", {"w", 9, 7, 0}, {}).error().code == Errc::corrupt);
  CHECK(catalog->write_fork("chat", record_of("fork", 5'000)).error().code == Errc::corrupt);
  need(catalog->write(record_of("chat", 5'001)));
  CHECK(need(catalog->read("chat")).tokens == some_tokens(5'001));
  CHECK(need(catalog->attachments("chat")).empty());
  CHECK(catalog.listing().size() == 2);
}

TEST_CASE("a state file that claims more than all sessions may have takes no memory", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s", 1 * mib);
  need(catalog->write(record_of("chat", 5)));
  need(catalog->attach("chat", {"w", 9, 7, 0}, some_bytes(100, 1)));
  const std::string name = catalog.listing(".state").front();
  std::vector<std::byte> header = read_file(catalog.path(name));
  header.resize(128);
  const std::uint64_t huge = std::uint64_t{1} << 42;
  put_at(header, 56, huge);
  seal_header(header, 120);
  overwrite(catalog.path(name), 0, header);
  fs::resize_file(catalog.path(name), 128 + huge);
  const auto state = catalog->state("chat", "w");
  REQUIRE_FALSE(state);
  CHECK(state.error().code == Errc::corrupt);
  CHECK_THAT(state.error().message, contains("payload_bytes"));
  CHECK(need(catalog->attachments("chat"))[0].damage.find("payload_bytes") != std::string::npos);
  CHECK(catalog->write(record_of("other", 1)).error().code == Errc::full);
  need(catalog->remove("chat"));
}

TEST_CASE("something else in the place of the directory is refused", "[catalog]") {
  const TempDir dir;
  const auto store = need(detail::Directory::create(dir / "s", Sharing::owner));
  const bool link = GENERATE(true, false);
  fs::create_directory(dir / "other");
  if (link) {
    fs::create_symlink(dir / "other", dir / "s/sessions");
  } else {
    write_file(dir / "s/sessions", some_bytes(3, 1));
  }
  for (const bool create : {true, false}) {
    const Result<SessionFiles> files = SessionFiles::open(store, Catalog::place(), create);
    REQUIRE_FALSE(files);
    CHECK(files.error().code == Errc::corrupt);
    CHECK_THAT(files.error().message, contains("s/sessions: file type"));
  }
}

TEST_CASE("a destroyed store takes its sessions with it and leaves what is not its own",
          "[catalog]") {
  const TempDir dir;
  const bool foreign = GENERATE(true, false);
  static_cast<void>(make_store(dir / "s"));
  {
    const Catalog catalog(dir / "s");
    need(catalog->write(record_of("chat", 5'000)));
    need(catalog->attach("chat", {"w", 9, 7, 0}, some_bytes(100, 1)));
    write_file(catalog.path(".tmp-1"), some_bytes(3, 1));
    if (foreign) write_file(catalog.path("notes.txt"), some_bytes(3, 1));
  }
  const Result<void> destroyed = Store::destroy(dir / "s");
  if (!foreign) {
    need(destroyed);
    CHECK_FALSE(fs::exists(dir / "s"));
    return;
  }
  REQUIRE_FALSE(destroyed);
  CHECK_THAT(destroyed.error().message, contains("notes.txt"));
  CHECK(sum_of_sizes(dir / "s") == 3);
}

TEST_CASE("a store that is destroyed by way of a link keeps what the link points to", "[catalog]") {
  const TempDir dir;
  static_cast<void>(make_store(dir / "s"));
  fs::create_directory(dir / "other");
  write_file(dir / "other/chat.session", some_bytes(3, 1));
  fs::create_symlink(dir / "other", dir / "s/sessions");
  CHECK_FALSE(Store::destroy(dir / "s"));
  CHECK(fs::exists(dir / "other/chat.session"));
}

TEST_CASE("a store that is created where another was half destroyed has no sessions of it",
          "[catalog]") {
  const TempDir dir;
  static_cast<void>(make_store(dir / "s"));
  need(Catalog(dir / "s")->write(record_of("chat", 5'000)));
  fs::remove(dir / "s/esker");  // as a process that was killed while it destroyed the store
  static_cast<void>(make_store(dir / "s"));
  CHECK_FALSE(fs::exists(dir / "s/sessions"));
}
