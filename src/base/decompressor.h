// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// gzip and Zstandard streams, unpacked piece by piece. Concatenated streams are one, as for gunzip and unzstd. The
// caller bounds the output: a few compressed bytes may hold any number of them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace penstock {

class Decompressor {
 public:
  /// How many of the first bytes `for_input` looks at.
  static constexpr std::size_t kMagicBytes = 4;

  /// By the first bytes of the input, whatever its name. Null: it is not compressed.
  [[nodiscard]] static std::unique_ptr<Decompressor> for_input(std::span<const std::uint8_t> first_bytes);
  virtual ~Decompressor() = default;

  /// Takes bytes from the front of `compressed`. Returns how many it wrote; 0: it needs more input (output may be left
  /// inside after all input is taken); -1: the input cannot be unpacked, and `reason` says why.
  [[nodiscard]] virtual std::ptrdiff_t decompress(std::span<const std::uint8_t>& compressed,
                                                  std::span<std::uint8_t> into) noexcept = 0;
  /// "" while all is well.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// A stream has begun, and its end has not been seen: an input that ends here is cut short.
  [[nodiscard]] bool inside_stream() const noexcept { return inside_stream_; }

 protected:
  std::string reason_;
  bool inside_stream_ = true;
};

}  // namespace penstock
