// Invariants
// 1. The name of a tenant is never in a portable file, nor anything that is cheap to test it with.
// 2. The parameters stand in doc/snapshot_format.md and never change: files hold the digests.
#include "archive/namespaces.hpp"

#include <argon2.h>

#include "base/error.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t passes = 1;
constexpr std::uint32_t memory_kib = 16'384;
constexpr std::uint32_t lanes = 1;

}  // namespace

bool is_public_namespace(std::string_view name) noexcept {
  return name.empty() || name.starts_with("lora=") || name.starts_with("model=");
}

Result<std::array<std::uint8_t, 16>> namespace_digest(std::string_view name,
                                                      const std::array<std::uint8_t, 16>& salt) {
  std::array<std::uint8_t, 16> digest{};
  const int rc = argon2id_hash_raw(passes, memory_kib, lanes, name.data(), name.size(), salt.data(),
                                   salt.size(), digest.data(), digest.size());
  if (rc == ARGON2_OK) return digest;
  const Errc code = rc == ARGON2_MEMORY_ALLOCATION_ERROR ? Errc::no_memory : Errc::io;
  return fail(code, std::string("digest of a namespace: ") + argon2_error_message(rc));
}

Result<ArchiveNamespace> archived_namespace(std::string_view name, SnapshotUse use,
                                            const std::array<std::uint8_t, 16>& salt) {
  if (use == SnapshotUse::cold || is_public_namespace(name)) {
    return ArchiveNamespace{true, std::string(name)};
  }
  auto digest = namespace_digest(name, salt);
  if (!digest) return failure_of(digest);
  return ArchiveNamespace{false, std::string(digest->begin(), digest->end())};
}

}  // namespace esker::detail
