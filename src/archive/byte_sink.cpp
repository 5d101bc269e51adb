// Invariants
// 1. Bytes arrive in order and whole, or `write` fails and says why.
// 2. Under the final name there is nothing, what was there before, or the whole file on disk.
// 3. A reader that went away is an error (EPIPE) and never a signal, whatever the process does with
//    SIGPIPE: a signal that was waiting before stays, and ours is taken away.
#include "archive/byte_sink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/error.hpp"
#include "base/random.hpp"

namespace esker::detail {

namespace {

/// Holds SIGPIPE back in this thread and takes away the one that a write has raised meanwhile, so
/// that a library's reader can go away without ending the process.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    blocked_ = pthread_sigmask(SIG_BLOCK, &pipe_, &before_) == 0;
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    if (!blocked_) return;
    const int saved = errno;
    if (raised_ && !was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  void raised() noexcept { raised_ = true; }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
  bool blocked_ = false;
  bool raised_ = false;
};

ssize_t write_quietly(int fd, std::span<const std::byte> bytes, bool socket) noexcept {
  if (socket) return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  NoSigpipe quiet;
  const ssize_t put = ::write(fd, bytes.data(), bytes.size());
  if (put < 0 && errno == EPIPE) quiet.raised();
  return put;
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, bool socket,
                       const std::string& label) {
  while (!bytes.empty()) {
    const ssize_t put = write_quietly(fd, bytes, socket);
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, -1);
      continue;
    }
    return fail_os(label, "write", errno);
  }
  return {};
}

class DescriptorSink final : public ByteSink {
 public:
  DescriptorSink(int fd, std::string label) : fd_(fd), label_(std::move(label)) {
    struct stat status {};
    socket_ = fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
  }
  Result<void> write(std::span<const std::byte> bytes) override {
    return write_all(fd_, bytes, socket_, label_);
  }
  const std::string& label() const noexcept override { return label_; }

 private:
  int fd_;
  bool socket_ = false;
  std::string label_;
};

Result<void> write_file(const File& file, std::span<const std::byte> bytes,
                        std::uint64_t& position) {
  auto done = file.write_at(position, bytes);
  if (done) position += bytes.size();
  return done;
}

/// Any file of the user's.
class PathSink final : public FileSink {
 public:
  PathSink(std::string path, bool replace) : path_(std::move(path)), replace_(replace) {
    const std::size_t slash = path_.rfind('/');
    directory_path_ = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  }
  ~PathSink() override {
    if (!temporary_.empty()) unlinkat(directory_.fd(), temporary_.c_str(), 0);
  }

