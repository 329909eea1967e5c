// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A log of lines that all workers write to, such as alerts. Each worker formats lines into its own buffer. Whole lines
// are written under a lock when the buffer is full, after at most a second, and at the end. A write error (a full disk,
// a reader that has gone) is logged, and returned by `close` once; the data written before it ends with a complete
// line. A file is tried again every second. Owns its descriptor, and must outlive its writers.

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

  /// Whether to append to an existing file, or to truncate it.
  enum class Start : std::uint8_t { append, anew };

  /// `path` "-" is the standard output, like "/dev/stdout" and its other names. Does not open anything yet.
  explicit EventLog(std::string path, Start start = Start::append);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog();

  /// Opens or creates the file, and does not change its content. Fails if another log, of this process or another one,
  /// has the file open (flock). Blocks until a pipe has a reader; fails if `interrupt` is called meanwhile.
  [[nodiscard]] Result<void> open();
  /// Call it before the first line. Truncates the file (Start::anew), or completes its last line if that was truncated,
  /// for example by a crash. A file that was created but never begun is removed again.
  void begin() noexcept;
  /// For a log file that was renamed: continues in the file that the path now names, and creates it if necessary. Pipes
  /// and devices stay open. If it fails, the log continues in the old file. Thread-safe between `begin` and `close`.
  [[nodiscard]] Result<void> reopen();
  /// Ends the run early: from now on, waits at most one second for a reader. Thread-safe.
  void interrupt() noexcept { interrupted_.store(true); }
  /// Call it once, after all writers are destroyed. Returns the errors of the run.
  [[nodiscard]] Errors close();

  /// Whether lines were lost, which `close` will return as an error. Thread-safe.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// The buffer of one worker.
  class Writer {
   public:
    explicit Writer(EventLog& log);
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { flush(); }

    /// Adds a line: `append` (void(std::string&)) appends its text to the string, and the line end is added. If there
    /// is not enough memory, the line is lost, which `close` reports.
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
    /// To be called regularly, also when no lines come.
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
    std::uint64_t lines_ = 0;  // lines in the buffer
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
  [[nodiscard]] bool may_try_again() const noexcept;
  void note_failure() noexcept;
  void note_written() noexcept;
  void lose_line() noexcept;
  [[nodiscard]] bool write_all(std::string_view lines, std::size_t& written) noexcept;
  [[nodiscard]] bool wait_for_room() noexcept;
  [[nodiscard]] Error error(std::string message, int reason) const;
  [[nodiscard]] Error not_reopened(std::string_view reason, bool deleted) const;

  const std::string path_;
  const Start start_;
  int fd_ = -1;
  Kind kind_ = Kind::other;
  bool made_ = false;  // created by `open`
  bool begun_ = false;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> failed_{false};

  std::mutex mutex_;  // guards the members below and, while lines are written, fd_
  std::uint64_t lines_lost_ = 0;
  int reason_ = 0;                // errno; 0: the reader took nothing
  bool is_broken_ = false;        // the last lines could not be written
  Clock::time_point next_try_{};  // while it is
};

}  // namespace penstock::report
