// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/ascii.h"
#include "base/units.h"

namespace penstock {

namespace {

constexpr auto kCompressions = std::to_array<std::string_view>(
    {".gz", ".zst", ".bz2", ".xz", ".lz4", ".lzma", ".lzo", ".br", ".z", ".zip", ".7z"});

}  // namespace

Result<void> check_compression(std::string_view path, std::span<const std::string_view> written) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos) return {};
  const std::string_view suffix = path.substr(dot);
  const auto is_suffix = [&](std::string_view known) { return equals_ignoring_case(known, suffix); };
  if (std::ranges::find(written, suffix) != written.end() || std::ranges::none_of(kCompressions, is_suffix)) return {};
  return failure(
      {{std::string(path), 0, 0},
       written.empty() ? "this output is not written compressed" : "this compression is not supported",
       in_quotes(suffix),
       written.empty() ? "a name without it" : fmt::format("{}, or a name without it", fmt::join(written, ", "))});
}

bool is_being_written(const std::string& path) {
  struct stat status {};
  // Do not open a pipe: its writer would see a reader.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

Result<void> check_replaceable(const std::string& path, std::string_view kind,
                               bool (*is_kind)(std::string_view beginning)) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::array<char, 4096> bytes;
  const ssize_t count = fd < 0 ? -1 : ::read(fd, bytes.data(), bytes.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (count < 0) return failure(system_error(path, "not overwritten, because it cannot be read", std::strerror(error)));
  if (is_kind({bytes.data(), static_cast<std::size_t>(count)})) return {};
  return failure(Error{{path, 0, 0},
                       fmt::format("not overwritten: an existing file that is not {}", kind),
                       "a file of " + format_size(static_cast<std::uint64_t>(status.st_size)),
                       fmt::format("another name, or the name of {}", kind)});
}

}  // namespace penstock
