// Invariants
// 1. Table s holds, for its leading clean_[s] tokens, the sums of the rows that are committed now.
// 2. The record and the table of the slot `durable_` are never written to: a power cut at any
//    moment finds them as the last finished sync left them.
// 3. A recovered length is the longest prefix whose rows match one record's sums: rows of one
//    sequence, as they stood together at one moment.
#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "cache/file.hpp"

namespace esker::detail {

std::uint64_t* CacheFile::table(int slot) const noexcept {
  return reinterpret_cast<std::uint64_t*>(
      data() + header().layout.table_offset(static_cast<std::uint32_t>(slot)));
}

std::byte* CacheFile::record_at(int slot) const noexcept {
  return data() + cache_records_offset + static_cast<std::uint64_t>(slot) * cache_page_bytes;
}

std::uint64_t CacheFile::sum_of(std::uint32_t token) const noexcept {
  StreamingHash hash;
  for (const CachePlane& plane : header().layout.planes()) {
    hash.update({data() + plane.offset + std::uint64_t{token} * plane.row_bytes, plane.row_bytes});
  }
  return hash.digest();
}

void CacheFile::read_records() noexcept {
  for (int slot = 0; slot < 2; ++slot) {
    CacheSyncRecord record{};
    std::memcpy(&record, record_at(slot), sizeof record);
    const bool good = is_cache_record(record, header());
    records_[static_cast<std::size_t>(slot)] = good ? record : CacheSyncRecord{};
  }
}

std::uint32_t CacheFile::proved_by(int slot) const noexcept {
  const CacheSyncRecord& record = records_[static_cast<std::size_t>(slot)];
  const std::uint64_t* sums = table(slot);
  if (record.sequence == 0 ||
      cache_table_checksum({sums, record.length}, record.sequence) != record.table_checksum) {
    return 0;
  }
  std::uint32_t token = 0;
  while (token < record.length && sum_of(token) == sums[token]) ++token;
  return token;
}

CacheFile::Recovered CacheFile::recover() noexcept {
  const int newer = records_[1].sequence > records_[0].sequence ? 1 : 0;
  const int older = 1 - newer;
  const CacheSyncRecord& newest = records_[static_cast<std::size_t>(newer)];
  if (newest.sequence == 0) return {};
  const std::uint64_t* sums = table(newer);
  const bool whole =
      cache_table_checksum({sums, newest.length}, newest.sequence) == newest.table_checksum;
  const std::uint32_t proved = whole ? proved_by(newer) : 0;
  // All of the newer one is there: it counts, though the older one may know tokens beyond, which
  // were dropped in between.
  if (whole && proved == newest.length) return {proved, newer};
  const std::uint32_t proved_before = proved_by(older);
  if (whole && proved >= proved_before) return {proved, newer};
  if (records_[static_cast<std::size_t>(older)].sequence == 0) return {0, -1};
  return {proved_before, older};
}

void CacheFile::store_clean() noexcept {
  word(live().clean).store(std::uint64_t{clean_[1]} << 32 | clean_[0]);
}

void CacheFile::forget_sums(std::uint32_t tokens) noexcept {
  if (clean_[0] <= tokens && clean_[1] <= tokens) return;
  clean_ = {std::min(clean_[0], tokens), std::min(clean_[1], tokens)};
  // Twice, so that no check is left that would hold for the higher word of before.
  store_clean();
  store_clean();
}

void CacheFile::fill_table(int slot, std::uint32_t length) noexcept {
  std::uint32_t& clean = clean_[static_cast<std::size_t>(slot)];
  const std::uint32_t other = std::min(length, clean_[static_cast<std::size_t>(1 - slot)]);
  std::uint64_t* sums = table(slot);
  if (other > clean) {
    std::copy(table(1 - slot) + clean, table(1 - slot) + other, sums + clean);
    clean = other;
  }
  for (std::uint32_t token = clean; token < length; ++token) sums[token] = sum_of(token);
  clean = std::max(clean, length);
  store_clean();
}

void CacheFile::put_record(int slot, std::uint32_t length, CacheRecordKind kind) noexcept {
  const std::uint64_t sequence = std::max(records_[0].sequence, records_[1].sequence) + 1;
  const CacheSyncRecord record = make_cache_record(header(), sequence, kind, {table(slot), length});
  std::memcpy(record_at(slot), &record, sizeof record);
  records_[static_cast<std::size_t>(slot)] = record;
}

bool CacheFile::covered_by(int slot, std::uint32_t length) const noexcept {
  if (slot < 0) return false;
  const auto at = static_cast<std::size_t>(slot);
  return records_[at].sequence != 0 && records_[at].length == length && clean_[at] >= length;
}

int CacheFile::next_slot() const noexcept {
  if (durable_ >= 0) return 1 - durable_;
  return records_[0].sequence > records_[1].sequence ? 1 : 0;
}

void CacheFile::close_record(std::uint32_t length) noexcept {
  const int newest = records_[1].sequence > records_[0].sequence ? 1 : 0;
  if (covered_by(newest, length)) return;
  const int slot = next_slot();
  fill_table(slot, length);
  put_record(slot, length, CacheRecordKind::close);
}

Result<void> CacheFile::flush(std::uint64_t offset, std::uint64_t bytes) const {
  int rc = 0;
  do {
    rc = msync(data() + offset, bytes, MS_SYNC);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return fail_os(path(), "write to disk", errno);
  return {};
}

Result<void> CacheFile::sync(std::uint32_t length) {
  if (sync_failed_) {
    return fail(Errc::io, path() +
                              ": an earlier sync failed, so the kernel may have dropped rows that "
                              "it could not write; snapshot what is needed into a new cache");
  }
  const int newest = records_[1].sequence > records_[0].sequence ? 1 : 0;
  if (synced_ && newest == durable_ && covered_by(durable_, length)) return {};
  const int slot = next_slot();
  fill_table(slot, length);
  // Through the mapping: it needs no descriptor, which others might have closed.
  sync_failed_ = true;
  if (auto done = flush(0, header().layout.bytes()); !done) return done;
  put_record(slot, length, CacheRecordKind::sync);
  const std::uint64_t at =
      cache_records_offset + static_cast<std::uint64_t>(slot) * cache_page_bytes;
  if (auto done = flush(at, cache_page_bytes); !done) return done;
  sync_failed_ = false;
  durable_ = slot;
  synced_ = true;
  live().durable_sequence = records_[static_cast<std::size_t>(slot)].sequence;
  return {};
}

}  // namespace esker::detail
