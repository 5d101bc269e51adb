#pragma once

#include <array>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/session_info.hpp>
#include <esker/stats.hpp>
#include <string>
#include <vector>

namespace esker {

/// What a snapshot gives up for size. Anything but `none` changes rows: the file's model id says
/// so (`lossy=q8`), and so does that of every store that its blocks are imported into.
/// Never renumber: stored in files.
enum class Lossy : std::uint8_t { none = 0, q8 = 1, q4 = 2 };

[[nodiscard]] std::string_view name(Lossy lossy) noexcept;

/// Tokens whose stored rows are wanted.
struct SnapshotPrompt {
  std::vector<std::int32_t> tokens;
  std::string name_space;
};

/// What goes into a snapshot, and how.
/// Threads:  a plain value.
/// Lifetime: read during the call only.
/// Errors:   `Errc::missing` names a path or session that is not there, `Errc::invalid` a dtype
///           that cannot be quantised.
/// Cost:     none.
struct ExportOptions {
  // What: the union of these; all paths and all sessions when all three are empty.
  std::vector<std::uint64_t> paths;  ///< by name, see Prefix::path
  std::vector<std::string> sessions;
  std::vector<SnapshotPrompt> prompts;

  Compression compression = Compression::lz4;
  int level = 0;  ///< of zstd, 1…19; 0: 3
  Lossy lossy = Lossy::none;
  std::uint32_t threads = 1;  ///< that encode; 1 is the calling thread alone
  bool replace = false;       ///< an existing file, when the new one is whole
  Progress progress;          ///< in bytes of rows
};

/// How far quantised rows are from the exact ones, per plane: of all elements of K, and of V.
struct LossyError {
  double max_absolute = 0;
  double rms = 0;           ///< root of the mean squared error
  double rms_relative = 0;  ///< rms over the root of the mean square of the exact elements
};

/// What an export wrote.
struct ExportReport {
  std::uint64_t paths = 0;
  std::uint64_t blocks = 0;
  std::uint64_t tokens = 0;  ///< rows of each plane: what paths share counts once
  std::uint64_t sessions = 0;
  std::uint64_t raw_bytes = 0;  ///< of the rows before they were compressed
  std::uint64_t file_bytes = 0;
  std::uint64_t gone_blocks = 0;       ///< evicted before they were reached: left out
  std::uint64_t damaged_blocks = 0;    ///< payload did not check: left out, with what hangs below
  std::uint64_t damaged_sessions = 0;  ///< they or their states cannot be read: left out
  std::array<LossyError, 2> lossy_error{};  ///< K, V; zeros for an exact snapshot
};

struct ImportOptions {
  /// Names of the namespaces that the snapshot knows by a digest only.
  std::vector<std::string> namespaces;
  /// Keys of the model id that may differ. `lossy` is refused: such rows would look exact.
  std::vector<std::string> assume_same;
  bool sessions = true;           ///< also the sessions
  bool replace_sessions = false;  ///< that exist under the same name with other tokens
  std::uint32_t threads = 1;      ///< that decode and store
  Progress progress;              ///< in bytes of the file; a total of 0 is not known
};

struct ImportReport {
  std::uint64_t blocks = 0;              ///< in the file, of namespaces that are known
  std::uint64_t stored_blocks = 0;       ///< new
  std::uint64_t present_blocks = 0;      ///< the store had them
  std::uint64_t refused_blocks = 0;      ///< the store was full
  std::uint64_t raw_bytes = 0;           ///< of the rows of new blocks
  std::uint64_t reachable_tokens = 0;    ///< of the file, that lookups find now
  std::uint64_t unreachable_tokens = 0;  ///< under namespaces whose names were not given
  std::uint64_t unnamed_namespaces = 0;
  std::uint64_t sessions = 0;                 ///< written
  std::uint64_t present_sessions = 0;         ///< the same were there
  std::vector<std::string> skipped_sessions;  ///< of the same name, but with other tokens
  std::uint64_t unreachable_sessions = 0;     ///< under namespaces whose names were not given
};

/// What the head of a snapshot says.
struct SnapshotInfo {
  std::string path;  ///< or what a stream is called
  std::array<std::uint8_t, 16> id{};
  std::uint32_t write_version = 0;
  std::uint32_t read_version = 0;
  std::uint64_t created_unix_ns = 0;
  std::uint64_t file_bytes = 0;  ///< 0: a stream
  Geometry geometry;
  ModelId model;
  Lossy lossy = Lossy::none;
};

struct SnapshotNamespace {
  bool named = false;  ///< false: only the digest is in the file
  std::string text;    ///< the namespace, or the digest in hex
  std::uint64_t tokens = 0;
};

struct SnapshotSession {
  std::string name;
  std::uint32_t name_space = 0;  ///< index into the namespaces
  std::uint32_t tokens = 0;
  std::uint32_t stored_tokens = 0;  ///< leading ones whose rows are in the file
  std::uint64_t used_unix_ns = 0;
  std::uint64_t attachments = 0;
};

/// A path of a snapshot, by its leaf.
struct SnapshotPath {
  std::uint64_t path = 0;  ///< its name within this file; stores give others
  std::uint32_t name_space = 0;
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
  std::uint64_t bytes = 0;      ///< of rows
  std::uint64_t own_bytes = 0;  ///< that no other path shares
  bool key = false;
};

/// All that a file's index and tables tell, without reading rows.
struct SnapshotContents {
  std::vector<SnapshotNamespace> namespaces;
  std::vector<SnapshotPath> paths;
  std::vector<SnapshotSession> sessions;
  std::uint64_t blocks = 0;
  std::uint64_t tokens = 0;
  std::uint64_t raw_bytes = 0;
  std::array<std::uint64_t, 3> chunks{};  ///< by Compression as stored
  std::uint64_t chunk_bytes = 0;          ///< of all chunks as stored
};

struct SnapshotCheck {
  std::uint64_t frames = 0;
  std::uint64_t blocks = 0;
  std::uint64_t raw_bytes = 0;  ///< decoded and compared
  std::uint64_t sessions = 0;
  std::vector<Damage> damage;
};

}  // namespace esker
