// Invariants
// 1. Stands in for the cold tier until that is there: nothing is frozen.
#include <esker/store.hpp>

#include "base/error.hpp"

namespace esker {

Result<Frozen> Store::freeze(std::uint64_t, const FreezeOptions&) { return Frozen{}; }

}  // namespace esker
