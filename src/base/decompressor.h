// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Incremental decompression of gzip and Zstandard. Concatenated streams are decompressed as one, like gunzip and unzstd
// do. The caller must bound the output, because a few compressed bytes may expand to any size.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace penstock {

class Decompressor {
 public:
  /// How many bytes from the start of the input `for_input` needs.
  static constexpr std::size_t kMagicBytes = 4;

  /// Chooses the format by the first bytes of the input; the file name does not matter. Null if the input is not
  /// compressed.
  [[nodiscard]] static std::unique_ptr<Decompressor> for_input(std::span<const std::uint8_t> first_bytes);
  virtual ~Decompressor() = default;

  /// Consumes bytes from the front of `compressed` and returns the number of bytes written to `into`. 0 if it needs
  /// more input; some output may still be pending after all input has been consumed. -1 if the input is corrupt;
  /// `reason` then says why.
  [[nodiscard]] virtual std::ptrdiff_t decompress(std::span<const std::uint8_t>& compressed,
                                                  std::span<std::uint8_t> into) noexcept = 0;
  /// Why `decompress` failed; empty if it did not.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// True from the start of a stream until its end. Input that ends while this is true is truncated.
  [[nodiscard]] bool inside_stream() const noexcept { return inside_stream_; }

 protected:
  std::string reason_;
  bool inside_stream_ = true;
};

}  // namespace penstock
