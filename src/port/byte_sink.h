// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes bytes to a file, compressed where its name ends in .gz or .zst. Owns its descriptor. Not for several threads
// at once.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace penstock::port {

class ByteSink {
 public:
  virtual ~ByteSink() = default;

  /// Empties the file if there is one. `path` "-" is standard output.
  static Result<std::unique_ptr<ByteSink>> create(const std::string& path);

  /// False where the bytes cannot be written; then `reason` says why, and nothing more is written. What a compressor
  /// holds back is written by `finish` at the latest.
  virtual bool write(std::span<const std::uint8_t> bytes) noexcept = 0;
  /// Writes what is left and closes the file. Called once.
  virtual bool finish() noexcept = 0;
  [[nodiscard]] virtual const std::string& reason() const noexcept = 0;
};

}  // namespace penstock::port
