#include <fmt/format.h>

#include <algorithm>
#include <esker/snapshot.hpp>
#include <string_view>

#include "args.hpp"
#include "snapshot_operand.hpp"
#include "snapshot_output.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

struct Inputs {
  std::vector<llama::UniqueFd> files;
  std::vector<Snapshot> snapshots;
};

/// The error for an operand that is no snapshot but was meant as something.
Error explained(const std::string& operand, Error error) {
  if (!means_snapshot(operand) && inspect(place_of(operand).path)) {
    error.message = fmt::format(
        "{} is a store, and only snapshots can be rewritten: `esker export "
        "{} -o {}.esnap` makes one",
        operand, operand, operand);
  }
  return error;
}

Result<Inputs> open_inputs(const std::vector<std::string>& operands) {
  Inputs inputs;
  for (const std::string& operand : operands) {
    auto open = open_snapshot(operand);
    if (!open) return tl::make_unexpected(explained(operand, std::move(open).error()));
    if (!open->snapshot.seekable()) {
      return tl::make_unexpected(
          Error{Errc::invalid, 0,
                fmt::format("{}: a stream cannot be searched: write it to a file first",
                            input_name(operand))});
    }
    inputs.files.push_back(std::move(open->input));
    inputs.snapshots.push_back(std::move(open->snapshot));
  }
  return inputs;
}

/// Names of sessions that are in none of the inputs, with the one that may have been meant.
Result<void> check_sessions(const std::vector<std::string>& wanted, const Inputs& inputs) {
  if (wanted.empty()) return {};
  std::vector<std::string> known;
  for (const Snapshot& snapshot : inputs.snapshots) {
    const auto contents = snapshot.contents();
    if (!contents) return tl::make_unexpected(contents.error());
    for (const SnapshotSession& session : contents->sessions) known.push_back(session.name);
  }
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string text = fmt::format("there is no session \"{}\"", name);
    if (const std::string_view meant = nearest(name, known); !meant.empty()) {
      text += fmt::format("; did you mean \"{}\"?", meant);
    } else {
      text += "; `esker info FILE` lists those that are there";
    }
    return tl::make_unexpected(Error{Errc::missing, 0, std::move(text)});
  }
  return {};
}

SnapshotTarget target_of(const RewriteArgs& args, const std::string& command) {
  // With several inputs the messages name the one that they are about.
  const std::string subject = args.inputs.size() == 1 ? input_name(args.inputs.front()) : "";
  SnapshotTarget target{subject, args.output, args.force, true, "", ""};
  const std::string_view did = command == "merge"   ? "merged"
                               : command == "split" ? "split off"
                                                    : "repacked";
  target.did = did;
  target.doing = command == "merge" ? "merging" : command == "split" ? "splitting" : "repacking";
  return target;
}

}  // namespace

int run(const RewriteArgs& args, Output& out) {
  const SnapshotTarget target = target_of(args, out.command());
  auto inputs = open_inputs(args.inputs);
  if (!inputs) return out.fail(target.subject, inputs.error());
  if (const auto known = check_sessions(args.sessions, *inputs); !known) {
    return out.fail(target.subject, known.error());
  }
  RewriteOptions options;
  options.sessions = args.sessions;
  options.compression = args.codec.compression;
  options.level = args.codec.level;
  options.lossy = args.codec.lossy;
  options.threads = thread_count(args.codec.threads);
  const auto write = [&](int fd, const std::string& label, const Progress& progress) {
    options.progress = progress;
    return rewrite_snapshots(inputs->snapshots, fd, label, options);
  };
  const List names(args.inputs.begin(), args.inputs.end());
  return write_and_tell(target, write, {{"inputs", names}}, out);
}

}  // namespace esker::cli
