// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection as a watcher between its hosts follows it: states, windows, and the streams of both directions.

#pragma once

#include <cstdint>

#include "stack/flow.h"

namespace penstock::stack {

/// Contiguous bytes of one direction of a stream.
struct StreamChunk {
  std::uint64_t offset = 0;  // of the first byte, from the byte behind the SYN
  Bytes bytes;               // until the next call that changes the session
};

class TcpSession {
 public:
  /// What waits to be inspected of a direction, in the order of the stream; a gap parts chunks. They begin where the
  /// last inspection ended, and end at the last acknowledged byte (inline: at the last in order); `to_end`: at the last
  /// byte there is. Then they are said inspected, and their memory may go. `use`: void(StreamChunk).
  template <typename Use>
  void inspect(Direction direction, bool to_end, Use&& use);

  /// Bytes of payload seen in order, for stream_size.
  [[nodiscard]] std::uint64_t stream_bytes(Direction direction) const noexcept;
  [[nodiscard]] bool established() const noexcept;
};

}  // namespace penstock::stack
