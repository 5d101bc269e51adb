#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "format/session_file.hpp"

namespace esker::detail {

inline Failure session_damage(std::string_view path, std::string_view field,
                              const std::string& found, const std::string& expected) {
  return fail_field(Errc::corrupt, path, field, found, expected,
                    "the file is damaged: restore it from a copy, or remove the session with "
                    "`esker session rm`");
}

inline std::string uuid_text(const Uuid& uuid) {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    high = high << 8 | uuid[i];
    low = low << 8 | uuid[8 + i];
  }
  return hex(high) + hex(low);
}

/// The first checks of all three kinds of file. `checksum` is what the field should hold. It is
/// looked at before the versions: its place and its rule are the same in every version.
template <class Header>
Result<void> check_session_frame(const Header& header, std::string_view magic,
                                 std::uint64_t checksum, const FileOrigin& origin) {
  const std::string_view path = origin.path;
  if (std::string_view(header.magic.data(), header.magic.size()) != magic) {
    return session_damage(path, "magic", "something else", std::string(magic));
  }
  if (header.uuid != origin.uuid) {
    return fail_field(Errc::corrupt, path, "uuid", uuid_text(header.uuid), uuid_text(origin.uuid),
                      "the file belongs to another store, or is damaged: move it back, or remove "
                      "the session with `esker session rm`");
  }
  if (header.checksum != checksum) {
    return session_damage(path, "checksum", hex(header.checksum), hex(checksum));
  }
  if (header.read_version > session_format_version) {
    return fail_field(Errc::incompatible, path, "read_version", std::to_string(header.read_version),
                      "at most " + std::to_string(session_format_version),
                      "this file was written by a newer Esker; nothing was changed");
  }
  if (header.incompatible_features != 0) {
    return fail_field(Errc::incompatible, path, "incompatible_features",
                      hex(header.incompatible_features), "0",
                      "this file uses a feature that this Esker does not know");
  }
  if (!all_zero(std::as_bytes(std::span(header.reserved)))) {
    return session_damage(path, "reserved", "not zero", "zero");
  }
  return {};
}

}  // namespace esker::detail
