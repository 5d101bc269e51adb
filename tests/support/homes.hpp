#pragma once

#include <cstdint>
#include <string>

#include "support/stores.hpp"

namespace esker::test {

/// Writes `esker.conf` as given, mode 0600.
void write_conf(const std::string& home, const std::string& text);
[[nodiscard]] std::string read_conf(const std::string& home);

/// As if nobody had opened the store for so long.
void age_store(const std::string& store, unsigned days);

[[nodiscard]] bool exists(const std::string& path);

/// True when the store's event ring has an event of this kind with this note.
[[nodiscard]] bool told(const Store& store, EventKind kind, const std::string& note);

}  // namespace esker::test
