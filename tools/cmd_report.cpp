#include <fmt/format.h>

#include <span>

#include "args.hpp"
#include "llama/byte_sink.hpp"
#include "llama/output_file.hpp"
#include "report_data.hpp"
#include "report_page.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

Result<void> write_page(llama::OutputFile& file, std::string_view page) {
  llama::ByteSink sink(file.fd(), file.name());
  auto done = sink.put(std::as_bytes(std::span(page)));
  if (done) done = sink.flush();
  return done ? file.commit() : done;
}

Result<std::vector<HitSample>> watch(const StorePlace& place, std::uint64_t watch_ms, Output& out) {
  if (watch_ms == 0) return std::vector<HitSample>{};
  const auto tell = [&out](std::uint64_t left_ms) {
    out.progress_line(fmt::format("watching, {} s left", (left_ms + 999) / 1000));
  };
  auto samples = watch_hits(place, watch_ms, tell);
  out.progress_line("");
  return samples;
}

}  // namespace

int run(const ReportArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  if (auto info = inspect_place(place); !info) return out.fail(place.label, info.error());
  // Before the watching: a file in the way is known at once.
  auto file = llama::OutputFile::create(args.output, args.force);
  if (!file) return out.fail("", file.error());
  auto hits = watch(place, args.watch_ms, out);
  if (!hits) return out.fail(place.label, hits.error());
  auto data = gather_report(place, args.tokens);
  if (!data) return out.fail(place.label, data.error());
  data->hits = std::move(*hits);
  const std::string page = report_page(*data);
  if (auto done = write_page(*file, page); !done) return out.fail("", done.error());
  if (args.output == "-") return code(Exit::ok);
  out.line(fmt::format("wrote {} ({}): {} in {}, {}", file->name(), format_bytes(page.size()),
                       format_items(data->path_count, "path"), out.size(data->stats.store_bytes),
                       format_items(data->sessions.size(), "session")));
  out.json({{"store", place.label},
            {"file", file->name()},
            {"bytes", page.size()},
            {"paths", data->path_count},
            {"sessions", data->sessions.size()}});
  return code(Exit::ok);
}

}  // namespace esker::cli
