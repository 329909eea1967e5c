// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets as they arrived, for functions that answer their senders after others have changed them: translated them, or
// written the link addresses of the next hop. The frames' first bytes are kept for one burst.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "function/burst.h"
#include "packet/packet.h"

namespace penstock::function {

class Arrivals {
 public:
  Arrivals();

  /// Keeps what `of` needs of these packets, at most kBurst, which have parsed layouts and are as they arrived. Forgets
  /// the former ones.
  void begin(std::span<const PacketView> burst) noexcept;
  void forget() noexcept { count_ = 0; }

  /// The packet as it arrived, in memory that is valid until the next call. Empty if that is not known, or the frame
  /// now has another place, length or protocol: what it holds may not be what its sender sent.
  [[nodiscard]] std::optional<PacketView> of(PacketView packet) noexcept;

 private:
  /// Bytes that functions change: of link, network and transport headers.
  static constexpr std::size_t kKept = 192;
  static constexpr std::size_t kMostFrame = std::size_t{65'535} + kKept;

  struct Kept {
    const PacketDescriptor* packet;
    const std::uint8_t* frame;
    PacketDescriptor descriptor;
    std::array<std::uint8_t, kKept> bytes;
  };

  std::unique_ptr<std::array<Kept, kBurst>> kept_;
  std::size_t count_ = 0;
  std::unique_ptr<std::uint8_t[]> frame_;  // what `of` has put together
  PacketDescriptor descriptor_;
};

}  // namespace penstock::function
