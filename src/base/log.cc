// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/units.h"

namespace penstock {

namespace {

constexpr auto kNames = std::to_array<std::pair<LogLevel, std::string_view>>({
    {LogLevel::error, "error"},
    {LogLevel::warning, "warning"},
    {LogLevel::info, "info"},
    {LogLevel::debug, "debug"},
});

/// A pipe takes a whole line of this length, with its beginning, if it takes anything (PIPE_BUF).
constexpr std::size_t kLongestText = 3800;

/// Whether the standard stream leads to the journal: systemd.exec(5), $JOURNAL_STREAM.
bool is_journal(int fd) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  return stream != nullptr && ::fstat(fd, &status) == 0 && fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

/// In one line that is not too long.
std::string shortened(std::string_view text) {
  std::string line = printable(text.substr(0, kLongestText));
  if (text.size() <= kLongestText && line.size() <= kLongestText) return line;
  std::size_t end = std::min(line.size(), kLongestText);
  while (end > 0 && end < line.size() && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80) --end;
  return line.substr(0, end) + "…";
}

Result<int> open_file(const std::string& path) {
  // Opening a pipe without a reader must not block.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  struct stat status {};
  if (fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  const Error error = fd < 0 ? system_error(path, "cannot write the log", std::strerror(errno))
                             : Error{{path, 0, 0}, "cannot write the log", "not a file", "a file"};
  if (fd >= 0) ::close(fd);
  return failure(error);
}

}  // namespace

std::string_view name(LogLevel level) noexcept {
  return std::ranges::find(kNames, level, &decltype(kNames)::value_type::first)->second;
}

std::optional<LogLevel> log_level(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNames, name, &decltype(kNames)::value_type::second);
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

Log::Log(int fd, Style style, LogLimit limit) noexcept : limit_(limit), fd_(fd), style_(style) {}

Log::~Log() {
  try {
    for (auto& kind : kinds_) end_interval(kind.second);
  } catch (const std::exception&) {  // no memory
  }
  if (!path_.empty()) ::close(fd_);
}

Log& Log::of_process() noexcept {
  static Log log(STDERR_FILENO);
  return log;
}

void Log::keep_records() noexcept {
  const std::lock_guard lock(mutex_);
  style_ = is_journal(fd_) ? Style::journal : Style::timed;
  on_terminal_ = ::isatty(fd_) == 1;
}

Result<void> Log::continue_in(const std::string& path) {
  const auto opened = open_file(path);
  if (!opened) return failure(opened.error());
  const std::lock_guard lock(mutex_);
  if (!path_.empty()) ::close(fd_);
  fd_ = *opened;
  path_ = path;
  style_ = Style::timed;
  on_terminal_ = line_is_cut_ = false;
  return {};
}

Result<void> Log::reopen() {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    path = path_;
  }
  if (path.empty()) return {};
  if (auto opened = continue_in(path); !opened) {
    for (Error& error : opened.error()) error.message += "; it continues in the old file";
    return opened;
  }
  return {};
}

void Log::fall_back_to(int fd) noexcept {
  const std::lock_guard lock(mutex_);
  fallback_ = fd;
}

void Log::write(LogLevel level, std::string_view text) noexcept {
  if (!writes(level)) return;
  try {
    const std::lock_guard lock(mutex_);
    put(level, text);
  } catch (const std::exception&) {  // no memory: nothing can be said about that
  }
}

void Log::write_limited(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    Kind& kind = kinds_[format.data()];
    if (Clock::now() - kind.since >= limit_.interval) end_interval(kind);
    if (kind.written < limit_.messages) {
      ++kind.written;
      return put(level, fmt::vformat(format, args));
    }
    if (kind.left_out++ > 0) return;
    kind.level = level;
    kind.example = fmt::vformat(format, args);
  } catch (const std::exception&) {  // no memory
  }
}

void Log::report_left_out() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (auto& kind : kinds_) {
      if (kind.second.left_out > 0 && now - kind.second.since >= limit_.interval) end_interval(kind.second);
    }
  } catch (const std::exception&) {  // no memory
  }
}

void Log::end_interval(Kind& kind) {
  if (kind.left_out > 0)
    put(kind.level, fmt::format("{} left out, such as: {}", format_count(kind.left_out, "message"), kind.example));
  kind = Kind{};
  kind.since = Clock::now();
}

/// Call it with the lock, like those below.
void Log::put(LogLevel level, std::string_view text) {
  if (try_to_put(level, text)) return;
  if (fallback_ >= 0 && !path_.empty()) {
    ::close(fd_);
    path_.clear();
    fd_ = fallback_;
    line_is_cut_ = false;
    if (try_to_put(level, text)) return;
  }
  ++lost_;
}

bool Log::try_to_put(LogLevel level, std::string_view text) {
  if (lost_ > 0 && send(record(LogLevel::warning, format_count(lost_, "message") + " lost: the log took nothing")))
    lost_ = 0;
  return lost_ == 0 && send(record(level, text));
}

std::string Log::record(LogLevel level, std::string_view text) const {
  if (style_ == Style::plain) return (level == LogLevel::warning ? "warning: " : "") + printable(text) + "\n";
  const char* const end_of_cut = line_is_cut_ ? "\n" : "";
  const std::string line = shortened(text);
  if (style_ == Style::journal) return fmt::format("{}<{}>{}\n", end_of_cut, static_cast<int>(level), line);
  using std::chrono::milliseconds, std::chrono::seconds;
  const auto now = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  const auto second = std::chrono::floor<seconds>(now);
  return fmt::format("{}{}{:%Y-%m-%dT%H:%M:%S}.{:03}Z {}: {}\n", end_of_cut,
                     on_terminal_ ? "\r\033[K" : "",  // over a line that shows progress
                     fmt::gmtime(std::chrono::system_clock::to_time_t(second)), (now - second).count(), name(level),
                     line);
}

/// False: the line is lost, at least in part.
bool Log::send(std::string_view line) noexcept {
  while (!line.empty()) {
    pollfd room{fd_, POLLOUT, 0};
    if (style_ != Style::plain && ::poll(&room, 1, 0) != 1) return false;
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    line_is_cut_ = line[static_cast<std::size_t>(written) - 1] != '\n';
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace penstock
