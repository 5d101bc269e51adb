#include "args_parser.hpp"

namespace esker::cli {

void Parser::add_sessions() {
  CLI::App* app = verb("session");
  app->require_subcommand(1);
  add_session_ls(app);
  add_session_show(app);
  add_session_rm(app);
  add_session_copy<SessionForkArgs>(app, "session fork");
  add_session_copy<SessionRenameArgs>(app, "session rename");
  add_session_keep(app);
  add_common(app);
}

void Parser::add_session_ls(CLI::App* parent) {
  CLI::App* app = verb("session ls", parent);
  auto args = std::make_shared<SessionLsArgs>();
  add_store(app, args->store);
  add_choice<SessionOrder>(app, "--sort", args->sort,
                           {{"used", SessionOrder::used},
                            {"name", SessionOrder::name},
                            {"tokens", SessionOrder::tokens}},
                           "What comes first: used (last used), name or tokens")
      ->option_text("ORDER");
  finish_with_store(app, args);
}

void Parser::add_session_show(CLI::App* parent) {
  CLI::App* app = verb("session show", parent);
  auto args = std::make_shared<SessionShowArgs>();
  const CLI::Option* operands = add_operands(app);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_names(operands->results(), {"NAME"}, sources_));
    args->store = std::move(settled.store);
    args->name = std::move(settled.rest.front());
    return *args;
  });
}

void Parser::add_session_rm(CLI::App* parent) {
  CLI::App* app = verb("session rm", parent);
  auto args = std::make_shared<SessionRmArgs>();
  const CLI::Option* operands = add_operands(app);
  app->add_flag("--expired", args->expired, "All whose time to live is over, in place of names");
  add_change(app, args->change);
  finish(app, [this, args, operands]() -> Command {
    Operands settled =
        value_or_throw(args->expired ? settle_names(operands->results(), {}, sources_)
                                     : settle_any_names(operands->results(), sources_));
    args->store = std::move(settled.store);
    args->names = std::move(settled.rest);
    return *args;
  });
}

/// fork and rename: STORE NAME NEW.
template <class Args>
void Parser::add_session_copy(CLI::App* parent, std::string_view name) {
  CLI::App* app = verb(name, parent);
  auto args = std::make_shared<Args>();
  const CLI::Option* operands = add_operands(app);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_names(operands->results(), {"NAME", "NEW"}, sources_));
    args->store = std::move(settled.store);
    args->name = std::move(settled.rest.front());
    args->new_name = std::move(settled.rest.back());
    return *args;
  });
}

void Parser::add_session_keep(CLI::App* parent) {
  CLI::App* app = verb("session keep", parent);
  auto args = std::make_shared<SessionKeepArgs>();
  const CLI::Option* operands = add_operands(app);
  CLI::Option* most = add_bytes(app, "--keep-max", args->max_bytes,
                                "Most that all kept sessions may hold (half of the capacity)");
  app->add_flag("--off", args->off, "Let its blocks be evicted again")->excludes(most);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_names(operands->results(), {"NAME"}, sources_));
    args->store = std::move(settled.store);
    args->name = std::move(settled.rest.front());
    return *args;
  });
}

}  // namespace esker::cli
