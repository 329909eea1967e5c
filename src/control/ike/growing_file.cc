// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/ike/growing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/wipe.h"

namespace penstock::control {

namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::uint64_t kBlock = 4096;

tl::unexpected<Errors> failed(const std::string& path, std::string_view what) {
  return failure(Error{{path, 0, 0}, std::string(what), std::system_category().message(errno), ""});
}

}  // namespace

GrowingFile::GrowingFile(std::string path, std::size_t most_line_bytes)
    : path_(std::move(path)), most_line_bytes_(most_line_bytes), buffer_(most_line_bytes + kReadBytes) {}

GrowingFile::~GrowingFile() { wipe(buffer_.data(), buffer_.size()); }

Result<GrowingFile> GrowingFile::open(std::string path, std::size_t most_line_bytes) {
  GrowingFile file(std::move(path), most_line_bytes);
  file.changes_ = port::FileDescriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // The folder shows the file's changes, and another file of its name.
  const std::string folder = std::filesystem::absolute(file.path_).parent_path();
  if (!file.changes_ ||
      ::inotify_add_watch(file.changes_.get(), folder.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
    return failed(folder, "cannot follow the changes in this folder");
  if (auto opened = file.reopen(); !opened) return failure(std::move(opened).error());
  return file;
}

Result<void> GrowingFile::reopen() {
  file_ = port::FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0) return failed(path_, "cannot open the log");
  if (!S_ISREG(status.st_mode)) return failure(Error{{path_, 0, 0}, "not a regular file", "", "a log file of charon"});
  struct stat folder {};
  const std::string folder_path = std::filesystem::absolute(path_).parent_path();
  if (::stat(folder_path.c_str(), &folder) != 0) return failed(folder_path, "cannot look at the log's folder");
  const mode_t others = S_IRWXG | S_IRWXO;
  if ((status.st_mode & others) != 0 && (folder.st_mode & others) != 0) {
    return failure(
        Error{{path_, 0, 0},
              "others can read this log, which has keys",
              fmt::format("mode {:04o} in a folder of mode {:04o}", status.st_mode & 07777U, folder.st_mode & 07777U),
              "a file of mode 0600, or a folder of mode 0700"});
  }
  inode_ = status.st_ino;
  filled_ = 0;
  // What has been erased begins the file as a hole, and may have cut a line.
  const off_t data = ::lseek(file_.get(), 0, SEEK_DATA);
  read_to_ = line_at_ = erased_to_ = data > 0 ? static_cast<std::uint64_t>(data) : 0;
  skips_ = read_to_ > 0;
  return {};
}

Result<void> GrowingFile::read(const std::function<void()>& restarted,
                               const std::function<void(std::string_view, std::uint64_t)>& use) {
  for (;;) {
    const ssize_t count =
        ::pread(file_.get(), buffer_.data() + filled_, buffer_.size() - filled_, static_cast<off_t>(read_to_));
    if (count < 0 && errno != EINTR) return failed(path_, "cannot read the log");
    if (count > 0) {
      read_to_ += static_cast<std::uint64_t>(count);
      filled_ += static_cast<std::size_t>(count);
      use_lines(use);
      continue;
    }
    if (count < 0) continue;
    struct stat here {};
    struct stat there {};
    const bool exists = ::stat(path_.c_str(), &there) == 0;
    if (exists && there.st_ino == inode_ && ::fstat(file_.get(), &here) == 0 &&
        static_cast<std::uint64_t>(here.st_size) >= read_to_)
      return {};
    if (!exists) return {};  // between two files of its name
    if (auto opened = reopen(); !opened) return opened;
    restarted();
  }
}

void GrowingFile::use_lines(const std::function<void(std::string_view, std::uint64_t)>& use) {
  std::size_t begin = 0;
  while (const void* const end = std::memchr(buffer_.data() + begin, '\n', filled_ - begin)) {
    const std::string_view line(buffer_.data() + begin,
                                static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data()) - begin);
    if (!std::exchange(skips_, false) && line.size() <= most_line_bytes_) use(line, line_at_);
    line_at_ += line.size() + 1;
    begin += line.size() + 1;
  }
  if (filled_ - begin > most_line_bytes_) {
    skips_ = true;
    line_at_ += filled_ - begin;
    begin = filled_;
  }
  std::memmove(buffer_.data(), buffer_.data() + begin, filled_ - begin);
  filled_ -= begin;
  wipe(buffer_.data() + filled_, buffer_.size() - filled_);
}

void GrowingFile::wait(int most_ms) {
  pollfd changed{changes_.get(), POLLIN, 0};
  if (::poll(&changed, 1, most_ms) <= 0) return;
  std::array<char, 4096> events;
  while (::read(changes_.get(), events.data(), events.size()) > 0) {
  }
}

void GrowingFile::erase_before(std::uint64_t offset) noexcept {
  const std::uint64_t end = std::min(offset, line_at_) / kBlock * kBlock;
  if (end <= erased_to_) return;
  erased_to_ = end;
  static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(end)));
}

}  // namespace penstock::control
