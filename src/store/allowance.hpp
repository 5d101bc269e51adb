#pragma once

#include <esker/result.hpp>
#include <optional>

#include "sync/lock.hpp"

namespace esker::detail {

class Core;

/// Leave to add one segment, from the home of the store and from its file system. Held until the
/// segment is there, so that what two growers count is not the same room.
class Allowance {
 public:
  /// Removes unused stores of the home where that makes room. A refusal is `Errc::full`, with a
  /// short word for the event ring as its message.
  [[nodiscard]] static Result<Allowance> ask(const Core& core);

 private:
  std::optional<LockFile> home_lock_;
};

}  // namespace esker::detail
