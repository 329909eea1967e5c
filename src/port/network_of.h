// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the IP packet in a frame, through the same link encapsulations as the stack's decoder (stack/decode_link.cc).
// The stack treats a connection as one flow even if its directions have different encapsulations (for example, where a
// provider edge pops MPLS labels), so they must reach the same worker.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "packet/link_type.h"

namespace penstock::port {

struct Network {
  static constexpr std::size_t kMostVlanTags = 8;

  std::span<const std::uint8_t> bytes;  // from the IP header to the end of the frame
  std::array<std::uint16_t, kMostVlanTags> vlan_ids{};
  std::uint8_t vlan_count = 0;
  std::uint8_t version = 0;  // 4 or 6, from the encapsulation's type field; 0: no IP packet found
  bool is_vj = false;        // Van Jacobson compression in PPP: a connection number replaces the protocol (RFC 1144)
};

[[nodiscard]] Network network_of(std::span<const std::uint8_t> frame, LinkType link) noexcept;

}  // namespace penstock::port
