// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/decompressor.h"
#include "base/output_file.h"
#include "base/units.h"

namespace penstock {

namespace {

constinit std::atomic<std::uint64_t> most_file_bytes{256U << 20};

struct FileDescriptor {
  int fd;
  explicit FileDescriptor(int descriptor) : fd(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
  /// Some file systems report a full disk only when the file is closed.
  bool close() noexcept { return ::close(std::exchange(fd, -1)) == 0; }
};

/// With the reason from errno.
Error system_error(const std::string& path, std::string_view what) {
  return penstock::system_error(path, what, std::strerror(errno));
}

/// The time limit for the reader of a named pipe to open it, and then to read something.
constexpr std::chrono::seconds kReaderPatience{2};
constexpr int kForever = -1;

/// Whether a failed read or write should be retried. Waits until a descriptor that another process has made
/// non-blocking is ready. False, with errno ETIMEDOUT, if that takes longer than `patience_ms`.
bool is_passing(int fd, short event, int patience_ms = kForever) noexcept {
  if (errno == EINTR) return true;
  if (errno != EAGAIN) return false;
  pollfd ready{fd, event, 0};
  if (::poll(&ready, 1, patience_ms) != 0) return true;
  errno = ETIMEDOUT;
  return false;
}

/// False, with errno set, if not everything can be written.
bool write_all(int fd, std::string_view text, int patience_ms = kForever) noexcept {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote >= 0) {
      text.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (!is_passing(fd, POLLOUT, patience_ms)) {
      return false;
    }
  }
  return true;
}

/// Reads what is available and appends it to `text`; blocks if nothing is. False at the end of the input.
Result<bool> read_more(int fd, const std::string& path, std::string& text) {
  constexpr std::size_t kChunk = 1 << 18;
  const std::size_t had = text.size();
  text.resize(had + kChunk);
  ssize_t got = 0;
  do {
    got = ::read(fd, text.data() + had, kChunk);
  } while (got < 0 && is_passing(fd, POLLIN));
  text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return failure(system_error(path, "cannot read"));
  return got > 0;
}

std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The content of a compressed file. A few bytes may expand to any size, so the file limit applies to the output too.
Result<std::string> unpacked(std::string_view packed, Decompressor& decompressor, const std::string& path) {
  constexpr std::size_t kChunk = 1 << 18;
  auto rest = bytes_of(packed);
  const std::uint64_t limit = file_limit();
  std::string text;
  for (;;) {
    const std::size_t had = text.size();
    text.resize(had + kChunk);
    const std::ptrdiff_t wrote =
        decompressor.decompress(rest, {reinterpret_cast<std::uint8_t*>(text.data()) + had, kChunk});
    text.resize(had + static_cast<std::size_t>(std::max<std::ptrdiff_t>(wrote, 0)));
    if (wrote < 0) return failure(penstock::system_error(path, "cannot decompress", decompressor.reason()));
    if (text.size() > limit) return failure(file_too_large(path));
    if (wrote > 0) continue;
    if (decompressor.inside_stream())
      return failure(penstock::system_error(path, "cannot decompress", "the compressed data is truncated"));
    return text;
  }
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

Result<std::string> read_bytes(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return failure(system_error(path, "cannot read"));
  const std::uint64_t limit = file_limit();
  std::string text;
  if (S_ISREG(status.st_mode)) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size > limit) return failure(file_too_large(path));
    text.reserve(size + 1);
  }
  for (;;) {
    const auto more = read_more(fd, path, text);
    if (!more) return failure(more.error());
    if (text.size() > limit) return failure(file_too_large(path));
    if (!*more) break;
  }
  const auto decompressor = Decompressor::for_input(bytes_of(text));
  return decompressor == nullptr ? std::move(text) : unpacked(text, *decompressor, path);
}

/// Removes the byte order mark that some editors write; it is not part of the text.
Result<std::string> read_all(int fd, const std::string& path) {
  auto text = read_bytes(fd, path);
  if (text && text->starts_with(kByteOrderMark)) text->erase(0, kByteOrderMark.size());
  return text;
}

Error line_too_long(const std::string& name, std::uint32_t line) {
  return {{name, line, 0},
          "line too long",
          "more than " + format_size(kMostLineBytes),
          "at most " + format_size(kMostLineBytes)};
}

/// Pipes and devices (/dev/stdout) cannot be replaced by a rename.
bool is_written_in_place(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

/// A FIFO that the user made, whose reader may never come. Not the program's own standard output, which may have a path
/// too.
bool is_named_pipe(const std::string& path) {
  struct stat status {};
  return !path.starts_with("/dev/") && !path.starts_with("/proc/") && ::stat(path.c_str(), &status) == 0 &&
         S_ISFIFO(status.st_mode);
}

/// Writes to a FIFO. Waits at most kReaderPatience for a reader to open it, and for the reader to take something.
Result<void> write_named_pipe(const std::string& path, std::string_view text) {
  const auto too_late = [&](const char* found, const char* expected) {
    return failure(
        Error{{path, 0, 0}, "cannot write", fmt::format("{} for {} s", found, kReaderPatience.count()), expected});
  };
  const auto deadline = std::chrono::steady_clock::now() + kReaderPatience;
  const auto open = [&] { return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC); };
  FileDescriptor file(open());
  while (file.fd < 0 && (errno == ENXIO || errno == EINTR)) {
    if (std::chrono::steady_clock::now() >= deadline) return too_late("a pipe without a reader", "a reader, or a file");
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    file.fd = open();
  }
  if (file.fd < 0) return failure(system_error(path, "cannot write"));
  constexpr int kPatienceMs = std::chrono::duration_cast<std::chrono::milliseconds>(kReaderPatience).count();
  if (write_all(file.fd, text, kPatienceMs) && file.close()) return {};
  if (errno == ETIMEDOUT)
    return too_late("a pipe whose reader does not read", "a reader that keeps reading, or a file");
  return failure(system_error(path, "cannot write"));
}

/// The folder of `path` with its trailing slash; "" is the current folder.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// As short as possible, because a file name may have only 255 bytes. Unique for each process and attempt.
std::string temporary_beside(const std::string& path, unsigned attempt) {
  return folder_of(path) + fmt::format(".penstock-{}-{}.part", ::getpid(), attempt);
}

/// Creates a new file in the folder of `path`, and stores its path in `name`. With `as_usual`, it gets the mode of
/// `path`, or that of a new file if `path` does not exist. Returns -1 with errno on failure.
int make_beside(const std::string& path, std::string& name, FileAccess access) {
  int fd = -1;
  // A crashed process with the same process id may have left its file.
  for (unsigned attempt = 0; fd < 0; ++attempt) {
    name = temporary_beside(path, attempt);
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, access == FileAccess::owner ? 0600 : 0666);
    if (fd < 0 && errno != EEXIST) return -1;
  }
  struct stat status {};
  if (access == FileAccess::as_usual && ::stat(path.c_str(), &status) == 0) {
    static_cast<void>(::fchmod(fd, status.st_mode & 0777));
  }
  return fd;
}

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

}  // namespace

