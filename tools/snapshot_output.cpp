#include "snapshot_output.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "llama/output_file.hpp"
#include "progress.hpp"
#include "snapshot_text.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

std::string summary(const SnapshotTarget& target, const WrittenSnapshot& written, Output& out) {
  const ExportReport& report = written.report;
  const std::string sessions =
      report.sessions == 0 ? "" : fmt::format(", {}", format_items(report.sessions, "session"));
  return fmt::format("{} {}{}, {}, {} -> {} in {:.1f} s", target.did,
                     format_items(report.paths, "path"), sessions,
                     format_items(report.tokens, "token"), out.size(report.raw_bytes),
                     out.size(report.file_bytes), written.seconds);
}

void show_left_out(const SnapshotTarget& target, const ExportReport& report, Output& out) {
  if (report.gone_blocks != 0) {
    out.note(target.subject, fmt::format("{} were evicted before they were reached: left out",
                                         format_items(report.gone_blocks, "block")));
  }
  if (report.damaged_blocks != 0) {
    out.note(target.subject, fmt::format("{} were damaged, or hang below damaged ones: left out",
                                         format_items(report.damaged_blocks, "block")));
  }
  if (report.damaged_sessions != 0) {
    out.note(target.subject, fmt::format("{} were damaged: left out",
                                         format_items(report.damaged_sessions, "session")));
  }
}

}  // namespace

bool is_nothing(const SnapshotTarget& target, const ExportReport& report) noexcept {
  return !target.may_be_empty && report.blocks == 0 && report.sessions == 0;
}

Result<WrittenSnapshot> write_snapshot(const SnapshotTarget& target, const WriteSnapshot& write,
                                       Output& out) {
  auto output = llama::OutputFile::create(target.output, target.force);
  if (!output) return tl::make_unexpected(std::move(output).error());
  ProgressLine progress(out, target.doing);
  const auto report = write(output->fd(), output->name(), progress.callback());
  progress.done();
  if (!report) return tl::make_unexpected(report.error());
  if (!is_nothing(target, *report)) {
    if (const auto named = output->commit(); !named) return tl::make_unexpected(named.error());
  }
  return WrittenSnapshot{*report, progress.seconds()};
}

void show_written(const SnapshotTarget& target, const WrittenSnapshot& written, Output& out) {
  const auto say = [&](const std::string& text) {
    if (target.output == "-") {
      out.note(target.subject, text);
    } else {
      out.line(text);
    }
  };
  say(summary(target, written, out));
  for (const std::string& line : lossy_lines(written.report.lossy_error)) say(line);
  show_left_out(target, written.report, out);
}

Object written_value(const SnapshotTarget& target, const WrittenSnapshot& written) {
  const ExportReport& report = written.report;
  return {{"output", target.output},
          {"paths", report.paths},
          {"blocks", report.blocks},
          {"tokens", report.tokens},
          {"sessions", report.sessions},
          {"raw_bytes", report.raw_bytes},
          {"file_bytes", report.file_bytes},
          {"gone_blocks", report.gone_blocks},
          {"damaged_blocks", report.damaged_blocks},
          {"damaged_sessions", report.damaged_sessions},
          {"lossy_error", lossy_value(report.lossy_error)},
          {"seconds", written.seconds}};
}

Exit exit_of(const ExportReport& report) noexcept {
  return report.damaged_blocks + report.damaged_sessions == 0 ? Exit::ok : Exit::no;
}

int fail_to_write(const SnapshotTarget& target, const Error& error, Output& out) {
  if (target.output == "-" && error.os_error == EPIPE) return code(Exit::pipe_closed);
  return out.fail(target.subject, error);
}

int write_and_tell(const SnapshotTarget& target, const WriteSnapshot& write, Object fields,
                   Output& out) {
  if (target.output == "-" && out.is_json()) {
    return out.fail(target.subject,
                    "--json and an output to - both want standard output: write to a file");
  }
  const auto written = write_snapshot(target, write, out);
  if (!written) return fail_to_write(target, written.error(), out);
  if (is_nothing(target, written->report)) {
    out.note(target.subject, "nothing of what was asked for is stored");
  } else {
    show_written(target, *written, out);
  }
  if (target.output != "-") {
    for (auto& field : written_value(target, *written)) fields.push_back(std::move(field));
    out.json(std::move(fields));
  }
  return code(is_nothing(target, written->report) ? Exit::no : exit_of(written->report));
}

void warn_of_cold(std::string_view label, const Store& store, Output& out) {
  const std::uint64_t cold = store.stats().cold_blocks;
  if (cold == 0) return;
  out.note(label, fmt::format("{} in cold files: what is only there is left out; bring it back "
                              "with `esker thaw` before",
                              format_items(cold, "block")));
}

}  // namespace esker::cli
