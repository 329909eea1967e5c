// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A log of lines that all workers write to, such as alerts. Each formats into a buffer of its own, and whole lines are
// written under a lock, once there are many, once they have waited for a second, and at the end. What cannot be written
// (a full disk, a reader that has gone) is an error that `close` tells, once; what was written then ends with a line.
// The log owns its descriptor; it outlives its writers.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::report {

class EventLog {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whether lines follow those that the file has, or replace them.
  enum class Start : std::uint8_t { append, anew };

  /// `path` "-" is the standard output, and so are "/dev/stdout" and its other names. Nothing is opened yet.
  explicit EventLog(std::string path, Start start = Start::append);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog();

  /// Opens the file, or makes it, and leaves what is in it. A file that another log holds open, of this process or of
  /// another, is refused (flock). Waits until a pipe has a reader, or for `interrupt`, which makes it fail.
  [[nodiscard]] Result<void> open();
  /// Before the first line: empties the file (Start::anew), or ends its last line where that was cut, by a crash say. A
  /// file that was made and never begun is removed again.
  void begin() noexcept;
  /// Continues in the file that the path names by now, or makes it: for a log that was renamed. Pipes and devices stay
  /// open. After an error the log continues in the old file. Any thread, between `begin` and `close`.
  [[nodiscard]] Result<void> reopen();
  /// The run is to end: nobody is waited for any longer than a second. Any thread.
  void interrupt() noexcept { interrupted_.store(true); }
  /// Once, after the writers have gone. What went wrong, if anything.
  [[nodiscard]] Errors close();

  /// Whether lines are lost: `close` will tell. Any thread.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// One worker's.
  class Writer {
   public:
    explicit Writer(EventLog& log);
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { flush(); }

    /// A line, by what `append` (void(std::string&)) writes behind others; its end is added. Where there is no memory
    /// for it, it is lost, and `close` tells.
    template <typename Append>
    void line(Append&& append) noexcept {
      const std::size_t before = buffer_.size();
      try {
        append(buffer_);
        buffer_.push_back('\n');
      } catch (const std::bad_alloc&) {
        buffer_.resize(before);
        log_->lose_line();
        return;
      }
      end_line();
    }
    /// Now and then, when no lines come.
    void flush_if_due(Clock::time_point now) noexcept {
      if (!buffer_.empty() && now - oldest_ >= kLongestWait) flush();
    }
    void flush() noexcept;

   private:
    void end_line() noexcept;

    static constexpr std::size_t kFlushedBytes = 64 << 10;
    static constexpr std::chrono::seconds kLongestWait{1};

    EventLog* log_;
    std::string buffer_;
    std::uint64_t lines_ = 0;  // in it
    Clock::time_point oldest_;
  };

 private:
  enum class Kind : std::uint8_t { file, other };

  [[nodiscard]] bool is_stdout() const noexcept;
  [[nodiscard]] Result<int> open_path();
  [[nodiscard]] Result<int> open_locked();
  [[nodiscard]] Result<bool> lock(int fd) const;
  [[nodiscard]] bool end_last_line(int fd) const noexcept;
  void write(std::string_view lines, std::uint64_t count) noexcept;
  void lose_line() noexcept;
  [[nodiscard]] bool write_all(std::string_view lines, std::size_t& written) noexcept;
  [[nodiscard]] bool wait_for_room() noexcept;
  [[nodiscard]] Error error(std::string message, int reason) const;
  [[nodiscard]] Error not_reopened(std::string_view reason, bool deleted) const;

  const std::string path_;
  const Start start_;
  int fd_ = -1;
  Kind kind_ = Kind::other;
  bool made_ = false;  // by `open`
  bool begun_ = false;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> failed_{false};

  std::mutex mutex_;  // guards what follows and, while lines are written, fd_
  std::uint64_t lines_lost_ = 0;
  int reason_ = 0;  // errno; 0: the reader took nothing
};

}  // namespace penstock::report
