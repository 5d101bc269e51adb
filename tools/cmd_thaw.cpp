#include <fmt/format.h>

#include "args.hpp"
#include "session_operand.hpp"
#include "store_operand.hpp"
#include "token_ids.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

struct Wanted {
  std::vector<std::int32_t> tokens;
  std::string name_space;
};

Result<Wanted> wanted_prompt(const PromptArgs& prompt) {
  auto ids = read_token_ids(prompt.ids_file);
  if (!ids) return tl::make_unexpected(ids.error());
  if (prompt.first && *prompt.first < ids->size()) ids->resize(*prompt.first);
  return Wanted{std::move(*ids), prompt.name_space};
}

Result<Wanted> wanted_session(Store& store, const std::string& name) {
  const auto info = find_session(store, name);
  if (!info) return tl::make_unexpected(info.error());
  const auto session = resume_session(store, name);
  if (!session) return tl::make_unexpected(session.error());
  const Tokens tokens = session->token_ids();
  return Wanted{{tokens.begin(), tokens.end()}, info->name_space};
}

}  // namespace

int run(const ThawArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto wanted =
      args.session.empty() ? wanted_prompt(args.prompt) : wanted_session(*store, args.session);
  if (!wanted) return out.fail(place.label, wanted.error());
  const std::uint32_t before = store->match(wanted->tokens, wanted->name_space);
  const auto stored = store->thaw(wanted->tokens, wanted->name_space);
  if (!stored) return out.fail(place.label, stored.error());
  out.line(fmt::format("{} of {} tokens are stored, {} before", format_count(*stored),
                       format_count(wanted->tokens.size()), format_count(before)));
  out.json({{"store", place.label},
            {"tokens", static_cast<std::uint64_t>(wanted->tokens.size())},
            {"stored_tokens", *stored},
            {"stored_before", before}});
  return code(*stored == 0 ? Exit::no : Exit::ok);
}

}  // namespace esker::cli
