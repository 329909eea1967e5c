// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of a capture, in the order of the file, whatever its format.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "packet/link_type.h"

namespace penstock::port {

/// A packet as the capture holds it. The bytes are the reader's, until its next call.
struct CapturedFrame {
  std::span<const std::uint8_t> bytes;
  std::uint64_t timestamp_ns = 0;  // what does not fit (before 1970, after 2554) becomes the nearest that does
  std::uint32_t wire_length = 0;   // never less than bytes.size(), even where a broken capture says so
  LinkType link_type = LinkType::ethernet;
  std::uint64_t number = 0;  // counts from 1; in a sequence of captures it counts on from one to the next
  bool copy = false;         // another worker has the frame: see RxStatus::copy
};

/// A frame that is too long for any batch; 0 bytes: there was none.
struct OversizedFrame {
  std::size_t bytes = 0;
  std::uint64_t number = 0;  // CapturedFrame::number
};

class CaptureFormat {
 public:
  enum class Status : std::uint8_t { packet, end, broken };

  virtual ~CaptureFormat() = default;
  virtual Status next(CapturedFrame& frame) noexcept = 0;
  /// After `broken`: what is wrong there.
  [[nodiscard]] virtual std::string reason() const = 0;
  /// Packets so far, with those that were left out.
  [[nodiscard]] virtual std::uint64_t packets() const noexcept = 0;
  /// Packets that were left out so far, as errors of `path`.
  [[nodiscard]] virtual Errors left_out(const std::string& path) const = 0;
};

}  // namespace penstock::port
