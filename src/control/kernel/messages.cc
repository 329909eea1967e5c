// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/messages.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace penstock::control {

namespace {

using Bytes = std::span<const std::uint8_t>;

Bytes payload_of(const nlattr& attribute) noexcept {
  return {static_cast<const std::uint8_t*>(mnl_attr_get_payload(&attribute)), mnl_attr_get_payload_len(&attribute)};
}

/// Calls `use(type, payload)` for each attribute that is complete.
template <typename Use>
void for_each_attribute(Bytes bytes, Use&& use) {
  const auto* attribute = reinterpret_cast<const nlattr*>(bytes.data());
  auto left = static_cast<int>(bytes.size());
  while (left > 0 && mnl_attr_ok(attribute, left)) {
    use(mnl_attr_get_type(attribute), payload_of(*attribute));
    left -= static_cast<int>(MNL_ALIGN(attribute->nla_len));
    attribute = mnl_attr_next(attribute);
  }
}

/// The attributes of the types below N; of several with one type, the last one. Empty: not there.
template <std::size_t N>
std::array<Bytes, N> attributes_of(Bytes bytes) {
  std::array<Bytes, N> found{};
  for_each_attribute(bytes, [&](std::uint16_t type, Bytes payload) {
    if (type < N) found[type] = payload;
  });
  return found;
}

/// Empty if there are not exactly as many bytes.
template <typename T>
std::optional<T> value_of(Bytes bytes) noexcept {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::uint32_t number_of(Bytes bytes) noexcept { return value_of<std::uint32_t>(bytes).value_or(0); }

Ipv6Address ipv6_of(const std::uint8_t* bytes) noexcept {
  Ipv6Address address;
  for (int i = 0; i < 8; ++i) {
    address.high = address.high << 8 | bytes[i];
    address.low = address.low << 8 | bytes[i + 8];
  }
  return address;
}
Ipv4Address ipv4_of(const std::uint8_t* bytes) noexcept {
  return {std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3]};
}

/// An address of 4 or 16 bytes, as the router's tables have it.
std::optional<Ipv6Address> address_of(Bytes bytes) noexcept {
  if (bytes.size() == 4) return router::mapped(ipv4_of(bytes.data()));
  if (bytes.size() == 16) return ipv6_of(bytes.data());
  return std::nullopt;
}

constexpr Ipv6Address kNoAddress{};

/// A gateway of all zeros is none.
std::optional<Ipv6Address> gateway_of(Bytes bytes) noexcept {
  if (bytes.empty()) return kNoAddress;
  const auto address = address_of(bytes);
  return address == router::mapped(Ipv4Address{}) ? std::optional(kNoAddress) : address;
}

bool is_unicast(const MacAddress& mac) noexcept {
  return (mac.bytes[0] & 1) == 0 && std::ranges::any_of(mac.bytes, [](std::uint8_t byte) { return byte != 0; });
}

/// The fixed part of a message. Null: the message is too short.
template <typename T>
const T* fixed_part(const nlmsghdr& header) noexcept {
  return mnl_nlmsg_get_payload_len(&header) < sizeof(T) ? nullptr
                                                        : static_cast<const T*>(mnl_nlmsg_get_payload(&header));
}
template <typename T>
Bytes after(const nlmsghdr& header) noexcept {
  const std::size_t length = mnl_nlmsg_get_payload_len(&header), fixed = MNL_ALIGN(sizeof(T));
  if (length <= fixed) return {};
  return {static_cast<const std::uint8_t*>(mnl_nlmsg_get_payload(&header)) + fixed, length - fixed};
}

std::uint32_t vrf_table_of(Bytes link_info) {
  const auto info = attributes_of<IFLA_INFO_DATA + 1>(link_info);
  const Bytes kind = info[IFLA_INFO_KIND];
  if (std::string_view(reinterpret_cast<const char*>(kind.data()), kind.size()) != std::string_view("vrf\0", 4))
    return 0;
  return number_of(attributes_of<IFLA_VRF_TABLE + 1>(info[IFLA_INFO_DATA])[IFLA_VRF_TABLE]);
}

KernelMessage read_link(const nlmsghdr& header) {
  const auto* const link = fixed_part<ifinfomsg>(header);
  if (link == nullptr || link->ifi_index <= 0) return Malformed{};
  if (link->ifi_family != AF_UNSPEC) return Ignored{};  // about a bridge's port
  const auto attributes = attributes_of<IFLA_LINKINFO + 1>(after<ifinfomsg>(header));
  LinkMessage message;
  message.removed = header.nlmsg_type == RTM_DELLINK;
  message.interface = static_cast<std::uint32_t>(link->ifi_index);
  message.up = (link->ifi_flags & IFF_UP) != 0;
  message.loopback = (link->ifi_flags & IFF_LOOPBACK) != 0;
  message.carrier = (link->ifi_flags & IFF_LOWER_UP) != 0;
  const Bytes name = attributes[IFLA_IFNAME];
  if (name.size() > IFNAMSIZ) return Malformed{};
  message.name.assign(name.begin(), std::ranges::find(name, std::uint8_t{0}));
  if (const auto mac = value_of<MacAddress>(attributes[IFLA_ADDRESS])) {
    message.has_mac = true;
    message.mac = *mac;
  }
  message.vrf_table = vrf_table_of(attributes[IFLA_LINKINFO]);
  return message;
}

KernelMessage read_address(const nlmsghdr& header) {
  const auto* const address = fixed_part<ifaddrmsg>(header);
  if (address == nullptr) return Malformed{};
  return AddressMessage{header.nlmsg_type == RTM_DELADDR && address->ifa_family == AF_INET};
}

KernelMessage read_nexthop(const nlmsghdr& header) {
  if (fixed_part<nhmsg>(header) == nullptr) return Malformed{};
  const auto attributes = attributes_of<NHA_FDB + 1>(after<nhmsg>(header));
  NexthopMessage message;
  message.removed = header.nlmsg_type == RTM_DELNEXTHOP;
  message.id = number_of(attributes[NHA_ID]);
  if (message.id == 0) return Malformed{};
  // A flag has no payload, so its attribute is looked for.
  bool for_bridge = false;
  for_each_attribute(after<nhmsg>(header), [&](std::uint16_t type, Bytes) {
    message.blackhole |= type == NHA_BLACKHOLE;
    for_bridge |= type == NHA_FDB;
  });
  if (for_bridge) return Ignored{};
  const Bytes group = attributes[NHA_GROUP];
  if (group.size() % sizeof(nexthop_grp) != 0 || group.size() / sizeof(nexthop_grp) > kMostKernelHops)
    return Malformed{};
  for (std::size_t at = 0; at < group.size(); at += sizeof(nexthop_grp)) {
    const auto member = *value_of<nexthop_grp>(group.subspan(at, sizeof(nexthop_grp)));
    message.members.push_back({member.id, static_cast<std::uint16_t>(member.weight + 1)});
  }
  const auto gateway = gateway_of(attributes[NHA_GATEWAY]);
  if (!gateway) return Malformed{};
  message.hop = {*gateway, number_of(attributes[NHA_OIF]), 1, !attributes[NHA_ENCAP].empty()};
  return message;
}

KernelMessage read_neighbour(const nlmsghdr& header) {
  constexpr std::uint16_t kUsable = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
  const auto* const neighbour = fixed_part<ndmsg>(header);
  if (neighbour == nullptr || neighbour->ndm_ifindex < 0) return Malformed{};
  const bool is_ipv4 = neighbour->ndm_family == AF_INET;
  if ((!is_ipv4 && neighbour->ndm_family != AF_INET6) || (neighbour->ndm_flags & NTF_PROXY) != 0) return Ignored{};
  const auto attributes = attributes_of<NDA_LLADDR + 1>(after<ndmsg>(header));
  const auto address = address_of(attributes[NDA_DST]);
  if (!address || router::is_mapped(*address) != is_ipv4) return Malformed{};
  NeighbourMessage message;
  message.removed = header.nlmsg_type == RTM_DELNEIGH;
  message.interface = static_cast<std::uint32_t>(neighbour->ndm_ifindex);
  message.address = *address;
  message.stale = (neighbour->ndm_state & NUD_STALE) != 0;
  message.failed = !message.removed && (neighbour->ndm_state & NUD_FAILED) != 0;
  const auto mac = value_of<MacAddress>(attributes[NDA_LLADDR]);
  if (mac && is_unicast(*mac) && (neighbour->ndm_state & kUsable) != 0) {
    message.has_mac = true;
    message.mac = *mac;
  }
  return message;
}

std::optional<RouteKind> kind_of(std::uint8_t type) noexcept {
  switch (type) {
    case RTN_UNICAST: return RouteKind::unicast;
    case RTN_LOCAL: return RouteKind::local;
    case RTN_BROADCAST: return RouteKind::broadcast;
    case RTN_ANYCAST: return RouteKind::anycast;
    case RTN_MULTICAST: return RouteKind::multicast;
    case RTN_BLACKHOLE: return RouteKind::blackhole;
    case RTN_UNREACHABLE: return RouteKind::unreachable;
    case RTN_PROHIBIT: return RouteKind::prohibit;
    case RTN_THROW: return RouteKind::throw_;
    default: return std::nullopt;
  }
}

/// An IPv6 gateway of an IPv4 route.
Bytes via_of(Bytes attribute) noexcept {
  constexpr std::size_t kFamily = sizeof(std::uint16_t);
  return attribute.size() < kFamily ? Bytes() : attribute.subspan(kFamily);
}

/// False if a gateway is malformed.
bool read_hop(const std::array<Bytes, RTA_ENCAP + 1>& attributes, KernelHop& hop) noexcept {
  const auto gateway = gateway_of(attributes[RTA_VIA].empty() ? attributes[RTA_GATEWAY] : via_of(attributes[RTA_VIA]));
  if (!gateway) return false;
  hop.gateway = *gateway;
  hop.encapsulated = !attributes[RTA_ENCAP].empty() || !attributes[RTA_NEWDST].empty();
  return true;
}

/// The next hops of RTA_MULTIPATH. False if the list is malformed or too long.
bool read_multipath(Bytes list, std::vector<KernelHop>& hops) {
  while (!list.empty()) {
    if (list.size() < sizeof(rtnexthop)) return false;
    const auto next = *value_of<rtnexthop>(list.first(sizeof(rtnexthop)));
    if (next.rtnh_len < sizeof(rtnexthop) || next.rtnh_len > list.size() || hops.size() == kMostKernelHops)
      return false;
    KernelHop& hop = hops.emplace_back();
    hop.interface = static_cast<std::uint32_t>(std::max(0, next.rtnh_ifindex));
    hop.weight = static_cast<std::uint16_t>(next.rtnh_hops + 1);
    const Bytes own = list.first(next.rtnh_len).subspan(sizeof(rtnexthop));
    if (!read_hop(attributes_of<RTA_ENCAP + 1>(own), hop)) return false;
    list = list.subspan(std::min<std::size_t>(MNL_ALIGN(next.rtnh_len), list.size()));
  }
  return true;
}

RouteMessage::How how_of(const nlmsghdr& header) noexcept {
  using How = RouteMessage::How;
  if (header.nlmsg_type == RTM_DELROUTE) return How::removes;
  if ((header.nlmsg_flags & NLM_F_MULTI) != 0) return How::appends;  // of a dump: in their order
  if ((header.nlmsg_flags & NLM_F_REPLACE) != 0) return How::replaces;
  return (header.nlmsg_flags & NLM_F_APPEND) != 0 ? How::appends : How::prepends;
}

/// False if the destination is malformed.
bool read_prefix(const rtmsg& route, Bytes destination, RouteMessage& message) noexcept {
  const unsigned bits = route.rtm_family == AF_INET ? 32 : 128;
  if (route.rtm_dst_len > bits || (!destination.empty() && destination.size() != bits / 8)) return false;
  static constexpr std::array<std::uint8_t, 16> kZeros{};
  const std::uint8_t* const bytes = destination.empty() ? kZeros.data() : destination.data();
  if (destination.empty() && route.rtm_dst_len != 0) return false;
  if (bits == 32) {
    const Ipv4Address address{ipv4_of(bytes).bits & ipv4_mask(route.rtm_dst_len)};
    message.prefix = Ipv4Prefix{address, route.rtm_dst_len};
  } else {
    const Ipv6Address mask = ipv6_mask(route.rtm_dst_len), address = ipv6_of(bytes);
    message.prefix = Ipv6Prefix{{address.high & mask.high, address.low & mask.low}, route.rtm_dst_len};
  }
  return true;
}

KernelMessage read_route(const nlmsghdr& header) {
  const auto* const route = fixed_part<rtmsg>(header);
  if (route == nullptr) return Malformed{};
  if (route->rtm_family != AF_INET && route->rtm_family != AF_INET6) return Ignored{};
  if ((route->rtm_flags & RTM_F_CLONED) != 0) return Ignored{};  // an exception for one destination, such as its MTU
  const auto kind = kind_of(route->rtm_type);
  if (!kind) return Ignored{true};
  if (route->rtm_tos != 0 || route->rtm_src_len != 0) return Ignored{true};
  const auto attributes = attributes_of<RTA_NH_ID + 1>(after<rtmsg>(header));
  RouteMessage message;
  message.how = how_of(header);
  message.kind = *kind;
  message.table = attributes[RTA_TABLE].empty() ? route->rtm_table : number_of(attributes[RTA_TABLE]);
  message.metric = number_of(attributes[RTA_PRIORITY]);
  message.nexthop = number_of(attributes[RTA_NH_ID]);
  message.learnt = route->rtm_protocol == RTPROT_RA;
  if (!read_prefix(*route, attributes[RTA_DST], message)) return Malformed{};
  if (message.kind != RouteKind::unicast || message.nexthop != 0) return message;
  std::array<Bytes, RTA_ENCAP + 1> hop{};
  std::copy_n(attributes.begin(), hop.size(), hop.begin());
  if (!attributes[RTA_MULTIPATH].empty()) {
    if (!read_multipath(attributes[RTA_MULTIPATH], message.hops)) return Malformed{};
  } else {
    message.hops.push_back({{}, number_of(attributes[RTA_OIF]), 1, false});
    if (!read_hop(hop, message.hops.front())) return Malformed{};
  }
  return message;
}

}  // namespace

