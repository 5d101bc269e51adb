#include "support/homes.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace esker::test {

namespace fs = std::filesystem;

void write_conf(const std::string& home, const std::string& text) {
  fs::create_directories(home);
  const std::string path = home + "/esker.conf";
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

std::string read_conf(const std::string& home) {
  std::ostringstream text;
  text << std::ifstream(home + "/esker.conf").rdbuf();
  return text.str();
}

void age_store(const std::string& store, unsigned days) {
  fs::last_write_time(store + "/lock",
                      fs::file_time_type::clock::now() - std::chrono::hours(24) * days);
}

bool exists(const std::string& path) { return fs::exists(path); }

bool told(const Store& store, EventKind kind, const std::string& note) {
  const auto events = store.events();
  return std::any_of(events.begin(), events.end(),
                     [&](const Event& event) { return event.kind == kind && event.note == note; });
}

}  // namespace esker::test
