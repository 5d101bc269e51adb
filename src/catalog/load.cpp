// Invariants
// 1. A file that has its name never changes: what one descriptor shows belongs together.
// 2. A session file names its token file by a random suffix. The token file gets its name before
//    the session file does and loses it afterwards: a reader that misses it reads the session anew.
// 3. Memory is taken only for as many bytes as the file has.
#include "catalog/load.hpp"

#include <fcntl.h>
#include <cerrno>
#include <span>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "catalog/file_names.hpp"
#include "catalog/room.hpp"
#include "format/session_frame.hpp"

namespace esker::detail {

namespace {

constexpr int most_rounds = 16;

std::uint64_t size_of(const struct stat& status) noexcept {
  return status.st_size > 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Failure no_session(std::string_view name) {
  return fail(Errc::missing,
              "there is no session \"" + std::string(name) + "\"; `esker session ls` shows all");
}

/// A file that is listed, but whose name Esker would not have given, is there and damaged.
Failure missing_or_foreign(const SessionArea& area, std::string_view name) {
  auto files = area.directory.names();
  if (!files) return Failure(std::move(files).error());
  for (const std::string& file : *files) {
    if (parse_file_name(file).kind != SessionFileName::Kind::session) continue;
    if (listed_name(file) != name || decode_session_name(parse_file_name(file).stem)) continue;
    return session_damage(area.directory.path() + "/" + std::string(name), "file name",
                          "no encoded name of a session", "letters, digits, _, - and %XX");
  }
  return no_session(name);
}

Result<std::vector<std::byte>> read_session_file(const File& file, std::uint64_t size) {
  SessionHeader header;
  if (size < sizeof header) {
    return session_damage(file.path(), "file size", std::to_string(size),
                          "at least " + std::to_string(sizeof header));
  }
  if (auto done = file.read_at(0, std::as_writable_bytes(std::span(&header, 1))); !done) {
    return tl::make_unexpected(std::move(done).error());
  }
  auto expected = session_file_bytes(header, file.path());
  if (!expected) return tl::make_unexpected(std::move(expected).error());
  if (size != *expected) {
    return session_damage(file.path(), "file size", std::to_string(size),
                          std::to_string(*expected));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (auto done = file.read_at(0, bytes); !done) {
    return tl::make_unexpected(std::move(done).error());
  }
  return bytes;
}

Result<void> check_ids(const LoadedTokens& loaded, const TokenFileContent& told,
                       const SessionContent& content, const std::string& path) {
  const std::uint64_t sum = xxh3(std::as_bytes(std::span(loaded.ids)));
  if (loaded.ids.size() == told.tokens && sum != told.ids_hash) {
    return session_damage(path, "ids_hash", hex(told.ids_hash), hex(sum));
  }
  if (sum != content.token_hash) {
    return session_damage(path,
                          "the hash of its first " + std::to_string(loaded.ids.size()) + " ids",
                          hex(sum), hex(content.token_hash) + " as the session file says");
  }
  return {};
}

}  // namespace

Result<File> open_part(const SessionArea& area, const std::string& file) {
  auto opened = area.directory.open_file(file, O_RDONLY, area.place.sharing);
  if (opened) return opened;
  Error& error = opened.error();
  if (error.os_error == ENOENT) error.code = Errc::missing;
  if (error.os_error == ELOOP || error.os_error == ENXIO) {  // a symbolic link, a socket
    return session_damage(area.directory.path() + "/" + file, "file type", "not a regular file",
                          "a regular file");
  }
  if (error.code == Errc::invalid) error.code = Errc::corrupt;
  return opened;
}

Result<LoadedSession> load_session(const SessionArea& area, std::string_view name) {
  if (area.directory.fd() < 0) return no_session(name);
  if (!check_session_name(name)) return missing_or_foreign(area, name);
  auto file = open_part(area, session_file_name(encode_session_name(name)));
  if (!file) {
    if (file.error().code == Errc::missing) return missing_or_foreign(area, name);
    return tl::make_unexpected(std::move(file).error());
  }
  auto status = file->status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  auto bytes = read_session_file(*file, size_of(*status));
  if (!bytes) return tl::make_unexpected(std::move(bytes).error());
  auto content = decode_session(*bytes, {area.place.uuid, file->path()});
  if (!content) return tl::make_unexpected(std::move(content).error());
  if (content->name != name) {
    return fail_field(Errc::corrupt, file->path(), "name", "\"" + content->name + "\"",
                      "\"" + std::string(name) + "\" as the name of the file says",
                      "the file was renamed or copied by hand: give it its name back, or remove "
                      "it; `esker session` renames sessions");
  }
  return LoadedSession{std::move(*content), *status};
}

Result<LoadedTokens> load_tokens(const SessionArea& area, const SessionContent& content) {
  if (content.token_suffix == 0) return LoadedTokens{};
  auto file =
      open_part(area, token_file_name(encode_session_name(content.name), content.token_suffix));
  if (!file) return tl::make_unexpected(std::move(file).error());
  auto status = file->status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  TokenFileHeader header;
  if (size_of(*status) < sizeof header) {
    return session_damage(file->path(), "file size", std::to_string(status->st_size),
                          "at least " + std::to_string(sizeof header));
  }
  if (auto done = file->read_at(0, std::as_writable_bytes(std::span(&header, 1))); !done) {
    return tl::make_unexpected(std::move(done).error());
  }
  auto told = decode_token_header(header, size_of(*status), {area.place.uuid, file->path()});
  if (!told) return tl::make_unexpected(std::move(told).error());
  if (told->tokens < content.token_file_tokens) {
    return session_damage(
        file->path(), "tokens", std::to_string(told->tokens),
        "at least " + std::to_string(content.token_file_tokens) + " as the session file says");
  }
  LoadedTokens loaded;
  loaded.held = told->tokens;
  loaded.file_bytes = size_of(*status);
  loaded.only_here_bytes = status->st_nlink <= 1 ? disk_bytes_of(*status) : 0;
  loaded.ids.resize(content.token_file_tokens);
  auto done = file->read_at(sizeof header, std::as_writable_bytes(std::span(loaded.ids)));
  if (done) done = check_ids(loaded, *told, content, file->path());
  if (!done) return tl::make_unexpected(std::move(done).error());
  return loaded;
}

std::vector<std::int32_t> WholeSession::tokens() const {
  std::vector<std::int32_t> all;
  const std::vector<std::int32_t>& rest = session.content.inline_tokens;
  all.reserve(token_file.ids.size() + rest.size());
  all.insert(all.end(), token_file.ids.begin(), token_file.ids.end());
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

Result<WholeSession> load_whole(const SessionArea& area, std::string_view name) {
  std::uint64_t missed = 0;
  for (int round = 0; round < most_rounds; ++round) {
    auto session = load_session(area, name);
    if (!session) return tl::make_unexpected(std::move(session).error());
    auto tokens = load_tokens(area, session->content);
    if (tokens) return WholeSession{std::move(*session), std::move(*tokens)};
    Error error = std::move(tokens).error();
    if (error.code != Errc::missing) return tl::make_unexpected(std::move(error));
    const std::uint64_t suffix = session->content.token_suffix;
    if (suffix == missed) {
      return session_damage(
          area.directory.path() + "/" + token_file_name(encode_session_name(name), suffix),
          "the token file", "not there", "there, as the session file says");
    }
    missed = suffix;
  }
  return fail(Errc::busy, "session \"" + std::string(name) +
                              "\": other processes keep replacing its files; try again");
}

}  // namespace esker::detail
