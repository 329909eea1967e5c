// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace penstock {

namespace {

struct FileDescriptor {
  int fd;
  explicit FileDescriptor(int descriptor) : fd(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Error system_error(const std::string& path, const char* what) {
  return Error{{path, 0, 0}, what, std::strerror(errno), ""};
}

Result<std::string> read_all(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return failure(system_error(path, "cannot read"));
  std::string text;
  if (S_ISREG(status.st_mode)) text.reserve(static_cast<std::size_t>(status.st_size) + 1);
  constexpr std::size_t kChunk = 1 << 18;
  for (;;) {
    const std::size_t had = text.size();
    text.resize(had + kChunk);
    const ssize_t got = ::read(fd, text.data() + had, kChunk);
    if (got < 0 && errno == EINTR) {
      text.resize(had);
      continue;
    }
    if (got < 0) return failure(system_error(path, "cannot read"));
    text.resize(had + static_cast<std::size_t>(got));
    if (got == 0) return text;
  }
}

/// A pipe or a device (/dev/stdout) cannot be renamed over.
bool is_written_in_place(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

std::string temporary_beside(const std::string& path) { return path + ".part"; }

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return failure(system_error(path, "cannot open"));
  return read_all(file.fd, path);
}

Result<std::string> read_stdin() { return read_all(STDIN_FILENO, "stdin"); }

Result<void> write_text_file(const std::string& path, std::string_view text) {
  const bool in_place = is_written_in_place(path);
  const std::string target = in_place ? path : temporary_beside(path);
  {
    const FileDescriptor file(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.fd < 0) return failure(system_error(path, "cannot write"));
    while (!text.empty()) {
      const ssize_t wrote = ::write(file.fd, text.data(), text.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        Error error = system_error(path, "cannot write");
        if (!in_place) ::unlink(target.c_str());
        return failure(std::move(error));
      }
      text.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }
  if (!in_place && std::rename(target.c_str(), path.c_str()) != 0) {
    Error error = system_error(path, "cannot write");
    ::unlink(target.c_str());
    return failure(std::move(error));
  }
  return {};
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
  const std::size_t slash = path.rfind('/');
  if (slash == path.size() - 1) return cannot(EISDIR);
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return cannot(errno);
  return {};
}

Result<void> check_text_file_writable(const std::string& path) {
  if (is_written_in_place(path)) return check_writable(path);
  auto writable = check_writable(temporary_beside(path));
  if (!writable) writable.error().front().place.file = path;
  return writable;
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

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace penstock