std::uint64_t file_limit() noexcept { return most_file_bytes.load(std::memory_order_relaxed); }
void set_file_limit(std::uint64_t bytes) noexcept { most_file_bytes.store(bytes, std::memory_order_relaxed); }

Error file_too_large(const std::string& path) {
  const std::string limit = format_size(file_limit());
  return {{path, 0, 0}, "file too large", "more than " + limit, "at most " + limit + " (--file-limit raises it)"};
}

Result<std::string> read_text_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return failure(system_error(path, "cannot open"));
  return read_all(file.fd, path);
}

Result<std::string> read_stdin() { return read_all(STDIN_FILENO, "stdin"); }

Result<std::string> read_input(const std::string& path) { return path == "-" ? read_stdin() : read_text_file(path); }

Result<std::string> read_lines(const std::string& path) {
  auto text = read_input(path);
  if (!text) return text;
  if (auto lines = check_lines(*text, input_name(path)); !lines) return failure(std::move(lines).error());
  return text;
}

Result<void> check_lines(std::string_view text, const std::string& name) {
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    if (line.text.size() > kMostLineBytes) return failure(line_too_long(name, line.number));
  }
  return {};
}

std::string input_name(const std::string& path) { return path == "-" ? "stdin" : path; }

std::string resolved_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path target = path;
  if (fs::exists(target, error)) {
    const fs::path canonical = fs::canonical(target, error);
    return error ? path : canonical.string();  // a pipe in /proc/self/fd has no path
  }
  constexpr int kMostLinks = 40;  // the kernel's limit
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(target, error)); ++links) {
    const fs::path next = fs::read_symlink(target, error);
    if (error) return path;
    target = target.parent_path() / next;  // just `next` if it is absolute
  }
  const fs::path folder = fs::canonical(target.has_parent_path() ? target.parent_path() : fs::path("."), error);
  return error || !target.has_filename() ? path : (folder / target.filename()).string();
}

