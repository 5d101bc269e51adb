#include "llama/container.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace esker::cli::llama {

namespace {

Container read_magic(FieldReader& in) {
  const std::uint32_t magic = in.u32("magic");
  if (!in.ok() || magic == sequence_magic) return Container::sequence;
  if (magic == session_magic) return Container::session;
  if (magic == gguf_magic) {
    in.refuse(Errc::incompatible, "is a model (GGUF), not a saved sequence");
  } else {
    in.reject("magic", fmt::format("{:#010x}", magic),
              fmt::format("{:#010x} or {:#010x}: this is no sequence or session file of llama.cpp",
                          sequence_magic, session_magic));
  }
  return Container::sequence;
}

}  // namespace

FileHead read_head(FieldReader& in) {
  const Container container = read_magic(in);
  const std::uint32_t oldest = written_version(container, oldest_version);
  const std::uint32_t newest = written_version(container, newest_version);
  const std::uint32_t version = in.u32("version");
  if (in.ok() && (version < oldest || version > newest)) {
    in.refuse(Errc::incompatible,
              fmt::format("version of the {} at byte 4: found {}, expected {}…{}: save it with a "
                          "llama.cpp that writes one of these",
                          container == Container::session ? "session" : "sequence", version, oldest,
                          newest));
  }
  return {container, version - written_version(container, 0)};
}

std::uint32_t written_version(Container container, std::uint32_t version) noexcept {
  return version + (container == Container::session ? session_version_lead : 0);
}

std::string read_architecture(FieldReader& in) {
  const std::uint32_t bytes = in.u32("arch_len");
  if (in.ok() && (bytes == 0 || bytes > max_architecture_bytes)) {
    in.reject("arch_len", bytes, fmt::format("1…{}", max_architecture_bytes));
  }
  std::string text = in.ok() ? in.text(bytes, "architecture") : std::string();
  if (in.ok() && !is_architecture(text)) {
    in.reject("architecture", "other characters", "letters, digits, dashes, dots, underscores");
  }
  return text;
}

bool is_architecture(std::string_view text) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= max_architecture_bytes &&
         std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace esker::cli::llama
