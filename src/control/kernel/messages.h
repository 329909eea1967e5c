// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says about links, addresses, nexthop objects, neighbours and routes (rtnetlink(7)), as plain values.
// Reading does not trust the message: lengths are checked, and every list is bounded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ip_address.h"
#include "nf/router/next_hop.h"
#include "packet/ethernet.h"

namespace penstock::control {

using RouteKind = router::RouteKind;

/// A next hop of a route or a nexthop object. IPv4 gateways are `router::mapped`; all zeros: none.
struct KernelHop {
  Ipv6Address gateway;
  std::uint32_t interface = 0;  // 0: none
  std::uint16_t weight = 1;     // 1..256
  bool encapsulated = false;    // into MPLS, a tunnel …: not for us

  friend constexpr bool operator==(const KernelHop&, const KernelHop&) = default;
};

struct LinkMessage {
  bool removed = false;
  std::uint32_t interface = 0;
  std::string name;
  bool up = false;       // administratively
  bool carrier = false;  // its other end is there
  bool loopback = false;
  bool has_mac = false;  // an Ethernet address
  MacAddress mac{};
  std::uint32_t vrf_table = 0;  // 0: no VRF
};

/// An IPv4 address was removed, or any other change of an address, which does not matter.
struct AddressMessage {
  bool ipv4_removed = false;
};

struct NexthopMessage {
  struct Member {
    std::uint32_t id = 0;
    std::uint16_t weight = 1;
  };
  bool removed = false;
  std::uint32_t id = 0;
  bool blackhole = false;
  KernelHop hop;                // of no group
  std::vector<Member> members;  // of a group
};

struct NeighbourMessage {
  bool removed = false;
  std::uint32_t interface = 0;
  Ipv6Address address;
  bool has_mac = false;  // it can be used
  bool stale = false;    // the kernel has not heard from it for a while
  bool failed = false;   // it does not answer
  MacAddress mac{};
};

struct RouteMessage {
  enum class How : std::uint8_t { prepends, appends, replaces, removes };
  How how = How::prepends;
  std::variant<Ipv4Prefix, Ipv6Prefix> prefix;
  std::uint32_t table = 0;
  std::uint32_t metric = 0;
  RouteKind kind = RouteKind::unicast;
  std::uint32_t nexthop = 0;    // a nexthop object's number, instead of `hops`; 0: none
  std::vector<KernelHop> hops;  // of unicast routes
  bool learnt = false;          // from router advertisements: IPv6 routes that do not share their load
};

/// A message that does not matter, or a construct that is not supported: the route does not apply to all packets of its
/// prefix, because it depends on the type of service or the source address.
struct Ignored {
  bool unsupported = false;
};
struct Malformed {};

using KernelMessage =
    std::variant<Ignored, Malformed, LinkMessage, AddressMessage, NexthopMessage, NeighbourMessage, RouteMessage>;

/// The most next hops of a route or a group; a longer list is malformed.
inline constexpr std::size_t kMostKernelHops = 1024;

/// Takes the first of several netlink messages, with its header (RFC 3549 section 2.3.2). Empty: what is left begins
/// with no whole message. `messages` is aligned to 4 bytes, and stays so.
[[nodiscard]] std::span<const std::uint8_t> take_message(std::span<const std::uint8_t>& messages);

/// `message` is one netlink message with its header, aligned to 4 bytes.
[[nodiscard]] KernelMessage read_message(std::span<const std::uint8_t> message);

/// The generation of nftables' rules, from its message about that (NFT_MSG_NEWGEN). Empty: another message.
[[nodiscard]] std::optional<std::uint32_t> read_generation(std::span<const std::uint8_t> message);

}  // namespace penstock::control
