// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What running workers report about packets on its way to a client: traced paths and captured frames. Bounded. Workers
// never wait: what does not fit is counted as lost.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "packet/packet.h"
#include "run/capture.h"
#include "run/chain.h"
#include "run/trace.h"

namespace penstock::control {

/// A frame that a function has dropped.
struct CapturedFrame {
  std::uint16_t reason = 0;
  PacketDescriptor packet;
  std::vector<std::uint8_t> bytes;
};

class PacketStream {
 public:
  /// The most bytes that wait for the client, as far as they are counted: those of frames, and some for each item.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  // Thread-safe.

  void add(const run::TracedPacket& packet) { add_item(packet, kPathBytes); }
  void add(const run::DroppedFrame& dropped) {
    const PacketView packet = dropped.packet;
    add_item(CapturedFrame{dropped.reason, *packet.packet, {packet.frame, packet.frame + packet.length()}},
             packet.length() + kFrameBytes);
  }
  void lose(std::uint64_t packets) {
    const std::lock_guard lock(mutex_);
    lost_ += packets;
  }

  using Item = std::variant<run::TracedPacket, CapturedFrame>;
  /// At most so many of those that wait, the oldest first.
  [[nodiscard]] std::vector<Item> take(std::size_t most);
  struct Counts {
    std::uint64_t added = 0;  // taken or waiting
    std::uint64_t lost = 0;
  };
  [[nodiscard]] Counts counts() const {
    const std::lock_guard lock(mutex_);
    return {added_, lost_};
  }

 private:
  static constexpr std::size_t kPathBytes = 4096, kFrameBytes = 256;

  void add_item(Item item, std::size_t bytes);

  struct Waiting {
    Item item;
    std::size_t bytes;
  };
  mutable std::mutex mutex_;  // guards the members below
  std::deque<Waiting> waiting_;
  std::size_t bytes_ = 0;
  std::uint64_t added_ = 0, lost_ = 0;
};

/// The member `event` of a line of the answer to `trace` or `capture`. `reasons`: those of the function whose drops are
/// captured.
[[nodiscard]] nlohmann::ordered_json to_json(const PacketStream::Item& item, const run::Chain& chain,
                                             std::span<const std::string_view> reasons);

}  // namespace penstock::control
