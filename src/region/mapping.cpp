#include "region/mapping.hpp"

#include <sys/mman.h>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "region/file.hpp"

namespace esker::detail {

namespace {

namespace bip = boost::interprocess;

/// What mapped_region wants to know about a file. Our own descriptor, not bip::file_mapping, which
/// opens by name without O_CLOEXEC and O_NOFOLLOW.
class Mappable {
 public:
  Mappable(int fd, bip::mode_t mode) : fd_(fd), mode_(mode) {}
  [[nodiscard]] bip::mapping_handle_t get_mapping_handle() const {
    return bip::ipcdetail::mapping_handle_from_file_handle(fd_);
  }
  [[nodiscard]] bip::mode_t get_mode() const { return mode_; }

 private:
  int fd_;
  bip::mode_t mode_;
};

}  // namespace

Mapping::Mapping() noexcept = default;
Mapping::~Mapping() = default;

Mapping::Mapping(Mapping&& other) noexcept
    : region_(std::move(other.region_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  region_ = std::move(other.region_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

Result<Mapping> Mapping::map(const File& file, std::uint64_t bytes, Mode mode) {
  const bip::mode_t access = mode == Mode::read ? bip::read_only : bip::read_write;
  Mapping mapping;
  try {
    mapping.region_ = std::make_unique<bip::mapped_region>(Mappable(file.fd(), access), access, 0,
                                                           static_cast<std::size_t>(bytes));
  } catch (const bip::interprocess_exception& reason) {
    return fail_os(file.path(), "map " + size_text(bytes), reason.get_native_error());
  } catch (const std::bad_alloc&) {
    return fail_os(file.path(), "map " + size_text(bytes), ENOMEM);
  }
  mapping.data_ = static_cast<std::byte*>(mapping.region_->get_address());
  mapping.size_ = mapping.region_->get_size();
  if (madvise(mapping.data_, mapping.size_, MADV_DONTFORK) != 0) {
    return fail_os(file.path(), "madvise(MADV_DONTFORK)", errno);
  }
  return mapping;
}

void Mapping::abandon() noexcept {
  static_cast<void>(region_.release());
  data_ = nullptr;
  size_ = 0;
}

ZeroMemory::ZeroMemory(ZeroMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ZeroMemory& ZeroMemory::operator=(ZeroMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

ZeroMemory::~ZeroMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

Result<ZeroMemory> ZeroMemory::allocate(std::size_t bytes) {
  ZeroMemory memory;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return fail_os("memory", "map " + size_text(bytes), errno);
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = bytes;
  return memory;
}

Result<ZeroMemory> ZeroMemory::allocate_wiped_on_fork() {
  auto memory = allocate(4096);
  if (!memory) return memory;
  if (madvise(memory->data_, memory->size_, MADV_WIPEONFORK) != 0) {
    return fail_os("memory", "madvise(MADV_WIPEONFORK)", errno);
  }
  *memory->data_ = std::byte{1};
  return memory;
}

}  // namespace esker::detail