  Result<void> open() {
    if (name_.empty() || name_ == "." || name_ == "..") {
      return fail(Errc::invalid, "'" + path_ + "' is no name for a file");
    }
    const int fd =
        raise_descriptor(::open(directory_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return fail_os(directory_path_, "open", errno);
    directory_ = File(fd, directory_path_);
    struct stat status {};
    if (fstatat(directory_.fd(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      if (!replace_) return exists();
      if (!S_ISREG(status.st_mode)) {
        return fail_field(Errc::invalid, path_, "file type", "not a regular file",
                          "a regular file or nothing", "give another name");
      }
    }
    return open_temporary();
  }

  Result<void> write(std::span<const std::byte> bytes) override {
    return write_file(file_, bytes, position_);
  }
  const std::string& label() const noexcept override { return path_; }

  Result<void> commit() override {
    if (auto done = file_.sync(); !done) return done;
    auto done = temporary_.empty() ? name_anonymous() : rename_temporary();
    if (!done) return done;
    if (fsync(directory_.fd()) != 0) return fail_os(directory_path_, "fsync", errno);
    return {};
  }

 private:
  [[nodiscard]] Failure exists() const {
    return fail(Errc::invalid, path_ +
                                   ": there is such a file already; remove it, give another "
                                   "name, or say that it is to be replaced");
  }

  std::string temporary_name() const {
    return "." + name_.substr(0, 200) + ".tmp-" + hex(random_u64());
  }

  Result<void> open_temporary() {
    // Without a name there is nothing to clean up after a kill, where the file system can do it.
    int fd = raise_descriptor(openat(directory_.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd < 0) {
      temporary_ = temporary_name();
      fd = raise_descriptor(openat(directory_.fd(), temporary_.c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (fd < 0) {
        temporary_.clear();
        return fail_os(path_, "create a file beside it", errno);
      }
    }
    file_ = File(fd, path_);
    return {};
  }

  Result<void> name_anonymous() {
    const std::string self = "/proc/self/fd/" + std::to_string(file_.fd());
    const std::string name = replace_ ? temporary_name() : name_;
    if (linkat(AT_FDCWD, self.c_str(), directory_.fd(), name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      if (errno == EEXIST && !replace_) return exists();
      return fail_os(path_, "give the finished file its name", errno);
    }
    if (!replace_) return {};
    temporary_ = name;
    return rename_temporary();
  }

  Result<void> rename_temporary() {
    const int directory = directory_.fd();
    if (!replace_) {
      // A link, unlike a rename, never replaces; what it leaves is removed by the destructor.
      if (linkat(directory, temporary_.c_str(), directory, name_.c_str(), 0) == 0) return {};
      const int reason = errno;
      if (reason == EEXIST) return exists();
      if (reason != EPERM && reason != EOPNOTSUPP) {
        return fail_os(path_, "give the finished file its name", reason);
      }
      if (renameat2(directory, temporary_.c_str(), directory, name_.c_str(), RENAME_NOREPLACE) !=
          0) {
        if (errno == EEXIST) return exists();
        return fail_os(path_, "give the finished file its name", errno);
      }
    } else if (renameat(directory, temporary_.c_str(), directory, name_.c_str()) != 0) {
      return fail_os(path_, "rename a finished temporary file to it", errno);
    }
    temporary_.clear();
    return {};
  }

  std::string path_;
  bool replace_;
  std::string directory_path_;
  std::string name_;
  std::string temporary_;  ///< "": the file has no name yet, or its final one
  File directory_;
  File file_;
  std::uint64_t position_ = 0;
};

/// A file within a store.
class StoreFileSink final : public FileSink {
 public:
  StoreFileSink(const Directory& directory, const std::string& name, File file)
      : directory_(directory),
        name_(name),
        path_(directory.path() + "/" + name),
        file_(std::move(file)) {}
  ~StoreFileSink() override {
    if (!file_.valid()) return;
    const std::string temporary = file_.path().substr(file_.path().rfind('/') + 1);
    unlinkat(directory_.fd(), temporary.c_str(), 0);
  }
  Result<void> write(std::span<const std::byte> bytes) override {
    return write_file(file_, bytes, position_);
  }
  const std::string& label() const noexcept override { return path_; }
  Result<void> commit() override {
    if (auto done = file_.sync(); !done) return done;
    auto published = directory_.publish(file_, name_, false);
    file_.reset();
    if (!published) return failure_of(published);
    if (!*published) return fail(Errc::invalid, path_ + ": there is such a file already");
    return directory_.sync();
  }

 private:
  const Directory& directory_;
  std::string name_;
  std::string path_;
  File file_;
  std::uint64_t position_ = 0;
};

}  // namespace

std::unique_ptr<ByteSink> sink_to(int fd, std::string label) {
  return std::make_unique<DescriptorSink>(fd, std::move(label));
}

Result<std::unique_ptr<FileSink>> FileSink::create(const std::string& path, bool replace) {
  auto sink = std::make_unique<PathSink>(path, replace);
  if (auto opened = sink->open(); !opened) return failure_of(opened);
  return sink;
}

Result<std::unique_ptr<FileSink>> FileSink::create_in(const Directory& directory,
                                                      const std::string& name, Sharing sharing) {
  auto file = directory.create_temporary(sharing);
  if (!file) return failure_of(file);
  return std::make_unique<StoreFileSink>(directory, name, std::move(*file));
}

}  // namespace esker::detail
