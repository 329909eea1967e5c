// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes bytes to a file, compressed if its name ends in .gz or .zst. Owns its descriptor. Not thread-safe.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::port {

class ByteSink {
 public:
  /// The suffixes of file names that are written compressed. Suffixes of other compression formats are refused.
  static constexpr std::array<std::string_view, 2> kCompressions{".gz", ".zst"};

  virtual ~ByteSink() = default;

  /// Opens or creates the file, and does not truncate it. `path` "-" is the standard output. Blocks until a pipe has a
  /// reader. It is an error if `stop_fd` becomes readable before that (-1: wait for ever), or if another sink, of this
  /// process or another one, has the file open.
  static Result<std::unique_ptr<ByteSink>> open(const std::string& path, int stop_fd = -1);

  /// Truncates the file; call it before the first write. A file that was created but never begun is removed again.
  virtual void begin() noexcept = 0;
  /// Returns the number of bytes written. If it is less than the size of `bytes`, `reason` says why, and nothing more
  /// is written. A compressing sink takes all bytes or none. It may keep them until a later `write` or `finish`: it
  /// ends a block (a gzip member or a Zstandard frame) with the first write after 1 MiB or one second. If the process
  /// is killed, at most the last block is lost. A block always ends at the end of a write. Both functions block for a
  /// slow reader of a pipe; once `stop_fd` is readable, they give up on a reader that takes nothing for one second.
  virtual std::size_t write(std::span<const std::uint8_t> bytes) noexcept = 0;
  /// Writes the pieces one after the other, as `write` would. False if not all are written.
  virtual bool write_all(std::span<const std::span<const std::uint8_t>> pieces) noexcept;
  /// Whether `write_all` writes many pieces with one system call, so that the caller need not join them.
  [[nodiscard]] virtual bool takes_pieces() const noexcept = 0;
  /// Writes what is left and closes the file. Call it once.
  virtual bool finish() noexcept = 0;
  [[nodiscard]] virtual const std::string& reason() const noexcept = 0;

 protected:
  bool write_one_by_one(std::span<const std::span<const std::uint8_t>> pieces) noexcept;
};

}  // namespace penstock::port
