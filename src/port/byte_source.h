// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a file, a pipe or standard input, decompressed where the first bytes say gzip or Zstandard, whatever the
// name says. Owns its descriptor. Several compressed streams one behind the other are one, as gunzip and unzstd take
// them.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace penstock::port {

/// What a reader and its watchers share.
struct ReadControl {
  std::atomic<std::uint64_t> bytes_read{0};  // of the files as they lie on the disk
  /// Readable once reading shall stop: ends a read that waits for a pipe. -1: nothing stops it.
  int stop_fd = -1;
  std::atomic<bool> stopped{false};  // a read was ended so, and what came looks like an end
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// `path` "-" is standard input. `control` outlives the source. Waits for a pipe's first bytes.
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path, ReadControl& control);

  /// Waits for the next bytes. 0 at the end; -1 where the file cannot be read on, and then `reason` says why.
  [[nodiscard]] virtual std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept = 0;
  /// "" while all is well.
  [[nodiscard]] virtual const std::string& reason() const noexcept = 0;
  /// A regular file that has a name: it can be opened again, and reading never waits for others.
  [[nodiscard]] virtual bool is_regular_file() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t size_on_disk() const noexcept = 0;
};

}  // namespace penstock::port
