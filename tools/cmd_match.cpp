#include <fmt/format.h>

#include <algorithm>

#include "args.hpp"
#include "store_operand.hpp"
#include "token_ids.hpp"
#include "units.hpp"

namespace esker::cli {

int run(const MatchArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto ids = read_token_ids(args.prompt.ids_file);
  if (!ids) return out.fail(place.label, ids.error());
  if (args.prompt.first && *args.prompt.first < ids->size()) ids->resize(*args.prompt.first);

  const auto store = open_to_look(place);
  if (!store) return out.fail(place.label, store.error());
  const std::uint32_t matched = store->match(*ids, args.prompt.name_space);
  out.line(fmt::format("{} of {} tokens ({})", format_count(matched), format_count(ids->size()),
                       format_share(matched, ids->size())));
  out.json(
      {{"store", place.label},
       {"tokens", static_cast<std::uint64_t>(ids->size())},
       {"matched_tokens", matched},
       {"share",
        ids->empty() ? 0.0 : static_cast<double>(matched) / static_cast<double>(ids->size())}});
  return code(matched == 0 ? Exit::no : Exit::ok);
}

}  // namespace esker::cli
