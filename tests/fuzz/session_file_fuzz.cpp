/// A session file, its token file, or engine state beside it: whatever the bytes are, they are
/// reported as damage of that session, or what is told keeps every limit. A good session beside it
/// is never hidden, and the damaged one can be removed.
///
/// Input: one byte of `Treatment`, then the file.

#include <fcntl.h>
#include <unistd.h>
#include <cstring>
#include <span>

#include "base/hash.hpp"
#include "catalog/file_names.hpp"
#include "catalog/session_files.hpp"
#include "format/session_file.hpp"
#include "fuzz/fuzz_target.hpp"

using namespace esker;
using namespace esker::detail;

namespace {

enum Treatment : std::uint8_t {
  which_file = 3,  ///< the part of the first byte that says which file this is, modulo 3
  right_sums = 4,  ///< its checksums are made right first
};
enum Part : std::uint8_t { session_file, token_file, state_file };

constexpr std::uint32_t stored_tokens = 20;
constexpr std::uint64_t token_suffix = 0x0123'4567'89AB'CDEF;
constexpr std::uint64_t state_suffix = 0xFEDC'BA98'7654'3210;
constexpr const char* label = "rnn";

std::uint64_t accepted_inputs = 0;

Uuid store_uuid() {
  Uuid uuid;
  uuid.fill(7);
  return uuid;
}

std::vector<std::int32_t> ids(std::uint32_t begin, std::uint32_t end) {
  std::vector<std::int32_t> list;
  for (std::uint32_t i = begin; i < end; ++i) list.push_back(static_cast<std::int32_t>(i * i) - 9);
  return list;
}

std::vector<std::byte> state_payload() { return std::vector<std::byte>(300, std::byte{0x5A}); }

SessionContent content(const std::string& name) {
  const std::vector<std::int32_t> stored = ids(0, stored_tokens);
  SessionContent out;
  out.name = name;
  out.name_space = "tenant";
  out.metadata = {{"lang", "de"}, {"title", "a chat"}};
  out.inline_tokens = ids(stored_tokens, stored_tokens + 6);
  out.revision = 3;
  out.created_unix_ns = 1'700'000'000'000'000'000;
  out.keep_max_bytes = 4096;
  out.priority = -2;
  out.kept = true;
  out.state_suffix = state_suffix;
  out.token_suffix = token_suffix;
  out.token_hash = xxh3(std::as_bytes(std::span(stored)));
  out.token_file_tokens = stored_tokens;
  return out;
}

template <class Header>
std::vector<std::byte> joined(const Header& header, std::span<const std::byte> rest) {
  std::vector<std::byte> file(sizeof header + rest.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, rest.data(), rest.size());
  return file;
}

std::vector<std::byte> good_file(Part part, const std::string& name) {
  if (part == session_file) return encode_session(content(name), store_uuid());
  if (part == token_file) {
    const std::vector<std::int32_t> stored = ids(0, stored_tokens);
    return joined(encode_token_header(stored, store_uuid()), std::as_bytes(std::span(stored)));
  }
  const std::vector<std::byte> payload = state_payload();
  AttachmentContent state;
  state.label = label;
  state.position = stored_tokens + 6;
  state.path_hash = 77;
  state.payload_bytes = payload.size();
  state.payload_hash = xxh3(payload);
  return joined(encode_attachment_header(state, store_uuid()), payload);
}

std::string file_name(Part part, const std::string& name) {
  const std::string stem = encode_session_name(name);
  if (part == session_file) return session_file_name(stem);
  if (part == token_file) return token_file_name(stem, token_suffix);
  return state_file_name(stem, state_suffix, label);
}

/// Files of sessions in a directory in memory.
class Sessions {
 public:
  Sessions() {
    SessionFiles::Place place;
    place.uuid = store_uuid();
    place.share_bytes = std::uint64_t{1} << 30U;
    const auto store = Directory::open(scratch_ / "");
    fuzz::require(store.has_value(), "the fuzzer's own directory can be opened");
    auto opened = SessionFiles::open(*store, place, true);
    fuzz::require(opened.has_value(), "a directory of sessions can be made");
    files_ = std::move(*opened);
    for (const Part part : {session_file, token_file, state_file}) {
      put(part, "good one", good_file(part, "good one"));
    }
  }

  void put(Part part, const std::string& name, std::span<const std::byte> bytes) const {
    const std::string path = scratch_ / ("sessions/" + file_name(part, name));
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), 0);
    ::close(fd);
    fuzz::require(written == static_cast<ssize_t>(bytes.size()), "the fuzzer's files are written");
  }

  [[nodiscard]] const SessionFiles& files() const noexcept { return files_; }

 private:
  fuzz::Scratch scratch_;
  SessionFiles files_ = open_none();

  static SessionFiles open_none() {
    const auto nowhere = Directory::open("/dev/shm");
    return std::move(*SessionFiles::open(*nowhere, {}, false));
  }
};

