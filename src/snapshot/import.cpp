// Invariants
// 1. What was stored is whole and stays, however the import ends; another one goes on from there.
// 2. Sessions are written after the blocks that they name.
#include <esker/snapshot.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "snapshot/access.hpp"
#include "snapshot/fit.hpp"
#include "snapshot/import_sessions.hpp"
#include "snapshot/import_span.hpp"
#include "snapshot/output.hpp"
#include "snapshot/source.hpp"

namespace esker {

namespace detail {

namespace {

class Importer {
 public:
  Importer(Core& core, ArchiveReader& reader, const ImportOptions& options)
      : core_(core), reader_(reader), options_(options) {}

  Result<ImportReport> run() {
    auto names = name_namespaces(reader_.head(), reader_.namespaces(), options_.namespaces);
    if (!names) return failure_of(names);
    names_ = *names;
    for (const auto& name : names_) report_.unnamed_namespaces += name ? 0 : 1;
    SpanStorer spans(core_, std::move(*names), report_);
    SessionStorer sessions(core_, options_, report_);
    auto done = take_all(spans, sessions);
    // Also after an error: sessions that were written are to be kept.
    auto marked = sessions.finish();
    if (!done) return failure_of(done);
    if (!marked) return failure_of(marked);
    return report_;
  }

 private:
  Result<void> take_all(SpanStorer& spans, SessionStorer& sessions) {
    for (bool more = true; more;) {
      auto part = reader_.next();
      if (!part) return failure_of(part);
      if (auto done = take(*part, spans, sessions); !done) return done;
      more = !std::holds_alternative<ArchiveEnd>(*part);
      if (options_.progress) options_.progress(reader_.position(), reader_.file_bytes());
    }
    return {};
  }

  Result<void> take(const ArchivePart& part, SpanStorer& spans, SessionStorer& sessions) {
    if (const auto* span = std::get_if<ArchiveSpan>(&part)) {
      return spans.store(reader_, *span, sensible_threads(options_.threads));
    }
    const auto* session = std::get_if<SessionWithStates>(&part);
    if (session == nullptr || !options_.sessions) return {};
    const auto& name = names_[session->session.name_space];
    if (name) return sessions.store(*session, *name);
    ++report_.unreachable_sessions;
    return {};
  }

  Core& core_;
  ArchiveReader& reader_;
  const ImportOptions& options_;
  std::vector<std::optional<std::string>> names_;
  ImportReport report_;
};

}  // namespace

}  // namespace detail

using detail::failure_of;

Result<ImportReport> import_snapshot(Store& store, Snapshot& snapshot,
                                     const ImportOptions& options) {
  return detail::guarded([&]() -> Result<ImportReport> {
    auto core = SnapshotAccess::core(store, true);
    if (!core) return failure_of(core);
    auto source = SnapshotAccess::source(snapshot);
    if (!source) return failure_of(source);
    const detail::ArchiveReader& opened = (*source)->reader();
    const detail::Superblock& target = (*core)->superblock;
    auto fits = detail::check_fits(opened.head(), opened.label(), target.geometry, target.model,
                                   options.assume_same);
    if (!fits) return failure_of(fits);
    auto reader = (*source)->from_the_start();
    if (!reader) return failure_of(reader);
    return detail::Importer(**core, **reader, options).run();
  });
}

}  // namespace esker
