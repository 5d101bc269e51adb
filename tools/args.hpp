#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "change_args.hpp"
#include "cold_args.hpp"
#include "house_args.hpp"
#include "look_args.hpp"
#include "output.hpp"
#include "prompt_args.hpp"
#include "session_args.hpp"
#include "snapshot_args.hpp"

namespace esker::cli {

/// What a store is for: `--model key=value…` and `--model-file GGUF`.
struct ModelArgs {
  std::vector<std::string> entries;
  std::string file;

  [[nodiscard]] bool empty() const noexcept { return entries.empty() && file.empty(); }
};

// One struct per command. `store` is the operand as it was typed, or what -s or ESKER_STORE gave.

struct OverviewArgs {};

struct VersionArgs {};

struct CreateArgs {
  std::string store;
  std::uint32_t layers = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::string dtype;
  std::uint32_t block_tokens = 32;
  std::optional<std::uint64_t> capacity_bytes;  ///< not given: the library's default
  std::uint64_t cold_bytes = 0;                 ///< the part of it for cold blocks
  std::uint64_t segment_bytes = 0;
  std::uint32_t seats = 128;
  bool group = false;
  ModelArgs model;
  std::string like;  ///< a llama.cpp file, or "" when the flags give the geometry
};

struct DestroyArgs {
  std::string store;
  ChangeArgs change;
};

struct InfoArgs {
  std::string store;
};

enum class SortBy : std::uint8_t { age, tokens, bytes };

struct LsArgs {
  std::string store;  ///< "": the stores in the home
  SortBy sort = SortBy::age;
};

struct MatchArgs {
  std::string store;
  PromptArgs prompt;
};

struct StatArgs {
  std::string store;  ///< "": with `prometheus`, all stores in the home
  bool prometheus = false;
  std::string output;  ///< a file for it, or "" for stdout
};

struct PsArgs {
  std::string store;
};

struct LogArgs {
  std::string store;
  bool follow = false;
  std::uint64_t since = 0;
};

struct VerifyArgs {
  std::string store;
};

struct RmArgs {
  std::string store;
  std::vector<std::string> paths;
  ChangeArgs change;
};

struct EvictArgs {
  std::string store;
  std::optional<std::uint64_t> to_bytes;
  std::optional<std::uint64_t> older_than_s;
  ChangeArgs change;
};

struct TrimArgs {
  std::string store;
  std::uint64_t keep_free_bytes = 0;
  ChangeArgs change;
};

struct ReapArgs {
  std::string store;
};

struct ImportArgs {
  std::string store;
  std::string file;    ///< a snapshot or a sequence file, "-" is stdin
  std::string format;  ///< "" asks the file
  ModelArgs model;
  bool assume_model = false;  ///< take the store's model id for granted
  std::vector<std::string> namespaces;
  SessionChange session;
  SnapshotImportArgs snapshot;
};

struct ExportArgs {
  std::string store;
  std::string output;  ///< "-" is stdout
  std::string format;  ///< "" is a snapshot, or with `like` a file for its reader
  PromptArgs prompt;
  std::vector<std::string> paths;     ///< names of paths
  std::vector<std::string> sessions;  ///< names of sessions
  std::string like;
  std::string architecture;  ///< for llama-session
  CodecArgs codec;
  bool force = false;
};

struct CatArgs {
  std::string store;  ///< or a file
  std::string path;   ///< a path name, or ""
  std::string session;
  PromptArgs prompt;
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  TokenRange range;
  std::string output = "-";  ///< "-" is stdout
  bool force = false;
};

struct ConvertArgs {
  std::string input;
  std::string output;
  std::string from;  ///< a kind of file by name, or "": tell it by the content
  std::string to;    ///< the same, or "": tell it by the output's name or by `like`
  std::string path;
  std::string session;
  PromptArgs prompt;
  std::string like;
  std::string architecture;
  std::optional<std::uint32_t> file_version;
  ModelArgs model;
  bool assume_model = false;
  bool force = false;
};

using Command =
    std::variant<OverviewArgs, VersionArgs, CreateArgs, DestroyArgs, InfoArgs, LsArgs, MatchArgs,
                 StatArgs, PsArgs, LogArgs, VerifyArgs, RmArgs, EvictArgs, TrimArgs, ReapArgs,
                 ImportArgs, ExportArgs, SessionLsArgs, SessionShowArgs, SessionRmArgs,
                 SessionForkArgs, SessionRenameArgs, SessionKeepArgs, CatArgs, ConvertArgs,
                 DiffArgs, RewriteArgs, BackupArgs, ConfigArgs, ResizeArgs, MaintainArgs, TopArgs,
                 ReportArgs, FreezeArgs, ThawArgs>;

struct Invocation {
  OutputOptions output;
  Command command;
};

/// Reads the command line. When the answer is an exit code, all is said already: help, or what was
/// wrong.
[[nodiscard]] std::variant<Invocation, int> parse_args(int argc, const char* const* argv);

// The commands: no parsing inside, no printing but through Output.

int run(const OverviewArgs& args, Output& out);
int run(const VersionArgs& args, Output& out);
int run(const CreateArgs& args, Output& out);
int run(const DestroyArgs& args, Output& out);
int run(const InfoArgs& args, Output& out);
int run(const LsArgs& args, Output& out);
int run(const MatchArgs& args, Output& out);
int run(const StatArgs& args, Output& out);
int run(const PsArgs& args, Output& out);
int run(const LogArgs& args, Output& out);
int run(const VerifyArgs& args, Output& out);
int run(const RmArgs& args, Output& out);
int run(const EvictArgs& args, Output& out);
int run(const TrimArgs& args, Output& out);
int run(const ReapArgs& args, Output& out);
int run(const ImportArgs& args, Output& out);
int run(const ExportArgs& args, Output& out);
int run(const SessionLsArgs& args, Output& out);
int run(const SessionShowArgs& args, Output& out);
int run(const SessionRmArgs& args, Output& out);
int run(const SessionForkArgs& args, Output& out);
int run(const SessionRenameArgs& args, Output& out);
int run(const SessionKeepArgs& args, Output& out);
int run(const CatArgs& args, Output& out);
int run(const ConvertArgs& args, Output& out);
int run(const DiffArgs& args, Output& out);
int run(const RewriteArgs& args, Output& out);
int run(const BackupArgs& args, Output& out);
int run(const ConfigArgs& args, Output& out);
int run(const ResizeArgs& args, Output& out);
int run(const FreezeArgs& args, Output& out);
int run(const ThawArgs& args, Output& out);
int run(const MaintainArgs& args, Output& out);
int run(const TopArgs& args, Output& out);
int run(const ReportArgs& args, Output& out);

}  // namespace esker::cli
