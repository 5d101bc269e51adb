#include "store_operand.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "units.hpp"

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string user_directory() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  const passwd* entry = getpwuid(getuid());
  return entry == nullptr || entry->pw_dir == nullptr ? "/" : entry->pw_dir;
}

bool holds_store(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory / "esker", ignored);
}

/// What someone who typed a store that is not there may have meant.
std::string hint_for(const StorePlace& place) {
  if (!is_name(place.label)) return "; `esker create` makes one";
  if (holds_store(place.label)) return fmt::format("; did you mean ./{}?", place.label);
  std::vector<std::string> names;
  for (const StorePlace& store : stores_in_home()) names.push_back(store.label);
  const std::string_view meant = nearest(place.label, names);
  if (!meant.empty()) return fmt::format("; did you mean {}?", meant);
  return names.empty() ? "; `esker create` makes one" : "; `esker ls` lists the stores";
}

template <class T>
Result<T> with_hint(const StorePlace& place, Result<T> result) {
  if (!result && result.error().code == Errc::missing) result.error().message += hint_for(place);
  return result;
}

bool needs_no_seat(const Error& error) {
  const bool read_only =
      error.os_error == EROFS || error.os_error == EACCES || error.os_error == EPERM;
  return error.code == Errc::busy || (error.code == Errc::io && read_only);
}

}  // namespace

std::string home_directory() {
  if (std::string home = environment("ESKER_HOME"); !home.empty()) return home;
  const std::string cache = environment("XDG_CACHE_HOME");
  // The XDG specification: a relative path is to be ignored.
  if (cache.starts_with('/')) return cache + "/esker";
  return user_directory() + "/.cache/esker";
}

void make_home() {
  std::error_code error;
  const fs::path home = home_directory();
  fs::create_directories(home.parent_path(), error);
  // What fails here fails again, with its reason, when a store is made.
  [[maybe_unused]] const int made = ::mkdir(home.c_str(), 0700);
}

bool is_name(std::string_view operand) noexcept {
  return operand.find('/') == std::string_view::npos && operand != "." && operand != "..";
}

StorePlace place_of(std::string_view operand) {
  const std::string text(operand);
  return {text, is_name(operand) ? home_directory() + '/' + text : text};
}

bool is_store_in_home(std::string_view operand) {
  return is_name(operand) && holds_store(place_of(operand).path);
}

std::vector<StorePlace> stores_in_home() {
  std::vector<StorePlace> stores;
  std::error_code error;
  for (fs::directory_iterator entry(home_directory(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (holds_store(entry->path())) {
      stores.push_back({entry->path().filename().string(), entry->path().string()});
    }
  }
  std::sort(stores.begin(), stores.end(),
            [](const StorePlace& a, const StorePlace& b) { return a.label < b.label; });
  return stores;
}

Result<Store> open_with_seat(const StorePlace& place) {
  Options options;
  options.access = Access::read;
  return with_hint(place, Store::open(place.path, options));
}

Result<Look> look_at(const StorePlace& place, Use use) {
  Options options;
  options.access = Access::read;
  options.counts_as_use = use == Use::counts;
  auto seated = with_hint(place, Store::open(place.path, options));
  if (seated) return Look{std::move(*seated), true};
  if (!needs_no_seat(seated.error())) return tl::make_unexpected(std::move(seated).error());
  options.access = Access::inspect;
  auto store = Store::open(place.path, options);
  if (!store) return tl::make_unexpected(std::move(store).error());
  return Look{std::move(*store), false};
}

Result<Store> open_to_look(const StorePlace& place) {
  auto look = look_at(place);
  if (!look) return tl::make_unexpected(std::move(look).error());
  return std::move(look->store);
}

Result<Store> open_to_change(const StorePlace& place) {
  return with_hint(place, Store::open(place.path));
}

Result<Info> inspect_place(const StorePlace& place) {
  return with_hint(place, inspect(place.path));
}

}  // namespace esker::cli
