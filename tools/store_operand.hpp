#pragma once

#include <cstdint>
#include <esker/store.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace esker::cli {

/// A store as people name it, and where it lies.
struct StorePlace {
  std::string label;  ///< as typed: the name in messages
  std::string path;
};

/// Where named stores live: ESKER_HOME, else $XDG_CACHE_HOME/esker, else ~/.cache/esker.
[[nodiscard]] std::string home_directory();

/// Makes the home, private as the stores in it.
void make_home();

/// An operand with a `/` is a path, else a name in the home.
[[nodiscard]] StorePlace place_of(std::string_view operand);

/// True when the operand is a name: its parent directory is the home, which may have to be made.
[[nodiscard]] bool is_name(std::string_view operand) noexcept;

/// True for the name of a store that is there.
[[nodiscard]] bool is_store_in_home(std::string_view operand);

/// The stores in the home, by name. A home that does not exist holds none.
[[nodiscard]] std::vector<StorePlace> stores_in_home();

/// A store that is open to look at. Without a seat, pins, processes and counters are not known.
struct Look {
  Store store;
  bool seated = false;
};

/// Whether opening a store says that it is needed: see Options::counts_as_use.
enum class Use : std::uint8_t { counts, none };

/// Opens a store to look only: with a seat if possible, without one on a read-only mount or when
/// all seats are taken.
[[nodiscard]] Result<Look> look_at(const StorePlace& place, Use use = Use::counts);

/// The same for who reads nothing but what is stored.
[[nodiscard]] Result<Store> open_to_look(const StorePlace& place);

/// Opens a store to look, or fails: for what only a seat can see.
[[nodiscard]] Result<Store> open_with_seat(const StorePlace& place);

/// Opens a store to change it.
[[nodiscard]] Result<Store> open_to_change(const StorePlace& place);

/// Reads the superblock only.
[[nodiscard]] Result<Info> inspect_place(const StorePlace& place);

}  // namespace esker::cli
