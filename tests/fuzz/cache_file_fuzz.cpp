/// A cache file: whatever its bytes are, it is refused, or its rows can be read and it can be
/// written on. As a copy of a file whose checksums nobody made right it never shows a wrong row.
///
/// Input: one byte of `Treatment`, then the file.

#include <fcntl.h>
#include <unistd.h>
#include <cstring>
#include <esker/kv_cache.hpp>
#include <memory>
#include <span>

#include "base/hash.hpp"
#include "cache/checked_word.hpp"
#include "cache/place.hpp"
#include "format/cache_file.hpp"
#include "fuzz/fuzz_target.hpp"

using namespace esker;
using namespace esker::detail;
using Rows = std::vector<std::byte>;

namespace {

enum Treatment : std::uint8_t {
  right_sums = 1,  ///< checksums of header, records and tables are made right first
  this_boot = 2,   ///< the live page is made one of this very file, as after a killed writer
};

constexpr std::uint32_t max_tokens = 24;
// Two sequences that the corpus was written with: the second one branched off at `branch`.
constexpr std::uint32_t first_end = 9;
constexpr std::uint32_t branch = 3;
constexpr std::uint32_t second_end = 12;

std::uint64_t accepted_inputs = 0;

const fuzz::Scratch& scratch() {
  static const fuzz::Scratch directory;
  return directory;
}

Geometry shape() {
  Geometry geometry;
  geometry.layers = {{34, 40}, {66, 0}, {18, 57}};
  geometry.dtype = "f16";
  return geometry;
}

Rows row(std::uint32_t layer, Plane plane, std::uint32_t position, std::uint32_t version) {
  Rows bytes(shape().row_bytes(layer, plane));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint32_t mixed = (version * 31 + position) * 131 + layer * 17 +
                                static_cast<std::uint32_t>(plane) * 7 +
                                static_cast<std::uint32_t>(i) * 3;
    bytes[i] = static_cast<std::byte>(1 + mixed % 251);
  }
  return bytes;
}

bool feed(KvCache& cache, std::uint32_t end, std::uint32_t version) {
  for (std::uint32_t at = cache.length(); at < end; ++at) {
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      if (!cache.store(layer, row(layer, Plane::key, at, version),
                       row(layer, Plane::value, at, version))) {
        return false;
      }
    }
    if (!cache.advance()) return false;
  }
  return true;
}

template <class Visit>
void each_plane(Visit&& visit) {
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    visit(layer, Plane::key);
    if (shape().row_bytes(layer, Plane::value) > 0) visit(layer, Plane::value);
  }
}

std::span<const std::byte> rows_of(const KvCache& cache, std::uint32_t layer, Plane plane) {
  return plane == Plane::key ? cache.keys(layer) : cache.values(layer);
}

/// True when all committed rows belong to the one sequence or to the other.
bool of_one_sequence(const KvCache& cache) {
  bool first = cache.length() <= first_end;
  bool second = cache.length() <= second_end;
  each_plane([&](std::uint32_t layer, Plane plane) {
    const std::size_t row_bytes = shape().row_bytes(layer, plane);
    const std::span<const std::byte> rows = rows_of(cache, layer, plane);
    for (std::uint32_t at = 0; at < cache.length(); ++at) {
      const auto equal = [&](std::uint32_t version) {
        const Rows wanted = row(layer, plane, at, version);
        return std::memcmp(rows.data() + at * row_bytes, wanted.data(), row_bytes) == 0;
      };
      first = first && equal(1);
      second = second && equal(at < branch ? 1 : 2);
    }
  });
  return first || second;
}

Rows read_bytes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  Rows bytes(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)));
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
  ::close(fd);
  fuzz::require(got == static_cast<ssize_t>(bytes.size()), "the fuzzer's own files can be read");
  return bytes;
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), 0);
  ::close(fd);
  fuzz::require(put == static_cast<ssize_t>(bytes.size()), "the fuzzer's own files can be written");
}

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void put(std::span<std::byte> bytes, std::uint64_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void fix_sums(std::span<std::byte> file) {
  if (file.size() < cache_sums_offset) return;
  put(file, cache_checksum_offset, xxh3(file.first(cache_checksum_offset)));
  const auto header = decode_cache_header(file.first(cache_header_bytes), file.size(), "fuzz");
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const std::uint64_t at = cache_records_offset + slot * cache_page_bytes;
    auto record = load<CacheSyncRecord>(file, at);
    if (record.sequence == 0) continue;
    if (header && record.length > 0 && record.length <= header->max_tokens) {
      std::vector<std::uint64_t> sums(record.length);
      std::memcpy(sums.data(), file.data() + header->layout.table_offset(slot), 8 * sums.size());
      record.table_checksum = cache_table_checksum(sums, record.sequence);
    }
    record.checksum =
        xxh3(std::as_bytes(std::span(&record, 1)).first(offsetof(CacheSyncRecord, checksum)));
    put(file, at, record);
  }
}

/// Makes a file's live page one that its writer left in this boot.
void fix_live_page(const std::string& path, std::span<std::byte> file) {
  if (file.size() < cache_records_offset) return;
  const auto header = decode_cache_header(file.first(cache_header_bytes), file.size(), "fuzz");
  if (!header) return;
  const File opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  const auto identity = identity_of(opened, *header);
  fuzz::require(identity.has_value(), "a file has an identity");
  auto page = load<CacheLivePage>(file, cache_live_offset);
  page.identity = *identity;
  for (CheckedWord* word : {&page.length, &page.clean, &page.touched}) {
    CheckedWordRef(*word, *identity).store(word->word);
  }
  put(file, cache_live_offset, page);
}

