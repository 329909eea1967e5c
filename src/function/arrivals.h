// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets as they arrived, for functions that answer their senders, or test their link headers, after others have
// changed them: translated them, or written the link addresses of the next hop. Their first bytes are kept, for one
// burst or one batch.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "packet/packet.h"

namespace penstock::function {

class Arrivals {
 public:
  /// For at most so many packets.
  explicit Arrivals(std::size_t most_packets);

  void forget() noexcept { count_ = 0; }
  /// What of a packet is as it arrived.
  enum class Part : std::uint8_t { all, link_header };
  /// Keeps what `of` and `link_header` need of these packets, which have parsed layouts and are as they arrived, or at
  /// least have the link headers with which they arrived. They follow those that are known in their batch.
  void add(std::span<const PacketView> packets, Part part = Part::all) noexcept;

  /// The packet as it arrived, in memory that is valid until the next call. Empty if that is not known, or the frame
  /// now has another length or protocol, as after a tunnel: what it holds is not what its sender sent.
  [[nodiscard]] std::optional<PacketView> of(PacketView packet) noexcept;
  /// The link header with which the packet arrived, wherever its content comes from; valid until packets are added or
  /// forgotten. Null if that is not known, or its link is not Ethernet.
  [[nodiscard]] const EthernetHeader* link_header(PacketView packet) const noexcept;

 private:
  /// Bytes that functions change: of link, network and transport headers.
  static constexpr std::size_t kKept = 192;
  static constexpr std::size_t kMostFrame = std::size_t{65'535} + kKept;

  struct Kept {
    const PacketDescriptor* packet;
    PacketDescriptor descriptor;
    Part part;
    std::array<std::uint8_t, kKept> bytes;
  };
  [[nodiscard]] const Kept* find(PacketView packet) const noexcept;

  std::unique_ptr<Kept[]> kept_;  // by the places of their descriptors
  std::size_t count_ = 0;
  std::unique_ptr<std::uint8_t[]> frame_;  // what `of` has put together
  PacketDescriptor descriptor_;
};

}  // namespace penstock::function
