#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/session_info.hpp>
#include <esker/store.hpp>
#include <string_view>

#include "args.hpp"
#include "import_rows.hpp"
#include "llama/seq_reader.hpp"

namespace esker::cli {

/// What became of the session that a file was imported into.
struct ImportedSession {
  Written written;
  SessionInfo info;                 ///< as it was saved
  bool is_new = false;              ///< there was none of this name
  std::uint32_t common_tokens = 0;  ///< leading ones that it had before and still has
};

/// Makes the file's sequence the session `change.name`: a new one, or one that goes on behind what
/// the two have in common. The session is saved at the end, so that an error leaves it as it was.
[[nodiscard]] Result<ImportedSession> import_session(const llama::SeqFile& file, Store& store,
                                                     Namespace name_space,
                                                     const SessionChange& change,
                                                     const Progress& progress);

}  // namespace esker::cli
