// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Policies and the SAs that they use, in one layout for host and device. A policy's index is that of its entry in the
// firewall's engine. An SA's index is its position in the user's file, as everywhere. Types of arrays have no padding,
// since arrays may go to another process.

#pragma once

#include <cstdint>
#include <type_traits>

#include "classify/rule.h"
#include "nf/ipsec/sa/sa_layout.h"

namespace penstock::ipsec {

inline constexpr std::uint32_t kNoPolicy = classify::kNoEntry;

/// What happens to packets that a policy selects.
enum class Handling : std::uint8_t {
  bypass,   // forward unprotected
  protect,  // by an SA that matches the policy's template
  prefer,   // like `protect`, but forward unprotected without an SA (`level use`)
  block,
  refuse,  // drop, because the policy asks for something unsupported
};

/// Requirements on an SA.
struct TemplateView {
  Ipv6Address source;       // tunnel's source; all zeros: any, of either family
  std::uint32_t spi = 0;    // 0: any
  std::uint32_t reqid = 0;  // 0: any, inbound
  NetworkLayer outer = NetworkLayer::none;
  bool tunnel = true;
  std::uint8_t reserved[6] = {};
};

struct PolicyView {
  TemplateView wanted;                // for protect and prefer
  std::uint32_t first_candidate = 0;  // outbound: matching SAs, in order of preference
  std::uint32_t candidates = 0;
  Handling handling = Handling::bypass;
  std::uint8_t reserved[7] = {};
};
static_assert(std::has_unique_object_representations_v<PolicyView>);

/// The packets that an SA may carry, according to its own selector.
struct SelectorView {
  Ipv6Address source, source_mask;
  Ipv6Address destination, destination_mask;
  std::uint16_t source_port = 0;  // type and code for ICMP and ICMPv6
  std::uint16_t destination_port = 0;
  NetworkLayer family = NetworkLayer::none;  // none: any packet of either family
  std::uint8_t protocol = 0;                 // 0: any
  bool any_source_port = true;
  bool any_destination_port = true;
  bool nothing = false;  // matches nothing, because it uses an unsupported condition
  std::uint8_t reserved[7] = {};
};
static_assert(std::has_unique_object_representations_v<SelectorView>);

/// Lifetime status of an SA. Changes while packets flow.
enum class SaStatus : std::uint8_t {
  valid,
  dying,      // soft limit reached or hard limit near: used only if there is no valid SA
  dead,       // hard limit reached
  exhausted,  // no sequence numbers are left
};

/// Borrows the tables, on the host or on a device. The engine that finds the policy is passed separately.
struct SelectionView {
  const PolicyView* policies = nullptr;
  const std::uint32_t* candidates = nullptr;  // SA indices
  const SaView* sas = nullptr;
  const SelectorView* selectors = nullptr;  // by SA
};

/// A slot of the hash table of SAs by destination and SPI: open addressing, at most half full. SPI 0, which no SA has
/// (RFC 4303 §2.1), marks the entry for a destination address itself.
struct SaSlot {
  Ipv6Address destination;
  std::uint32_t spi = 0;
  std::uint32_t sa = 0;
  NetworkLayer family = NetworkLayer::none;  // none: free slot
  bool udp = false;                          // for an address: some SA to it uses UDP encapsulation
  std::uint8_t reserved[6] = {};
};
static_assert(std::has_unique_object_representations_v<SaSlot>);

struct InboundView {
  const SaSlot* slots = nullptr;
  std::uint32_t mask = 0;  // number of slots, a power of two, minus one
};

}  // namespace penstock::ipsec
