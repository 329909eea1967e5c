// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/nanoseconds.h"

namespace penstock::ipsec {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = "locks";
constexpr mode_t kOwnerOnly = 0700;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

/// 0 or errno, for a call that returns a negative value on failure.
int result(int returned) noexcept { return returned < 0 ? errno : 0; }

tl::expected<FileIdentity, int> identity_of(int fd) {
  struct statx now {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &now) != 0) return tl::unexpected(errno);
  FileIdentity identity{now.stx_ino, 0};
  if ((now.stx_mask & STATX_BTIME) != 0) {
    identity.born_ns = static_cast<std::uint64_t>(now.stx_btime.tv_sec) * kNsPerSecond + now.stx_btime.tv_nsec;
  }
  return identity;
}

bool is_same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class PosixStateFolder final : public StateFolder {
 public:
  PosixStateFolder(std::string path, Descriptor folder, Descriptor locks)
      : path_(std::move(path)), folder_(std::move(folder)), locks_(std::move(locks)) {}

  const std::string& path() const noexcept override { return path_; }

  // Open file description locks: they also exclude other users within the process, and closing another descriptor of
  // the file does not release them. One byte per SA, because a descriptor for each would be too many.
  int lock(std::uint64_t place) override { return set_lock(F_WRLCK, place); }
  void unlock(std::uint64_t place) noexcept override { static_cast<void>(set_lock(F_UNLCK, place)); }

  bool holds_locks() override {
    struct stat ours {};
    struct stat found {};
    const std::string locks = path_ + "/" + kLockFile;
    return ::fstat(locks_.get(), &ours) == 0 && ::stat(locks.c_str(), &found) == 0 && is_same_file(ours, found);
  }

  tl::expected<FileIdentity, int> make(const std::string& name) override {
    if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) return tl::unexpected(errno);
    const Descriptor file = open(name, O_RDWR | O_CREAT | O_EXCL);
    if (!file.is_open()) return tl::unexpected(errno);
    return identity_of(file.get());
  }

  tl::expected<FileIdentity, int> identify(const std::string& name) override {
    const Descriptor file = open(name, O_RDONLY);
    if (!file.is_open()) return tl::unexpected(errno);
    return identity_of(file.get());
  }

  tl::expected<std::string, int> read(const std::string& name, std::uint64_t offset, std::size_t bytes) override {
    const Descriptor file = open(name, O_RDONLY);
    if (!file.is_open()) return tl::unexpected(errno);
    std::string text(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes) {
      const ssize_t more = ::pread(file.get(), text.data() + got, bytes - got, static_cast<off_t>(offset + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return tl::unexpected(errno);
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    text.resize(got);
    return text;
  }

  int write(const std::string& name, std::uint64_t offset, std::string_view bytes) override {
    const Descriptor file = open(name, O_WRONLY);
    if (!file.is_open()) return errno;
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      offset += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
  }

  int sync(std::span<const std::string> names) override {
    // For many files, syncing the whole file system is faster.
    constexpr std::size_t kFew = 4;
    if (names.size() > kFew) return result(::syncfs(folder_.get()));
    for (const std::string& name : names) {
      const Descriptor file = open(name, O_WRONLY);
      if (!file.is_open()) return errno;
      if (const int error = result(::fdatasync(file.get())); error != 0) return error;
    }
    return 0;
  }

  int rename(const std::string& from, const std::string& to) override {
    return result(::renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()));
  }
  int sync_names() override { return result(::fsync(folder_.get())); }

 private:
  [[nodiscard]] Descriptor open(const std::string& name, int flags) const {
    return Descriptor(::openat(folder_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  }
  [[nodiscard]] int set_lock(short type, std::uint64_t place) noexcept {
    struct flock byte {};
    byte.l_type = type;
    byte.l_whence = SEEK_SET;
    byte.l_start = static_cast<off_t>(place);
    byte.l_len = 1;
    const int error = result(::fcntl(locks_.get(), F_OFD_SETLK, &byte));
    return error == EACCES ? EAGAIN : error;
  }

  const std::string path_;
  const Descriptor folder_;
  const Descriptor locks_;
};

Error system_error(const std::string& path, const char* what, int error) {
  return {{path, 0, 0}, what, std::strerror(error), "a folder that this user can write to, or state_dir: none"};
}

Error no_folder() {
  return {{}, "there is no folder for the sequence numbers of SAs", "no home folder", "state_dir: a folder, or none"};
}

/// Checks that only the owner can change the content.
Errors check_owner(const std::string& path, const struct stat& folder) {
  if (!S_ISDIR(folder.st_mode)) {
    return {{{path, 0, 0}, "state_dir is not a folder", "a file", "a folder, created if missing"}};
  }
  if ((folder.st_mode & (S_IWGRP | S_IWOTH)) != 0 || folder.st_uid != ::geteuid()) {
    return {{{path, 0, 0},
             "other users can write to state_dir, so they could make sequence numbers repeat",
             fmt::format("mode {:04o} of user {}", folder.st_mode & 07777, folder.st_uid),
             fmt::format("mode 0700 of user {}", ::geteuid())}};
  }
  return {};
}

/// Creates the folder and, with `parents`, its missing parents.
int make_folder(const std::string& path, MakeParents parents) {
  if (::mkdir(path.c_str(), kOwnerOnly) == 0 || errno == EEXIST) return 0;
  if (errno != ENOENT || parents == MakeParents::no) return errno;
  const std::string parent = fs::path(path).parent_path();
  if (parent.empty() || parent == path) return ENOENT;
  if (const int error = make_folder(parent, parents); error != 0) return error;
  return result(::mkdir(path.c_str(), kOwnerOnly)) == 0 || errno == EEXIST ? 0 : errno;
}

/// Makes the names of new parent folders durable.
void sync_parents(const std::string& path) {
  for (fs::path at = fs::path(path).parent_path();; at = at.parent_path()) {
    const Descriptor folder(::open(at.empty() ? "." : at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.is_open()) static_cast<void>(::fsync(folder.get()));
    if (at.empty() || at == at.parent_path()) return;
  }
}

}  // namespace

Result<std::unique_ptr<StateFolder>> open_state_folder(const std::string& path, MakeParents parents) {
  if (path.empty()) return failure(no_folder());
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (const int error = make_folder(path, parents); error != 0)
      return failure(system_error(path, "cannot create state_dir", error));
    sync_parents(path);
  }
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0)
    return failure(system_error(path, "cannot open state_dir", errno));
  if (Errors errors = check_owner(path, status); !errors.empty()) return failure(std::move(errors));
  Descriptor locks(::openat(folder.get(), kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!locks.is_open()) return failure(system_error(path, "cannot create the lock file in state_dir", errno));
  return std::make_unique<PosixStateFolder>(path, std::move(folder), std::move(locks));
}

Errors check_state_folder(const std::string& path, MakeParents parents) {
  if (path.empty()) return {no_folder()};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (Errors errors = check_owner(path, status); !errors.empty()) return errors;
    if (::access(path.c_str(), W_OK | X_OK) != 0) return {system_error(path, "cannot write to state_dir", errno)};
    return {};
  }
  if (errno != ENOENT) return {system_error(path, "cannot open state_dir", errno)};
  fs::path parent = fs::path(path).parent_path();
  while (parents == MakeParents::yes && !parent.empty() && ::access(parent.c_str(), F_OK) != 0)
    parent = parent.parent_path();
  if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0)
    return {system_error(path, "cannot create state_dir", errno)};
  return {};
}

std::unique_ptr<StateFolder> view_state_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return nullptr;
  return std::make_unique<PosixStateFolder>(path, std::move(folder), Descriptor());
}

std::string default_state_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    // systemd passes a list if a unit has several folders. Relative paths are ignored (XDG).
    const std::string text = value == nullptr ? "" : value;
    return text.starts_with('/') ? text.substr(0, text.find(':')) : std::string();
  };
  if (const std::string of_unit = variable("STATE_DIRECTORY"); !of_unit.empty()) return of_unit + "/ipsec";
  if (::geteuid() == 0) return "/var/lib/penstock/ipsec";
  if (const std::string xdg = variable("XDG_STATE_HOME"); !xdg.empty()) return xdg + "/penstock/ipsec";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/penstock/ipsec";
  return "";
}

}  // namespace penstock::ipsec
