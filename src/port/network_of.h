// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The way from a frame's link header to its IP packet, over all that the stack's decoder steps over
// (stack/decode_link.cc): a connection whose two directions are encapsulated differently, as where a provider's edge
// pops MPLS labels, is one flow there.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "packet/link_type.h"

namespace penstock::port {

struct Network {
  static constexpr std::size_t kMostVlanTags = 8;

  std::span<const std::uint8_t> bytes;  // from the IP header to the frame's end
  std::array<std::uint16_t, kMostVlanTags> vlan_ids{};
  std::uint8_t vlan_count = 0;
  std::uint8_t version = 0;  // 4 or 6, as the layer below says; 0: no IP packet was found
  bool is_vj = false;        // PPP says that a connection's number stands for the protocol (RFC 1144)
};

[[nodiscard]] Network network_of(std::span<const std::uint8_t> frame, LinkType link) noexcept;

}  // namespace penstock::port
