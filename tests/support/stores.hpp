#pragma once

#include <cstdint>
#include <esker/esker.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/rows.hpp"

namespace esker::test {

inline constexpr std::uint64_t kib = 1024;
inline constexpr std::uint64_t mib = 1024 * kib;

/// The value, or an exception with the error's own words: Catch2 reports them, and so do roles.
template <class T>
T need(Result<T> result) {
  if (!result) {
    throw std::runtime_error(std::string(name(result.error().code)) + ": " +
                             result.error().message);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Three layers with rows of different sizes, none a power of two; the middle one has no V.
[[nodiscard]] Geometry small_geometry(std::uint32_t block_tokens = 16);
/// One layer with rows of one byte, one token a block: as many blocks as possible.
[[nodiscard]] Geometry tiny_geometry(std::uint32_t block_tokens = 1);
[[nodiscard]] ModelId small_model();
/// Segments of 256 KiB, so that growth and eviction come soon.
[[nodiscard]] Options small_options(std::uint64_t capacity_bytes = 8 * mib);

[[nodiscard]] Store make_store(const std::string& path, const Geometry& geometry = small_geometry(),
                               const Options& options = small_options());

/// Stores what is missing of `tokens`, as an engine would. The tokens stored from position 0 on.
Result<std::uint32_t> try_put(Store& store, Tokens tokens, Namespace name_space = {});
/// The same, and the pinned path.
Result<Prefix> try_put_pinned(Store& store, Tokens tokens, Namespace name_space = {});
/// Throws when the store did not take all of it.
void put(Store& store, Tokens tokens, Namespace name_space = {});

/// What `lookup` finds, checked byte by byte: throws on anything wrong.
std::uint32_t get(const Store& store, Tokens tokens, Namespace name_space = {});

/// The name of what is found of a path, with no pin left on it.
[[nodiscard]] std::uint64_t path_of(const Store& store, Tokens tokens, Namespace name_space = {});

/// The sum of blocks over all states but free and reserved equals what exists.
[[nodiscard]] bool adds_up(const Stats& stats);

/// How many files of a store of small_geometry contain the K row of layer 1 of this token.
[[nodiscard]] std::size_t files_with_row(const std::string& store, const TokenList& tokens,
                                         std::uint32_t token);
/// How many contain these eight token ids.
[[nodiscard]] std::size_t files_with_label(const std::string& store, const TokenList& tokens,
                                           std::uint32_t from);

}  // namespace esker::test
