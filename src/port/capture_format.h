// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the packets of a capture in file order; there is one implementation for each format.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "packet/link_type.h"

namespace penstock::port {

/// A packet as the capture stores it. The reader owns the bytes; they are valid until its next call.
struct CapturedFrame {
  std::span<const std::uint8_t> bytes;
  std::uint64_t timestamp_ns = 0;  // clamped to the representable range (1970 to 2554)
  std::uint32_t wire_length = 0;   // at least bytes.size(), even if a damaged capture says otherwise
  LinkType link_type = LinkType::ethernet;
  std::uint64_t number = 0;  // counts from 1, and continues across the files of a sequence
  bool copy = false;         // another worker owns the packet: see RxStatus::copy
};

/// A frame that is too long for any batch; 0 bytes if there was none.
struct OversizedFrame {
  std::size_t bytes = 0;
  std::uint64_t number = 0;  // CapturedFrame::number
};

class CaptureFormat {
 public:
  enum class Status : std::uint8_t { packet, end, broken };

  virtual ~CaptureFormat() = default;
  virtual Status next(CapturedFrame& frame) noexcept = 0;
  /// What is wrong with the file, after `broken`.
  [[nodiscard]] virtual std::string reason() const = 0;
  /// Packets read so far, including skipped ones.
  [[nodiscard]] virtual std::uint64_t packets() const noexcept = 0;
  /// Errors about the packets skipped so far, with `path` as their place.
  [[nodiscard]] virtual Errors left_out(const std::string& path) const = 0;
};

}  // namespace penstock::port
