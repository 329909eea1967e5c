// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A log with secrets that another process writes: hands out each line once, as it comes, and erases what is not needed
// any more, so that the file takes no more space and keeps no old secrets. If the file is replaced or truncated, it is
// read from its beginning again.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "port/live/file_descriptor.h"

namespace penstock::control {

class GrowingFile {
 public:
  /// Makes an empty file for the owner alone if there is none. A file that others can reach is an error. Lines over
  /// `most_line_bytes` are left out.
  [[nodiscard]] static Result<GrowingFile> open(std::string path, std::size_t most_line_bytes);
  ~GrowingFile();
  GrowingFile(GrowingFile&&) = default;
  GrowingFile& operator=(GrowingFile&&) = delete;

  /// Calls `use` for each complete line that has come, without its end, with its offset. `restarted`: the file is
  /// another one than before, or was truncated; called before its lines.
  [[nodiscard]] Result<void> read(const std::function<void()>& restarted,
                                  const std::function<void(std::string_view line, std::uint64_t offset)>& use);
  /// Waits until the file may have grown, at most so long. Also ends at a signal.
  void wait(int most_ms);
  /// Erases what is before `offset`, to whole blocks of the file system, if that can (tmpfs, ext4, XFS, Btrfs).
  void erase_before(std::uint64_t offset) noexcept;
  /// Where the next line begins.
  [[nodiscard]] std::uint64_t offset() const noexcept { return line_at_; }

 private:
  GrowingFile(std::string path, std::size_t most_line_bytes);

  [[nodiscard]] Result<void> reopen();
  void use_lines(const std::function<void(std::string_view, std::uint64_t)>& use);

  std::string path_;
  std::size_t most_line_bytes_;
  port::FileDescriptor file_, changes_;
  std::uint64_t inode_ = 0;
  std::uint64_t read_to_ = 0, line_at_ = 0, erased_to_ = 0;
  bool skips_ = false;        // the rest of a line that is too long, or whose beginning has been erased
  std::vector<char> buffer_;  // what of a line has come; wiped
  std::size_t filled_ = 0;
};

}  // namespace penstock::control