/// `mnl_nlmsg_ok` would compare as signed numbers: a length of 2^32 - 1 passes, and `mnl_nlmsg_next` stays where it is.
std::span<const std::uint8_t> take_message(std::span<const std::uint8_t>& messages) {
  if (messages.size() < sizeof(nlmsghdr)) return {};
  const std::size_t length = reinterpret_cast<const nlmsghdr*>(messages.data())->nlmsg_len;
  if (length < sizeof(nlmsghdr) || length > messages.size()) return {};
  const auto message = messages.first(length);
  messages = messages.subspan(std::min(messages.size(), MNL_ALIGN(length)));
  return message;
}

KernelMessage read_message(std::span<const std::uint8_t> message) {
  message = take_message(message);
  if (message.empty()) return Malformed{};
  const auto* const header = reinterpret_cast<const nlmsghdr*>(message.data());
  switch (header->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK: return read_link(*header);
    case RTM_NEWADDR:
    case RTM_DELADDR: return read_address(*header);
    case RTM_NEWNEXTHOP:
    case RTM_DELNEXTHOP: return read_nexthop(*header);
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH: return read_neighbour(*header);
    case RTM_NEWROUTE:
    case RTM_DELROUTE: return read_route(*header);
    default: return Ignored{};
  }
}

std::optional<std::uint32_t> read_generation(std::span<const std::uint8_t> message) {
  message = take_message(message);
  if (message.empty()) return std::nullopt;
  const auto& header = *reinterpret_cast<const nlmsghdr*>(message.data());
  if (header.nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN)) return std::nullopt;
  const auto number = value_of<std::uint32_t>(attributes_of<NFTA_GEN_ID + 1>(after<nfgenmsg>(header))[NFTA_GEN_ID]);
  return number ? std::optional(ntohl(*number)) : std::nullopt;
}

}  // namespace penstock::control
