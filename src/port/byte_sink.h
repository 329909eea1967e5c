// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes bytes to a file, compressed where its name ends in .gz or .zst. Owns its descriptor. Not for several threads
// at once.

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
  /// The suffixes of names that are written compressed; those of other compressions are refused.
  static constexpr std::array<std::string_view, 2> kCompressions{".gz", ".zst"};

  virtual ~ByteSink() = default;

  /// Opens the file, or makes it, and leaves what is in it. `path` "-" is standard output. Waits until a pipe has a
  /// reader, or until `stop_fd` is readable (-1: nothing stops it), which is an error. So is a file that another sink,
  /// of this process or of another, has open.
  static Result<std::unique_ptr<ByteSink>> open(const std::string& path, int stop_fd = -1);

  /// Empties the file; before the first write. A file that was made and never begun is removed again.
  virtual void begin() noexcept = 0;
  /// Returns how many of the bytes were written; where these are fewer, `reason` says why, and nothing more is written.
  /// A compressor takes all or nothing. What it holds back is written by a later write or by `finish`: it ends a block
  /// (a gzip member, a Zstandard frame) with the first write after 1 MiB or a second. Should the process be killed, at
  /// most the last block is lost; blocks end where writes do. Both functions wait for the reader of a pipe; once
  /// `stop_fd` is readable, they give up a reader that takes nothing for a second.
  virtual std::size_t write(std::span<const std::uint8_t> bytes) noexcept = 0;
  /// Writes what is left and closes the file. Called once.
  virtual bool finish() noexcept = 0;
  [[nodiscard]] virtual const std::string& reason() const noexcept = 0;
};

}  // namespace penstock::port