Result<void> write_text_file(const std::string& path, std::string_view text, FileAccess access) {
  if (is_named_pipe(path)) return write_named_pipe(path, text);
  const bool in_place = is_written_in_place(path);
  const std::string target = resolved_path(path);
  std::string name;
  FileDescriptor file(in_place ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC) : make_beside(target, name, access));
  if (file.fd < 0) return failure(system_error(path, "cannot write"));
  if (write_all(file.fd, text) && file.close() && (in_place || std::rename(name.c_str(), target.c_str()) == 0)) {
    return {};
  }
  Error error = system_error(path, "cannot write");
  if (!in_place) ::unlink(name.c_str());
  return failure(std::move(error));
}

Result<void> write_stdout(std::string_view text) {
  if (std::fflush(stdout) == 0 && write_all(STDOUT_FILENO, text)) return {};
  return failure(system_error("stdout", "cannot write"));
}

Result<void> check_writable(const std::string& path) {
  const auto cannot = [&](int reason) {
    errno = reason;
    return failure(system_error(path, "cannot write"));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot(EISDIR);
    if (::access(path.c_str(), W_OK) != 0) return cannot(errno);
    return {};
  }
  if (errno != ENOENT) return cannot(errno);
  const std::string resolved = resolved_path(path);
  if (resolved.ends_with('/')) return cannot(EISDIR);
  const std::string folder = folder_of(resolved);
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) return cannot(errno);
  return {};
}

Result<void> check_text_file_writable(const std::string& path) {
  if (auto named = check_compression(path); !named) return named;
  if (is_written_in_place(path)) return check_writable(path);
  if (path.empty() || path.ends_with('/')) return check_writable(path);
  auto writable = check_writable(temporary_beside(resolved_path(path), 0));
  if (!writable) writable.error().front().place.file = path;
  return writable;
}

Result<std::string_view> StdinLines::next() {
  first_line_ +=
      static_cast<std::uint32_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(given_), '\n'));
  text_.erase(0, given_);
  given_ = 0;
  while (!ended_ && given_ == 0) {
    const std::size_t had = text_.size();
    const auto more = read_more(STDIN_FILENO, "stdin", text_);
    if (!more) return failure(more.error());
    ended_ = !*more;
    const std::size_t line_end = text_.rfind('\n');
    if (line_end != std::string::npos && line_end >= had) given_ = line_end + 1;
    if (given_ == 0 && text_.size() > kMostLineBytes) return failure(line_too_long("stdin", first_line_));
  }
  if (ended_) given_ = text_.size();
  if (!std::exchange(begun_, true) && text_.starts_with(kByteOrderMark)) {
    text_.erase(0, kByteOrderMark.size());
    given_ -= kByteOrderMark.size();
  }
  return std::string_view(text_).substr(0, given_);
}

bool LineReader::next(Line& line) noexcept {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  std::string_view text = rest_.substr(0, end);
  rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  line = {++number_, text};
  return true;
}

void split_words(std::string_view line, std::vector<Word>& words) {
  words.clear();
  std::size_t at = 0;
  while (at < line.size()) {
    if (is_space(line[at])) {
      ++at;
      continue;
    }
    const std::size_t start = at;
    while (at < line.size() && !is_space(line[at])) ++at;
    words.push_back({line.substr(start, at - start), static_cast<std::uint32_t>(start + 1)});
  }
}

std::vector<Word> split_words(std::string_view line) {
  std::vector<Word> words;
  split_words(line, words);
  return words;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace penstock
