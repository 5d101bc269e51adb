#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "support/disk.hpp"
#include "support/sessions.hpp"
#include "support/stores.hpp"

namespace esker::test {

inline std::uint64_t count_of_blocks(const Store& store) { return store.stats().blocks_ready; }

/// Stores the missing ones of `keys`.
inline void put_keys(Store& store, std::span<const Key> keys, Namespace name_space = {}) {
  Reservation reservation = need(store.reserve_keys(keys, name_space));
  const std::uint32_t block_tokens = store.geometry().block_tokens;
  const Content content(keys, block_tokens, name_space);
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    if (!reservation.missing_key(i)) continue;
    const TokenRange rows{i * block_tokens, (i + 1) * block_tokens};
    need(write_rows(reservation, store.geometry(), content, rows));
  }
  static_cast<void>(need(std::move(reservation).publish()));
}

/// How many of the leading keys are found, their rows checked.
inline std::uint32_t get_keys(const Store& store, std::span<const Key> keys,
                              Namespace name_space = {}) {
  const Prefix prefix = store.lookup_keys(keys, name_space);
  const std::string problem = wrong_rows(prefix, store.geometry(),
                                         Content(keys, store.geometry().block_tokens, name_space));
  if (!problem.empty()) throw std::runtime_error(problem);
  return prefix.blocks();
}

/// Prompts of which many share their beginnings, some end inside a block, and some are of tenants.
struct Prompts {
  std::vector<std::pair<TokenList, std::string>> all;
  std::vector<Key> keys{"one", "two", "three"};

  explicit Prompts(std::uint32_t scale = 1) {
    const TokenList trunk = prompt(200 * scale, 1);
    all.emplace_back(trunk, "");
    for (std::uint32_t i = 0; i < 6; ++i) {
      all.emplace_back(fork_at(trunk, 32 * i, prompt(50 * scale + 7 * i, 100 + i)), "");
    }
    all.emplace_back(fork_at(all[3].first, 80, prompt(90 * scale, 300)), "");
    all.emplace_back(prompt(5, 7), "");
    all.emplace_back(trunk, "lora=0011");
    all.emplace_back(fork_at(trunk, 70, prompt(40, 8)), "tenant-of-renown");
    all.emplace_back(prompt(64, 9), "other-tenant");
  }

  void put_into(Store& store) const {
    for (const auto& [tokens, name_space] : all) put(store, tokens, name_space);
    put_keys(store, keys);
    put_keys(store, keys, "tenant-of-renown");
  }
  /// Throws unless every row of all of it is there and right.
  void check(const Store& store) const {
    for (const auto& [tokens, name_space] : all) {
      const std::uint32_t found = get(store, tokens, name_space);
      if (found != tokens.size()) {
        throw std::runtime_error("found only " + std::to_string(found) + " of " +
                                 std::to_string(tokens.size()) + " tokens");
      }
    }
    if (get_keys(store, keys) != keys.size()) throw std::runtime_error("keys are missing");
    if (get_keys(store, keys, "tenant-of-renown") != keys.size()) {
      throw std::runtime_error("keys of the tenant are missing");
    }
  }
  static std::vector<std::string> tenants() { return {"tenant-of-renown", "other-tenant"}; }
};

inline ImportOptions of_tenants() {
  ImportOptions options;
  options.namespaces = Prompts::tenants();
  return options;
}

inline ImportReport import_file(Store& store, const std::string& file,
                                const ImportOptions& options = of_tenants()) {
  Snapshot snapshot = need(Snapshot::open(file));
  return need(import_snapshot(store, snapshot, options));
}

}  // namespace esker::test