template <class Header>
void fix_header(std::vector<std::byte>& file) {
  if (file.size() < sizeof(Header)) return;
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  const std::span<const std::byte> rest = std::span(file).subspan(sizeof header);
  const Uuid uuid = store_uuid();
  if constexpr (std::is_same_v<Header, TokenFileHeader>) header.ids_hash = xxh3(rest);
  if constexpr (std::is_same_v<Header, AttachmentHeader>) header.payload_hash = xxh3(rest);
  header.checksum = 0;
  if constexpr (std::is_same_v<Header, SessionHeader>) {
    header.checksum = xxh3(joined(header, rest), xxh3_of(uuid));
  } else {
    const std::span<const std::byte> fixed = std::as_bytes(std::span(&header, 1));
    header.checksum = xxh3(fixed.first(offsetof(Header, checksum)), xxh3_of(uuid));
  }
  std::memcpy(file.data(), &header, sizeof header);
}

void fix_sums(Part part, std::vector<std::byte>& file) {
  if (part == session_file) fix_header<SessionHeader>(file);
  if (part == token_file) fix_header<TokenFileHeader>(file);
  if (part == state_file) fix_header<AttachmentHeader>(file);
}

bool as_written(const SessionRecord& record, const std::string& name) {
  const SessionContent wanted = content(name);
  return record.name == name && record.name_space == wanted.name_space &&
         record.metadata == wanted.metadata && record.tokens == ids(0, stored_tokens + 6) &&
         record.revision == wanted.revision && record.priority == wanted.priority && record.kept &&
         record.keep_max_bytes == wanted.keep_max_bytes &&
         record.created_unix_ns == wanted.created_unix_ns &&
         record.time_to_live_s == wanted.time_to_live_s;
}

/// Everything that reads one session; true when all of it is good.
bool read_session(const SessionFiles& files, const std::string& name, bool only_as_written) {
  const Result<SessionRecord> record = files.read(name);
  if (record) {
    fuzz::require(record->name == name, "a session has the name that was asked for");
    fuzz::require(check_metadata(record->metadata).has_value(), "metadata that is read is valid");
    fuzz::require(record->name_space.size() <= max_session_namespace_bytes, "a namespace is short");
    fuzz::require(!only_as_written || as_written(*record, name), "no session tells anything else");
  } else {
    fuzz::require(record.error().message.find("sessions/") != std::string::npos,
                  "damage names the file");
  }
  bool good = record.has_value();
  const auto attached = files.attachments(name);
  if (attached) {
    for (const SessionFiles::Attachment& one : *attached) {
      good = good && one.damage.empty();
      fuzz::require(one.record.label.size() <= max_attachment_label_bytes, "a label is short");
    }
  }
  const auto state = files.state(name, label);
  good = good && attached && state;
  if (state) {
    fuzz::require(state->record.label == label, "state has the label that was asked for");
    fuzz::require(state->record.bytes == state->bytes.size(), "state has the bytes that it tells");
    fuzz::require(!only_as_written || state->bytes == state_payload(), "no state is anything else");
  }
  return good;
}

}  // namespace

std::vector<fuzz::Bytes> esker::fuzz::corpus() {
  std::vector<Bytes> inputs;
  for (const Part part : {session_file, token_file, state_file}) {
    const std::vector<std::byte> file = good_file(part, "chat");
    for (const int treatment : {+part, +right_sums + +part}) {
      Bytes& input = inputs.emplace_back(1 + file.size(), static_cast<std::uint8_t>(treatment));
      std::memcpy(input.data() + 1, file.data(), file.size());
    }
  }
  return inputs;
}

std::uint64_t esker::fuzz::accepted() { return accepted_inputs; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sessions sessions;
  if (size == 0) return 0;
  const auto changed = static_cast<Part>((data[0] & which_file) % 3);
  const bool fix = (data[0] & right_sums) != 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(begin + 1, begin + size);
  if (fix) fix_sums(changed, file);
  for (const Part part : {session_file, token_file, state_file}) {
    sessions.put(part, "chat", part == changed ? file : good_file(part, "chat"));
  }
  const SessionFiles& files = sessions.files();
  // The session file proves the ids in its token file: another token file is never believed.
  const bool only_as_written = !fix || changed == token_file;
  accepted_inputs += read_session(files, "chat", only_as_written);
  fuzz::require(read_session(files, "good one", true), "a good session is read beside a bad one");
  const auto names = files.names();
  fuzz::require(names && *names == std::vector<std::string>{"chat", "good one"},
                "a damaged session is listed by its name");
  fuzz::require(files.used_bytes().has_value(), "what sessions use can be told");
  fuzz::require(files.remove("chat").has_value(), "a damaged session can be removed");
  fuzz::require(!files.has("chat"), "a removed session is gone");
  return 0;
}
