#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace esker::cli::llama {

/// First word of a file that `llama_state_seq_save_file` wrote ("qsgg" on disk).
inline constexpr std::uint32_t sequence_magic = 0x67677371;
/// First word of a file that `llama_state_save_file` wrote: a whole context, not one sequence.
inline constexpr std::uint32_t session_magic = 0x6767736e;
/// First word of a model file, given here by mistake now and then.
inline constexpr std::uint32_t gguf_magic = 0x46554747;

/// How a file begins, and how it counts its versions.
enum class Container : std::uint8_t {
  sequence,  ///< one sequence: what a server saves of a slot
  session,   ///< a whole context, with the model's architecture by name
};

/// Session files count their versions so far ahead of sequence files with the same cache.
inline constexpr std::uint32_t session_version_lead = 7;
inline constexpr std::uint32_t max_architecture_bytes = 64;

inline constexpr std::uint32_t oldest_version = 3;
inline constexpr std::uint32_t newest_version = 4;
/// The first version that records how K and V are rotated.
inline constexpr std::uint32_t rotation_version = 4;

inline constexpr std::uint32_t header_bytes = 12;  ///< magic, version, number of words
inline constexpr std::uint32_t cell_bytes = 12;    ///< position, number of sequences, sequence
inline constexpr std::uint32_t extended_cell_bytes = 24;  ///< and three words for M-RoPE or n-grams
inline constexpr std::uint32_t max_streams = 4096;

/// An element type of ggml that a KV cache can have. `id` is part of the file format.
struct ElementType {
  std::uint32_t id = 0;
  std::string_view name;
  std::uint32_t block_elements = 1;  ///< more than 1: quantised
  std::uint32_t block_bytes = 0;
};

/// Null for a type that no KV cache is known to use.
[[nodiscard]] const ElementType* find_element_type(std::uint32_t id) noexcept;
/// The names of all known types, for messages.
[[nodiscard]] std::string element_type_names();

/// How the tokens stand in front of the cache.
enum class TokenPayload : std::uint8_t {
  plain,   ///< one word per token
  packed,  ///< -1, 1, number of tokens, tokens, number of media chunks
};

/// Everything that two files of one server have in common, whatever text they hold.
/// Threads:  a plain value.
/// Lifetime: independent of the file that it was read from.
/// Errors:   none; SeqFile checks each field before it makes one.
/// Cost:     8 bytes per layer.
struct SeqLayout {
  Container container = Container::sequence;
  std::string architecture;                ///< such as "llama"; only session files have it
  std::uint32_t version = newest_version;  ///< as sequence files count
  std::uint32_t streams = 1;
  TokenPayload payload = TokenPayload::plain;
  bool values_transposed = false;  ///< V is stored channel by channel (no flash attention)
  std::uint32_t key_type = 0;
  std::uint32_t value_type = 0;  ///< meaningless when the cache has no V
  std::uint32_t key_rotation = 0;
  std::uint32_t value_rotation = 0;
  std::vector<LayerRows> layers;

  [[nodiscard]] bool has_values() const noexcept;
  /// "f16" where K and V agree or V is absent, else "k:f16,v:q8_0".
  [[nodiscard]] std::string dtype() const;
  [[nodiscard]] Geometry geometry(std::uint32_t block_tokens) const;
  [[nodiscard]] std::uint32_t row_bytes(std::uint32_t layer, Plane plane) const noexcept;
  /// Exact size of a file of this layout that holds `tokens` tokens.
  [[nodiscard]] std::uint64_t file_bytes(std::uint64_t tokens) const noexcept;
};

}  // namespace esker::cli::llama
