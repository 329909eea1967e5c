// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/event_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/units.h"

namespace penstock::report {

namespace {

constexpr auto kLookInterval = std::chrono::milliseconds{20};
constexpr auto kPatience = std::chrono::seconds{1};  // wait for a reader once interrupted

bool is_regular(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

EventLog::EventLog(std::string path, Start start) : path_(std::move(path)), start_(start) {}

EventLog::~EventLog() {
  if (fd_ >= 0) static_cast<void>(close());
}

bool EventLog::is_stdout() const noexcept {
  return path_ == "-" || path_ == "/dev/stdout" || path_ == "/dev/fd/1" || path_ == "/proc/self/fd/1";
}

Error EventLog::error(std::string message, int reason) const {
  message += ": ";
  message += reason == 0 ? "the reader no longer reads" : std::strerror(reason);
  return {{is_stdout() ? "stdout" : path_, 0, 0}, std::move(message), "", ""};
}

Result<void> EventLog::open() {
  if (is_stdout()) {
    std::fflush(stdout);
    fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd_ < 0) return failure(error("cannot write", errno));
    kind_ = is_regular(fd_) ? Kind::file : Kind::other;
    return {};
  }
  const auto opened = open_locked();
  if (!opened) return tl::unexpected(opened.error());
  fd_ = *opened;
  kind_ = is_regular(fd_) ? Kind::file : Kind::other;
  return {};
}

/// Opens the path; a regular file is locked.
Result<int> EventLog::open_locked() {
  for (;;) {
    auto opened = open_path();
    if (!opened || !is_regular(*opened)) return opened;
    const auto locked = lock(*opened);
    if (locked && *locked) return opened;
    ::close(*opened);
    made_ = false;
    if (!locked) return tl::unexpected(locked.error());
  }
}

/// Opens a pipe in non-blocking mode, so that waiting for its reader can be interrupted.
Result<int> EventLog::open_path() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  for (;;) {
    int fd = ::open(path_.c_str(), kFlags | O_EXCL, 0666);
    made_ = fd >= 0;
    if (fd < 0 && errno == EEXIST) fd = ::open(path_.c_str(), kFlags, 0666);
    if (fd >= 0) return fd;
    if (errno == EINTR) continue;
    if (errno != ENXIO) return failure(error("cannot write", errno));
    if (interrupted_.load()) return failure(system_error(path_, "cannot write", "the pipe has no reader"));
    std::this_thread::sleep_for(kLookInterval);
  }
}

/// False if the log that held the lock has removed the file meanwhile, so that it must be opened again. True if the
/// file system does not support locks.
Result<bool> EventLog::lock(int fd) const {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return failure(system_error(path_, "cannot write", "another log or another run is writing to it"));
  }
  struct stat status {};
  return ::fstat(fd, &status) != 0 || status.st_nlink > 0;
}

void EventLog::begin() noexcept {
  begun_ = true;
  if (kind_ != Kind::file || is_stdout()) return;
  if (start_ == Start::anew ? ::ftruncate(fd_, 0) == 0 : end_last_line(fd_)) return;
  const std::lock_guard lock(mutex_);
  reason_ = errno;
  failed_.store(true);
}

/// Completes a truncated last line, so that the next line is separate. Leaves a file unchanged if it cannot be read.
bool EventLog::end_last_line(int fd) const noexcept {
  const int reader = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (reader < 0) return true;
  char last = '\n';
  const ::off_t size = ::lseek(reader, 0, SEEK_END);
  const bool cut = size > 0 && ::pread(reader, &last, 1, size - 1) == 1 && last != '\n';
  ::close(reader);
  return !cut || ::write(fd, "\n", 1) == 1;
}

/// `deleted`: the old file has no name any more, so it disappears when it is closed.
Error EventLog::not_reopened(std::string_view reason, bool deleted) const {
  std::string message = "cannot reopen the log: " + std::string(reason) + "; it continues in the old file";
  if (deleted) message += ", which was deleted: these lines will be lost";
  return {{path_, 0, 0},
          std::move(message),
          "",
          "a file that can be written, or a folder where it can be created; then send SIGHUP again"};
}

Result<void> EventLog::reopen() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0 || kind_ != Kind::file || is_stdout()) return {};
  struct stat named {};
  struct stat held {};
  const bool is_held = ::fstat(fd_, &held) == 0;
  if (is_held && ::stat(path_.c_str(), &named) == 0) {
    if (named.st_dev == held.st_dev && named.st_ino == held.st_ino) return {};
    if (!S_ISREG(named.st_mode)) return failure(not_reopened("not a file", is_held && held.st_nlink == 0));
  }
  const auto opened = open_locked();
  if (!opened) {
    std::string_view reason = opened.error().front().message;
    constexpr std::string_view kWhat = "cannot write: ";
    if (reason.starts_with(kWhat)) reason.remove_prefix(kWhat.size());
    return failure(not_reopened(reason, is_held && held.st_nlink == 0));
  }
  static_cast<void>(end_last_line(*opened));
  ::close(std::exchange(fd_, *opened));
  next_try_ = {};
  return {};
}