/// The same bytes whenever it runs: what is random or of this moment is replaced.
fuzz::Bytes corpus_input(Rows file, int treatment) {
  auto header = load<CacheFileHeader>(file, 0);
  header.uuid.fill(7);
  header.created_unix_ns = 1'700'000'000'000'000'000;
  put(file, 0, header);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const std::uint64_t at = cache_records_offset + slot * cache_page_bytes;
    auto record = load<CacheSyncRecord>(file, at);
    if (record.sequence == 0) continue;
    record.uuid = header.uuid;
    record.written_unix_ns = header.created_unix_ns;
    put(file, at, record);
  }
  auto page = load<CacheLivePage>(file, cache_live_offset);
  page.identity = 0;
  for (CheckedWord* word : {&page.length, &page.clean, &page.touched}) word->checks = {};
  page.writer_pid = 1;
  put(file, cache_live_offset, page);
  fix_sums(file);
  fuzz::Bytes input(1 + file.size(), static_cast<std::uint8_t>(treatment));
  std::memcpy(input.data() + 1, file.data(), file.size());
  return input;
}

/// What anyone may do with a cache that could be opened.
void read_all(const KvCache& cache) {
  const std::uint32_t length = cache.length();
  fuzz::require(length <= cache.max_tokens(), "a cache is not longer than its room");
  for (std::uint32_t layer = 0; layer < cache.geometry().layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::size_t bytes = std::size_t{length} * cache.geometry().row_bytes(layer, plane);
      const std::span<const std::byte> rows = rows_of(cache, layer, plane);
      fuzz::require(rows.size() >= bytes, "keys and values show all committed rows");
      if (bytes == 0) continue;
      Rows copy(bytes);
      fuzz::require(cache.read(layer, plane, {0, length}, copy).has_value(), "rows can be copied");
      fuzz::require(std::memcmp(copy.data(), rows.data(), bytes) == 0, "a copy is what is there");
    }
  }
}

/// Goes on with the cache, and finds all of it again.
void write_on(KvCache& cache, const std::string& path) {
  if (cache.geometry().row_difference(shape()) != "") return;
  if (cache.length() == cache.max_tokens()) {
    fuzz::require(cache.truncate(cache.length() / 2).has_value(), "a full cache can be cut");
  }
  const std::uint32_t length = cache.length();
  const KvMark mark = cache.mark();
  fuzz::require(feed(cache, length + 1, 5), "a cache with room takes a token");
  fuzz::require(cache.sync().has_value(), "a cache can be synced");
  const auto kept = cache.rollback(mark, 1);
  fuzz::require(kept && *kept == length + 1, "a draft that was right stays");
  const Result<KvCache> reader = KvCache::open(path, {CacheAccess::read, {}, false});
  fuzz::require(reader && reader->length() == length + 1, "a reader sees the new token");
  const Rows wanted = row(2, Plane::value, length, 5);
  const std::size_t at = length * wanted.size();
  fuzz::require(std::memcmp(reader->values(2).data() + at, wanted.data(), wanted.size()) == 0,
                "a reader sees the row that was written");
}

void try_file(const std::string& path, bool proven) {
  std::uint32_t length = 0;
  {
    const Result<KvCache> reader = KvCache::open(path, {CacheAccess::read, {}, false});
    if (!reader) {
      fuzz::require(reader.error().message.find(path) != std::string::npos, "errors name the file");
      fuzz::require(!KvCache::open(path), "what cannot be read cannot be written");
      return;
    }
    length = reader->length();
    read_all(*reader);
    fuzz::require(!proven || of_one_sequence(*reader), "no reader sees a wrong row");
  }
  Result<KvCache> writer = KvCache::open(path);
  if (!writer) return;
  ++accepted_inputs;
  fuzz::require(writer->length() == length, "a writer finds what a reader found");
  read_all(*writer);
  fuzz::require(!proven || of_one_sequence(*writer), "no writer finds a wrong row");
  write_on(*writer, path);
}

}  // namespace

std::vector<fuzz::Bytes> esker::fuzz::corpus() {
  const std::string path = scratch() / "corpus";
  ::unlink(path.c_str());
  std::vector<Bytes> inputs;
  const auto keep = [&] {
    for (const int treatment : {0, +right_sums, +this_boot, right_sums | this_boot}) {
      inputs.push_back(corpus_input(read_bytes(path), treatment));
    }
  };
  const auto model = ModelId::parse("weights=0123abcd\n");
  {
    auto cache = KvCache::create(path, shape(), max_tokens, {CacheAccess::write, *model, false});
    if (!cache) throw std::runtime_error(cache.error().message);
    keep();
    bool good = feed(*cache, 5, 1);
    keep();
    good = good && cache->sync();
    keep();
    good = good && feed(*cache, first_end, 1);
    keep();
    require(good, "the corpus can be written");
  }
  keep();
  {
    auto cache = KvCache::open(path);
    bool good = cache && cache->truncate(branch) && feed(*cache, 7, 2) && cache->sync();
    keep();
    good = good && feed(*cache, second_end, 2) && cache->sync();
    good = good && cache->store(0, row(0, Plane::key, 12, 2), row(0, Plane::value, 12, 2));
    keep();
    require(good, "the corpus can be written on");
  }
  keep();
  return inputs;
}

std::uint64_t esker::fuzz::accepted() { return accepted_inputs; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  Rows file(begin + 1, begin + size);
  const std::string path = scratch() / "input";
  if ((data[0] & right_sums) != 0) fix_sums(file);
  write_bytes(path, file);
  if ((data[0] & this_boot) != 0) {
    fix_live_page(path, file);
    write_bytes(path, file);
  }
  try_file(path, (data[0] & (right_sums | this_boot)) == 0);
  return 0;
}
