// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The log of the program: what happens while it works, with its level. A message is one line. Messages of a kind, which
// is their format, are limited; the log says how many it has left out. Writing a record never waits: what stderr or the
// disk does not take is lost, and counted. Any thread may log. No key of an SA may.

#pragma once

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace penstock {

/// The numbers are those of syslog(3) and sd-daemon(3).
enum class LogLevel : std::uint8_t { error = 3, warning = 4, info = 6, debug = 7 };
/// "error", "warning", "info", "debug".
[[nodiscard]] std::string_view name(LogLevel level) noexcept;
[[nodiscard]] std::optional<LogLevel> log_level(std::string_view name) noexcept;

/// Of the messages of a kind.
struct LogLimit {
  std::uint32_t messages = 50;
  std::chrono::milliseconds interval{10'000};
};

class Log {
 public:
  enum class Style : std::uint8_t {
    plain,    // for the user of a command: "warning: text", and errors without their level. Waits for its reader
    timed,    // "2026-01-02T03:04:05.678Z warning: text"
    journal,  // "<4>text": the journal keeps level and time itself
  };

  /// `fd` stays the caller's.
  explicit Log(int fd, Style style = Style::plain, LogLimit limit = {}) noexcept;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  /// That of the process, at stderr; plain until `keep_records`.
  [[nodiscard]] static Log& of_process() noexcept;
  /// From now on, the log is for those who read it later: for the journal if that is what `fd` leads to.
  void keep_records() noexcept;
  /// Continues in this file, at its end, with times.
  [[nodiscard]] Result<void> continue_in(const std::string& path);
  /// For a file that was renamed: continues in the one that its path names now. If that fails, in the old one.
  [[nodiscard]] Result<void> reopen();

  /// What the file does not take from now on goes to `fd`, which stays the caller's: for the last messages of a
  /// process, which are of no use in the next one's log.
  void fall_back_to(int fd) noexcept;

  /// Messages up to it are written.
  [[nodiscard]] LogLevel level() const noexcept { return level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }
  [[nodiscard]] bool writes(LogLevel level) const noexcept { return level <= this->level(); }

  /// Without a limit, for a caller that has one.
  void write(LogLevel level, std::string_view text) noexcept;
  /// `format` is a literal.
  void write_limited(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept;
  /// Says how many messages were left out, of kinds whose interval is over. To be called regularly.
  void report_left_out() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Kind {
    Clock::time_point since;
    std::uint32_t written = 0;
    std::uint64_t left_out = 0;
    LogLevel level = LogLevel::debug;
    std::string example;  // the first of those left out
  };

  void put(LogLevel level, std::string_view text);
  [[nodiscard]] bool try_to_put(LogLevel level, std::string_view text);
  void end_interval(Kind& kind);
  [[nodiscard]] std::string record(LogLevel level, std::string_view text) const;
  [[nodiscard]] bool send(std::string_view line) noexcept;

  std::atomic<LogLevel> level_{LogLevel::info};
  const LogLimit limit_;
  std::mutex mutex_;  // guards the following members
  int fd_;
  std::string path_;   // "": `fd_` is not a file of its own
  int fallback_ = -1;  // if it takes nothing; -1: none
  Style style_;
  bool on_terminal_ = false;
  bool line_is_cut_ = false;           // the last line that was written has no end
  std::uint64_t lost_ = 0;             // since the last line that was written
  std::map<const char*, Kind> kinds_;  // by the literal
};

template <typename... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  Log& log = Log::of_process();
  if (log.writes(level)) log.write_limited(level, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log_at(LogLevel::error, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log_at(LogLevel::warning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log_at(LogLevel::info, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log_at(LogLevel::debug, format, std::forward<Args>(args)...);
}

}  // namespace penstock
