#include "model_operand.hpp"

#include <fmt/format.h>

#include "llama/model_digest.hpp"

namespace esker::cli {

namespace {

Result<void> add_entry(ModelId& model, const std::string& entry) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string::npos || equals == 0) {
    return tl::make_unexpected(Error{
        Errc::invalid, 0,
        fmt::format("--model {}: expected key=value, for instance name=SmolLM2-135M", entry)});
  }
  const std::string key = entry.substr(0, equals);
  if (model.entries().contains(key)) {
    return tl::make_unexpected(
        Error{Errc::invalid, 0, fmt::format("--model: the key {} is given twice", key)});
  }
  return model.set(key, entry.substr(equals + 1));
}

}  // namespace

Result<ModelId> model_id(const ModelArgs& args, const Progress& progress) {
  ModelId model;
  if (!args.file.empty()) {
    auto digest = llama::model_digest(args.file, progress);
    if (!digest) return tl::make_unexpected(std::move(digest).error());
    if (auto set = model.set("weights", digest->text); !set) {
      return tl::make_unexpected(std::move(set).error());
    }
    if (auto set = model.set("weights_bytes", std::to_string(digest->bytes)); !set) {
      return tl::make_unexpected(std::move(set).error());
    }
  }
  for (const std::string& entry : args.entries) {
    if (auto added = add_entry(model, entry); !added) {
      return tl::make_unexpected(std::move(added).error());
    }
  }
  return model;
}

}  // namespace esker::cli
