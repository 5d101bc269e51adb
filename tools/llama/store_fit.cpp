#include "llama/store_fit.hpp"

#include <fmt/format.h>

#include "llama/rotation.hpp"

namespace esker::cli::llama {

namespace {

Result<void> refuse(Errc code, const SeqFile& file, std::string_view why) {
  return tl::unexpected(Error{code, 0, fmt::format("{}: {}", file.name(), why)});
}

std::string shown(std::string_view value) {
  return value.empty() ? "nothing" : fmt::format("'{}'", value);
}

}  // namespace

Result<void> check_fit(const SeqFile& file, const Geometry& geometry, const ModelId& stored) {
  const std::string difference = geometry.difference(file.geometry(geometry.block_tokens));
  if (!difference.empty()) {
    return refuse(Errc::incompatible, file,
                  fmt::format("does not fit the store's geometry: {}. Another model or cache type "
                              "needs a store of its own",
                              difference));
  }
  const std::string rotation = rotation_difference(file.layout(), stored);
  return rotation.empty() ? Result<void>{} : refuse(Errc::incompatible, file, rotation);
}

Result<void> check_model(const SeqFile& file, const ModelId& given, const ModelId& stored) {
  const ModelId found = without_rotation(given);
  const ModelId expected = without_rotation(stored);
  if (found == expected) return {};
  if (found.unnamed()) {
    return refuse(
        Errc::incompatible, file,
        "a sequence file does not tell its model, and the store has one: give --model-file "
        "or --model as at create, or --assume-model if you know that it is the same");
  }
  if (expected.unnamed()) {
    return refuse(Errc::incompatible, file,
                  "the store is unnamed, so it cannot be compared with the model given: leave that "
                  "out, or create a store for this model");
  }
  std::string text = "another model than the store's:";
  for (const std::string& key : found.differing_keys(expected)) {
    text += fmt::format(" {} is {}, expected {};", key, shown(found.get(key)),
                        shown(expected.get(key)));
  }
  text.pop_back();
  return refuse(Errc::incompatible, file, text);
}

}  // namespace esker::cli::llama
