#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/cold_file.hpp"

namespace esker::detail {

class Core;

/// A node of a cold file.
struct ColdPlace {
  std::shared_ptr<const ColdFile> file;
  std::uint32_t node = no_node;
  explicit operator bool() const noexcept { return file != nullptr; }
};

/// The cold files at one moment.
struct ColdView {
  std::vector<std::shared_ptr<const ColdFile>> files;
  std::vector<std::string> damaged;  ///< names of files that cannot be read
  std::uint64_t damaged_bytes = 0;

  [[nodiscard]] bool empty() const noexcept { return files.empty() && damaged.empty(); }
};

/// Which cold files there are and what they hold: in memory, per handle, built when it is first
/// asked for. Files are read once; afterwards a look at the directory's time is enough.
/// Safe for several threads.
class ColdIndex {
 public:
  /// As it is now. Empty, without a word, where there is no `cold/` or it cannot be read.
  [[nodiscard]] std::shared_ptr<const ColdView> view(const Core& core);
  /// All of it, for who has to see every file: an error where something could not be read just now,
  /// which says nothing of the file. Damaged ones are in the view.
  [[nodiscard]] Result<std::shared_ptr<const ColdView>> whole_view(const Core& core);
  /// The directory, once it was seen.
  [[nodiscard]] std::shared_ptr<const Directory> directory();
  /// Somebody found out that the files have changed.
  void look_again() noexcept;

 private:
  void look(const Core& core);
  [[nodiscard]] bool find_directory(const Core& core);
  [[nodiscard]] bool changed() noexcept;
  void refresh(const Core& core);

  std::mutex mutex_;
  std::shared_ptr<const Directory> directory_;
  std::map<std::string, std::shared_ptr<const ColdFile>, std::less<>> files_;
  std::map<std::string, std::uint64_t, std::less<>> unusable_;  ///< name → bytes, 0: of others
  std::shared_ptr<const ColdView> view_ = std::make_shared<ColdView>();
  std::uint64_t listed_mtime_ns_ = 0;
  std::optional<Error> unread_;  ///< why the last look did not see all there is
  bool certain_ = false;         ///< a change since would show in the directory's time
};

/// Cold blocks that continue a prompt where the segments end.
struct ColdPath {
  std::vector<ColdPlace> places;     ///< one block after the other
  std::uint32_t first_block = 0;     ///< index of the first
  std::vector<std::int32_t> tokens;  ///< of the whole path, from position 0 to its end
  [[nodiscard]] bool empty() const noexcept { return places.empty(); }
};
/// Goes on behind `whole_blocks` blocks of `tokens`. Its last block may share only its beginning
/// with them: then more than `hot_tokens` in all.
[[nodiscard]] ColdPath find_cold_path(const Core& core, const ColdView& view, Tokens tokens,
                                      std::string_view name_space, std::uint32_t whole_blocks,
                                      std::uint32_t hot_tokens);

/// The path hashes of what cold files hold along a sequence: whole blocks, and the last one, which
/// must end with the sequence (`exact`) or may go on.
[[nodiscard]] std::vector<std::uint64_t> cold_hashes_along(const Core& core, const ColdView& view,
                                                           Tokens tokens,
                                                           std::string_view name_space, bool exact);

/// The cold copy of a key block.
[[nodiscard]] ColdPlace find_cold_key(const Core& core, const ColdView& view, std::string_view key,
                                      std::string_view name_space);

}  // namespace esker::detail
