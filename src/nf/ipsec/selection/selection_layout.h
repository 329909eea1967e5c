// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Policies, and the SAs that carry them out, as host and device both see them. A policy's index is that of its entry
// in the firewall's engine that finds it; an SA's is its place in the user's file, as everywhere.

#pragma once

#include <cstdint>
#include <type_traits>

#include "classify/rule.h"
#include "nf/ipsec/sa/sa_layout.h"

namespace penstock::ipsec {

inline constexpr std::uint32_t kNoPolicy = classify::kNoEntry;

/// What is done with the packets that a policy selects.
enum class Handling : std::uint8_t {
  bypass,   // as they are
  protect,  // by an SA that matches the policy's template
  prefer,   // the same; as they are where there is none (`level use`)
  block,
  refuse,  // what the policy asks for is not supported, and no packet goes by it
};

/// What an SA must be.
struct TemplateView {
  Ipv6Address source;       // of a tunnel; all zeros: any, of either family
  std::uint32_t spi = 0;    // 0: any
  std::uint32_t reqid = 0;  // inwards, 0: any
  NetworkLayer outer = NetworkLayer::none;
  bool tunnel = true;
};

struct PolicyView {
  TemplateView wanted;                // with protect and prefer
  std::uint32_t first_candidate = 0;  // outwards: SAs that match it, the one to be preferred first
  std::uint32_t candidates = 0;
  Handling handling = Handling::bypass;
};
static_assert(std::is_trivially_copyable_v<PolicyView>);

/// The packets that an SA may carry, as its own selector has it.
struct SelectorView {
  Ipv6Address source, source_mask;
  Ipv6Address destination, destination_mask;
  std::uint16_t source_port = 0;  // of ICMP and ICMPv6, type and code
  std::uint16_t destination_port = 0;
  NetworkLayer family = NetworkLayer::none;  // none: packets of both, whatever they are
  std::uint8_t protocol = 0;                 // 0: any
  bool any_source_port = true;
  bool any_destination_port = true;
  bool nothing = false;  // it selects by what is not supported
};
static_assert(std::is_trivially_copyable_v<SelectorView>);

/// How long an SA still lasts. Changes while packets go.
enum class SaStatus : std::uint8_t {
  valid,
  dying,      // a soft limit is reached, or a hard one is near: used where no other is there
  dead,       // a hard limit is
  exhausted,  // no sequence numbers are left
};

/// Borrows the tables, the host's or their copy on a device. What finds a policy stands beside it.
struct SelectionView {
  const PolicyView* policies = nullptr;
  const std::uint32_t* candidates = nullptr;  // SAs
  const SaView* sas = nullptr;
  const SelectorView* selectors = nullptr;  // by SA
};

/// A slot of the table of SAs by destination and SPI: open addressing, no more than half full. The SPI 0, which no SA
/// has (RFC 4303 §2.1), stands for the address itself.
struct SaSlot {
  Ipv6Address destination;
  std::uint32_t spi = 0;
  std::uint32_t sa = 0;
  NetworkLayer family = NetworkLayer::none;  // none: the slot is free
  bool udp = false;                          // of an address: an SA to it has its ESP in UDP
};

struct InboundView {
  const SaSlot* slots = nullptr;
  std::uint32_t mask = 0;  // the number of slots, a power of two, less one
};

}  // namespace penstock::ipsec
