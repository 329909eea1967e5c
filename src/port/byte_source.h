// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a file, a pipe or the standard input. If the first bytes identify gzip or Zstandard, the input is
// decompressed, whatever its name. Concatenated compressed streams are read as one, like gunzip and unzstd do. Owns its
// descriptor.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace penstock::port {

/// State shared by a reader and the threads that watch or stop it.
struct ReadControl {
  std::atomic<std::uint64_t> bytes_read{0};  // compressed bytes, as stored on disk
  /// Becomes readable when reading should stop, and so ends a read that blocks on a pipe. -1: reading is never stopped.
  int stop_fd = -1;
  std::atomic<bool> stopped{false};  // a read was stopped, so the end that the reader sees is not the end of the input
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// `path` "-" is the standard input. `control` must outlive the source. Blocks until a pipe has its first bytes.
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path, ReadControl& control);

  /// Blocks for the next bytes, and returns how many were read. 0 at the end; -1 on an error, with its `reason`.
  [[nodiscard]] virtual std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept = 0;
  /// The error of the last read; empty if there was none.
  [[nodiscard]] virtual const std::string& reason() const noexcept = 0;
  /// Whether this is a regular file with a path: it can be opened again, and reading it never blocks on another
  /// process.
  [[nodiscard]] virtual bool is_regular_file() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t size_on_disk() const noexcept = 0;
};

}  // namespace penstock::port
