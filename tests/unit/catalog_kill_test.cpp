#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "catalog_support.hpp"
#include "format/session_file.hpp"
#include "support/process.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// Writers that die just before and just after every system call. Whatever was there before is
/// there whole, as it was or as it should become, and a sweep leaves nothing without a use.

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t stride = 7;
#else
constexpr std::uint64_t stride = 1;
#endif

constexpr std::size_t parent_tokens = 6'000;
const std::size_t inline_tokens = 70;  // enough for the parent of a fork to be written anew

SessionRecord parent_record() { return record_of("parent", parent_tokens + inline_tokens); }

void prepare(const std::string& path) {
  fs::remove_all(path);
  const Catalog catalog(path);
  need(catalog->write(record_of("parent", parent_tokens)));
  need(catalog->write(parent_record()));
  need(catalog->attach("parent", {"window", 9, 1, 0}, some_bytes(5'000, 1)));
  need(catalog->attach("parent", {"other", 9, 1, 0}, some_bytes(50, 3)));
  need(catalog->write(record_of("bystander", 5'000, 2)));
  need(catalog->write_fork("parent", record_of("sibling", parent_tokens + inline_tokens)));
  need(catalog->write(record_of("parent", parent_tokens)));
  need(catalog->write(parent_record()));
}

Result<void> perform(const SessionFiles& files, const std::string& operation) {
  if (operation == "save a little") return files.write(record_of("parent", parent_tokens + 100));
  if (operation == "save much") return files.write(record_of("parent", 20'000));
  if (operation == "truncate") return files.write(record_of("parent", 0));
  if (operation == "create") return files.write(record_of("child", 8'000, 4));
  if (operation == "fork") return files.write_fork("parent", record_of("child", 6'500));
  if (operation == "rename") return files.rename("parent", "child");
  if (operation == "remove") return files.remove("parent");
  if (operation == "attach") {
    return files.attach("parent", {"window", 10, 2, 0}, some_bytes(5'000, 2));
  }
  return files.detach("parent", "window");
}

/// Arguments: operation, directory.
int run_operation(const Arguments& arguments) {
  const Catalog catalog(arguments[1]);
  mark_begin();
  const Result<void> done = perform(*catalog, arguments[0]);
  mark_end();
  return done ? 0 : 1;
}

const RoleName operation_role("session operation", &run_operation);

/// Whether a session that was found may have these tokens while an operation is under way.
bool may_be(const std::string& operation, const std::string& name,
            const std::vector<std::int32_t>& tokens) {
  if (name == "bystander") return tokens == some_tokens(5'000, 2);
  if (name == "sibling") return tokens == parent_record().tokens;
  if (name == "parent" && tokens == parent_record().tokens) return true;
  if (operation == "save a little") return tokens == some_tokens(parent_tokens + 100);
  if (operation == "save much") return tokens == some_tokens(20'000);
  if (operation == "truncate") return tokens.empty();
  if (operation == "create") return tokens == some_tokens(8'000, 4);
  if (operation == "fork") return tokens == some_tokens(6'500);
  return operation == "rename" && tokens == parent_record().tokens;
}

void check_states(const SessionFiles& files, const std::string& operation,
                  const std::string& name) {
  std::set<std::string> labels;
  for (const auto& attachment : need(files.attachments(name))) {
    REQUIRE(attachment.damage.empty());
    const auto state = need(files.state(name, attachment.record.label));
    labels.insert(state.record.label);
    if (state.record.label == "other") REQUIRE(state.bytes == some_bytes(50, 3));
    if (state.record.label != "window") continue;
    const bool old = state.bytes == some_bytes(5'000, 1) && state.record.path_hash == 1;
    const bool fresh = state.bytes == some_bytes(5'000, 2) && state.record.path_hash == 2;
    REQUIRE((old || (fresh && operation == "attach" && name == "parent")));
  }
  const bool has_states = name != "bystander" && operation != "create";
  if (has_states) REQUIRE(labels.contains("other"));
  if (has_states && operation != "detach") REQUIRE(labels.contains("window"));
}

/// What a process finds that comes after the death.
void check_whole(const Catalog& catalog, const std::string& operation) {
  const std::vector<std::string> names = need(catalog->names());
  const std::set<std::string> found(names.begin(), names.end());
  REQUIRE(found.size() == names.size());
  REQUIRE(found.contains("bystander"));
  REQUIRE(found.contains("sibling"));
  const bool may_go = operation == "remove" || (operation == "rename" && found.contains("child"));
  if (!may_go) REQUIRE(found.contains("parent"));
  for (const std::string& name : names) {
    CAPTURE(name);
    REQUIRE(may_be(operation, name, need(catalog->read(name)).tokens));
    if (operation != "create" || name != "child") check_states(*catalog, operation, name);
  }
}

/// Every file that is left belongs to a session that names it.
void check_no_leftovers(const Catalog& catalog) {
  std::map<std::string, std::uint64_t> bytes;
  for (const std::string& file : catalog.listing()) {
    CAPTURE(file);
    REQUIRE_FALSE(file.starts_with(".tmp-"));
    bytes[file.substr(0, file.find('.'))] += fs::file_size(catalog.path(file));
  }
  for (const auto& [name, sum] : bytes) {
    CAPTURE(name);
    std::uint64_t named = need(catalog->read(name)).file_bytes;
    for (const auto& [record, damage] : need(catalog->attachments(name))) {
      named += sizeof(detail::AttachmentHeader) + record.bytes;
    }
    REQUIRE(named == sum);
  }
}

}  // namespace

TEST_CASE("a writer of sessions killed at any system call breaks no session", "[catalog]") {
  const std::string operation = GENERATE("save a little", "save much", "truncate", "create", "fork",
                                         "rename", "remove", "attach", "detach");
  CAPTURE(operation);
  const TempDir dir;
  const std::string path = dir / "s";
  std::uint64_t stop = 1;
  for (;; stop += stride) {
    CAPTURE(stop);
    prepare(path);
    Tracee tracee("session operation", {operation, path});
    if (!tracee.run(stop)) {
      REQUIRE(tracee.finish() == 0);
      break;
    }
    tracee.kill();
    const Catalog catalog(path);
    check_whole(catalog, operation);
    catalog->sweep();
    check_whole(catalog, operation);
    check_no_leftovers(catalog);
    // The operation can be done again, unless it is done already.
    const Result<void> again = perform(*catalog, operation);
    if (!again) {
      const Errc code = again.error().code;
      REQUIRE((code == Errc::invalid || code == Errc::missing));
      const bool done = operation == "detach" || operation == "remove" ||
                        (catalog->has("child") && (operation == "fork" || operation == "rename"));
      REQUIRE(done);
    }
    check_whole(catalog, operation);
  }
  CHECK(stop > 6);
  const Catalog catalog(path);
  check_whole(catalog, operation);
  check_no_leftovers(catalog);
}

TEST_CASE("readers without a lock see every session whole while it is written", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 5'000)));
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> reads = 0;
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const Result<SessionRecord> read = catalog->read("chat");
        // Busy is allowed where a writer never rests; anything else is not.
        const bool whole = read ? read->tokens == some_tokens(read->tokens.size())
                                : read.error().code == Errc::busy;
        if (!whole) ++wrong;
        if (read) ++reads;
      }
    });
  }
  for (int i = 0; i < 300 || (reads < 100 && i < 100'000); ++i) {
    need(catalog->write(record_of("chat", i % 2 == 0 ? 10 : 5'000 + static_cast<std::size_t>(i))));
    need(catalog->write(record_of("chat", 0)));
    need(catalog->write(record_of("chat", 5'000)));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(reads >= 100);
}
