#pragma once

#include <cstdint>
#include <esker/snapshot_info.hpp>
#include <optional>
#include <string>
#include <vector>

namespace esker::cli {

/// How a snapshot is written: `--codec`, `--level`, `--lossy`, `--threads`.
struct CodecArgs {
  Compression compression = Compression::lz4;
  int level = 0;
  Lossy lossy = Lossy::none;
  std::uint32_t threads = 0;  ///< 0: all cores
};

/// What a snapshot is imported with, and into what.
struct SnapshotImportArgs {
  std::vector<std::string> assume_same;
  bool sessions = true;
  bool replace_sessions = false;
  std::uint32_t threads = 0;  ///< 0: all cores
  bool create = false;        ///< the store, when it is not there
  std::optional<std::uint64_t> capacity_bytes;
  std::uint64_t cold_bytes = 0;
  std::uint64_t segment_bytes = 0;
  bool group = false;
};

// One struct per command. Operands are stores or files, as they were typed.

struct DiffArgs {
  std::string a;
  std::string b;
  std::vector<std::string> namespaces;  ///< that a snapshot knows by a digest only
};

/// merge, split and repack: one file out of others.
struct RewriteArgs {
  std::vector<std::string> inputs;
  std::vector<std::string> sessions;  ///< only these; all when empty
  CodecArgs codec;
  std::string output;
  bool force = false;
};

struct BackupArgs {
  std::string store;      ///< "": every store in the home, into `directory`
  std::string directory;  ///< --all DIR
  std::string output;
  CodecArgs codec;
  bool force = false;
};

}  // namespace esker::cli