Errors EventLog::close() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return {};
  if (made_ && !begun_) ::unlink(path_.c_str());  // while it is still locked
  const bool closed = ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR;
  const int close_error = closed ? 0 : errno;
  if (failed_.load()) {
    std::string message = "cannot write";
    if (lines_lost_ > 0)
      message += ", and " + format_count(lines_lost_) + (lines_lost_ == 1 ? " record is" : " records are") + " lost";
    return {error(std::move(message), reason_)};
  }
  if (lines_lost_ > 0) {
    return {{{path_, 0, 0}, "no memory for " + format_count(lines_lost_, "record"), "", ""}};
  }
  if (!closed) return {error("cannot write", close_error)};
  return {};
}

void EventLog::write(std::string_view lines, std::uint64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t written = 0;
  if (!is_broken_ || may_try_again()) {
    if (write_all(lines, written)) {
      note_written();
      return;
    }
    note_failure();
    // Remove the incomplete part of a line that did not fit.
    const std::string_view there = lines.substr(0, written);
    const std::size_t whole = there.rfind('\n') + 1;  // no line end: npos + 1 is 0
    struct stat status {};
    if (kind_ == Kind::file && !is_stdout() && ::fstat(fd_, &status) == 0) {
      const auto cut = static_cast<::off_t>(written - whole);
      static_cast<void>(::ftruncate(fd_, status.st_size - std::min(cut, status.st_size)) == 0);
    }
    count -=
        static_cast<std::uint64_t>(std::count(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(whole), '\n'));
  }
  lines_lost_ += count;
}

/// A reader that has gone does not come back; a disk may have room again.
bool EventLog::may_try_again() const noexcept { return kind_ == Kind::file && Clock::now() >= next_try_; }

void EventLog::note_failure() noexcept {
  constexpr std::chrono::seconds kBetweenTries{1};
  next_try_ = Clock::now() + kBetweenTries;
  failed_.store(true);
  if (!std::exchange(is_broken_, true)) {
    log_error("{}; records are lost{}", to_string(error("cannot write", reason_)),
              kind_ == Kind::file ? " until it can be written again" : "");
  }
}

void EventLog::note_written() noexcept {
  if (std::exchange(is_broken_, false)) log_warning("{}: can be written again; {} lost so far", path_, lines_lost_);
}

void EventLog::lose_line() noexcept {
  const std::lock_guard lock(mutex_);
  ++lines_lost_;
}

bool EventLog::write_all(std::string_view lines, std::size_t& written) noexcept {
  while (written < lines.size()) {
    std::string_view part = lines.substr(written);
    if (kind_ != Kind::file) {
      // A pipe takes at least this much without blocking if poll(2) reports room.
      if (!wait_for_room()) return false;
      part = part.substr(0, PIPE_BUF);
    }
    const ssize_t wrote = ::write(fd_, part.data(), part.size());
    if (wrote > 0) {
      written += static_cast<std::size_t>(wrote);
    } else if (wrote < 0 && errno != EINTR && errno != EAGAIN) {
      reason_ = errno;
      return false;
    }
  }
  return true;
}

bool EventLog::wait_for_room() noexcept {
  Clock::time_point give_up{};
  for (;;) {
    pollfd room{fd_, POLLOUT, 0};
    const int ready = ::poll(&room, 1, static_cast<int>(kLookInterval.count()));
    if (ready > 0) return true;  // also on an error, which write(2) will return
    if (ready < 0 && errno != EINTR) {
      reason_ = errno;
      return false;
    }
    if (!interrupted_.load(std::memory_order_relaxed)) continue;
    const Clock::time_point now = Clock::now();
    if (give_up == Clock::time_point{}) give_up = now + kPatience;
    if (now >= give_up) {
      reason_ = 0;
      return false;
    }
  }
}

EventLog::Writer::Writer(EventLog& log) : log_(&log) { buffer_.reserve(2 * kFlushedBytes); }

void EventLog::Writer::end_line() noexcept {
  if (lines_++ == 0) oldest_ = Clock::now();
  if (buffer_.size() >= kFlushedBytes) flush();
}

void EventLog::Writer::flush() noexcept {
  if (lines_ == 0) return;
  log_->write(buffer_, lines_);
  buffer_.clear();
  lines_ = 0;
}

}  // namespace penstock::report
