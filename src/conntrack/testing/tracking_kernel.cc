// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/testing/tracking_kernel.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/testing/tunnel_namespace.h"
#include "packet/ip.h"

namespace penstock::conntrack {
namespace {

using testing::open_tunnel;
using testing::set_network_parameter;
using testing::succeeds;

constexpr std::array<const char*, 2> kTunnels{"d0", "d1"};
constexpr std::uint8_t kReplyBit = 8;  // of the DSCP; the rest is State + 1

std::string rules() {
  constexpr std::array<const char*, 5> kStates{"invalid", "new", "established", "related", "untracked"};
  std::string text = "table inet t {\nchain c {\ntype filter hook prerouting priority mangle;\n";
  for (std::size_t state = 0; state < kStates.size(); ++state) {
    for (const bool reply : {false, true}) {
      for (const char* const family : {"ip", "ip6"}) {
        text += std::string(" ct state ") + kStates[state] + (reply ? " ct direction reply " : " ") + family +
                " dscp set " + std::to_string(state + 1 + (reply ? kReplyBit : 0)) + "\n";
      }
    }
  }
  return text + "\n}\n}\n";
}

std::uint8_t dscp_of(const Packet& packet) {
  if (packet[0] >> 4 == 4) return packet[1] >> 2;
  return static_cast<std::uint8_t>((packet[0] & 15) << 2 | packet[1] >> 6);
}

/// Clears what rules and forwarding change: DSCP, TTL, checksum; the fragment header of a packet in one piece.
void clear_changing_fields(Packet& packet) {
  constexpr std::size_t kNext = 6, kIp = sizeof(Ipv6Header), kFragment = sizeof(Ipv6FragmentHeader);
  if (packet[0] >> 4 == 6 && packet[kNext] == ip_protocol::kFragment && packet.size() >= kIp + kFragment) {
    packet[kNext] = packet[kIp];
    packet.erase(packet.begin() + kIp, packet.begin() + kIp + kFragment);
    packet[4] = static_cast<std::uint8_t>((packet.size() - kIp) >> 8);
    packet[5] = static_cast<std::uint8_t>(packet.size() - kIp);
  }
  if (packet[0] >> 4 == 4) {
    packet[1] = packet[8] = packet[10] = packet[11] = 0;
  } else {
    packet[0] &= 0xf0;
    packet[1] &= 0x3f;
    packet[7] = 0;
  }
}

void put_address(nlmsghdr* message, std::uint16_t v4, std::uint16_t v6, std::uint8_t version,
                 const Ipv6Address& address) {
  std::array<std::uint8_t, 16> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(address.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::uint8_t>(address.low >> (56 - 8 * i));
  }
  if (version == 4) {
    mnl_attr_put(message, v4, 4, bytes.data() + 12);
  } else {
    mnl_attr_put(message, v6, 16, bytes.data());
  }
}

void put_be16(nlmsghdr* message, std::uint16_t type, std::uint16_t value) {
  const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
  mnl_attr_put(message, type, bytes.size(), bytes.data());
}

void put_tuple(nlmsghdr* message, const Tuple& tuple) {
  nlattr* const whole = mnl_attr_nest_start(message, CTA_TUPLE_ORIG);
  nlattr* const ip = mnl_attr_nest_start(message, CTA_TUPLE_IP);
  put_address(message, CTA_IP_V4_SRC, CTA_IP_V6_SRC, tuple.ip_version, tuple.source);
  put_address(message, CTA_IP_V4_DST, CTA_IP_V6_DST, tuple.ip_version, tuple.destination);
  mnl_attr_nest_end(message, ip);
  nlattr* const protocol = mnl_attr_nest_start(message, CTA_TUPLE_PROTO);
  mnl_attr_put_u8(message, CTA_PROTO_NUM, tuple.protocol);
  if (tuple.protocol == ip_protocol::kIcmp || tuple.protocol == ip_protocol::kIcmpv6) {
    const bool v4 = tuple.protocol == ip_protocol::kIcmp;
    put_be16(message, v4 ? CTA_PROTO_ICMP_ID : CTA_PROTO_ICMPV6_ID, tuple.source_port);
    mnl_attr_put_u8(message, v4 ? CTA_PROTO_ICMP_TYPE : CTA_PROTO_ICMPV6_TYPE,
                    static_cast<std::uint8_t>(tuple.destination_port >> 8));
    mnl_attr_put_u8(message, v4 ? CTA_PROTO_ICMP_CODE : CTA_PROTO_ICMPV6_CODE,
                    static_cast<std::uint8_t>(tuple.destination_port));
  } else {
    put_be16(message, CTA_PROTO_SRC_PORT, tuple.source_port);
    put_be16(message, CTA_PROTO_DST_PORT, tuple.destination_port);
  }
  mnl_attr_nest_end(message, protocol);
  mnl_attr_nest_end(message, whole);
}

nlmsghdr* start_message(void* buffer, std::uint16_t type, std::uint16_t flags, std::uint8_t family) {
  nlmsghdr* const message = mnl_nlmsg_put_header(buffer);
  message->nlmsg_type = static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | type);
  message->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  auto* const extra = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(message, sizeof(nfgenmsg)));
  extra->nfgen_family = family;
  extra->version = NFNETLINK_V0;
  extra->res_id = 0;
  return message;
}

std::uint32_t be32_of(const nlattr* attribute) {
  const auto* const bytes = static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute));
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

int read_tcp_member(const nlattr* attribute, void* data) {
  auto& entry = *static_cast<TrackingKernel::Entry*>(data);
  const std::uint8_t first = *static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute));
  switch (mnl_attr_get_type(attribute)) {
    case CTA_PROTOINFO_TCP_STATE: entry.tcp_state = static_cast<TcpState>(first); break;
    case CTA_PROTOINFO_TCP_WSCALE_ORIGINAL: entry.tcp_scale[0] = first; break;
    case CTA_PROTOINFO_TCP_WSCALE_REPLY: entry.tcp_scale[1] = first; break;
    case CTA_PROTOINFO_TCP_FLAGS_ORIGINAL: entry.tcp_flags[0] = first; break;
    case CTA_PROTOINFO_TCP_FLAGS_REPLY: entry.tcp_flags[1] = first; break;
    default: break;
  }
  return MNL_CB_OK;
}

int read_protocol(const nlattr* attribute, void* data) {
  if (mnl_attr_get_type(attribute) != CTA_PROTOINFO_TCP) return MNL_CB_OK;
  return mnl_attr_parse_nested(attribute, read_tcp_member, data);
}

std::uint64_t be_of(const nlattr* attribute, unsigned from, unsigned bytes) {
  const auto* const at = static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute)) + from;
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

int read_tuple_addresses(const nlattr* attribute, void* data) {
  auto& tuple = *static_cast<Tuple*>(data);
  const auto type = mnl_attr_get_type(attribute);
  const bool v4 = type == CTA_IP_V4_SRC || type == CTA_IP_V4_DST;
  tuple.ip_version = v4 ? 4 : 6;
  const Ipv6Address address =
      v4 ? Ipv6Address{0, be_of(attribute, 0, 4)} : Ipv6Address{be_of(attribute, 0, 8), be_of(attribute, 8, 8)};
  (type == CTA_IP_V4_SRC || type == CTA_IP_V6_SRC ? tuple.source : tuple.destination) = address;
  return MNL_CB_OK;
}

int read_tuple_ports(const nlattr* attribute, void* data) {
  auto& tuple = *static_cast<Tuple*>(data);
  switch (mnl_attr_get_type(attribute)) {
    case CTA_PROTO_NUM: tuple.protocol = static_cast<std::uint8_t>(be_of(attribute, 0, 1)); break;
    case CTA_PROTO_SRC_PORT:
    case CTA_PROTO_ICMP_ID:
    case CTA_PROTO_ICMPV6_ID: tuple.source_port = static_cast<std::uint16_t>(be_of(attribute, 0, 2)); break;
    case CTA_PROTO_DST_PORT: tuple.destination_port = static_cast<std::uint16_t>(be_of(attribute, 0, 2)); break;
    case CTA_PROTO_ICMP_TYPE:
    case CTA_PROTO_ICMPV6_TYPE:
      tuple.destination_port |= static_cast<std::uint16_t>(be_of(attribute, 0, 1) << 8);
      break;
    case CTA_PROTO_ICMP_CODE:
    case CTA_PROTO_ICMPV6_CODE: tuple.destination_port |= static_cast<std::uint16_t>(be_of(attribute, 0, 1)); break;
    default: break;
  }
  return MNL_CB_OK;
}

int read_tuple(const nlattr* attribute, void* data) {
  switch (mnl_attr_get_type(attribute)) {
    case CTA_TUPLE_IP: return mnl_attr_parse_nested(attribute, read_tuple_addresses, data);
    case CTA_TUPLE_PROTO: return mnl_attr_parse_nested(attribute, read_tuple_ports, data);
    default: return MNL_CB_OK;
  }
}

int read_attribute(const nlattr* attribute, void* data) {
  auto& entry = *static_cast<TrackingKernel::Entry*>(data);
  switch (mnl_attr_get_type(attribute)) {
    case CTA_STATUS: entry.status = be32_of(attribute); break;
    case CTA_TIMEOUT: entry.timeout_s = be32_of(attribute); break;
    case CTA_PROTOINFO: return mnl_attr_parse_nested(attribute, read_protocol, data);
    case CTA_TUPLE_ORIG: return mnl_attr_parse_nested(attribute, read_tuple, &entry.tuples[0]);
    case CTA_TUPLE_REPLY: return mnl_attr_parse_nested(attribute, read_tuple, &entry.tuples[1]);
    default: break;
  }
  return MNL_CB_OK;
}

}  // namespace

std::unique_ptr<TrackingKernel> TrackingKernel::start(std::string& why) {
  why = "needs root, for a network namespace";
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return nullptr;
  std::unique_ptr<TrackingKernel> kernel(new TrackingKernel);
  why = "no tunnel interfaces here";
  for (std::size_t i = 0; i < kTunnels.size(); ++i) {
    kernel->tunnels_[i] = open_tunnel(kTunnels[i]);
    if (kernel->tunnels_[i] < 0) return nullptr;
  }
  bool routed = set_network_parameter("ipv4/conf/all/rp_filter", "0") &&
                set_network_parameter("ipv4/conf/all/forwarding", "1") &&
                set_network_parameter("ipv6/conf/all/forwarding", "1");
  for (const std::string name : kTunnels) {
    routed = routed && set_network_parameter(fmt::format("ipv4/conf/{}/rp_filter", name), "0") &&
             succeeds(fmt::format("ip link set {} addrgenmode none up", name));
  }
  if (!routed || !succeeds("ip route add default dev d1") || !succeeds("ip -6 route add default dev d1"))
    return nullptr;
  why = "nft is not installed, or cannot track connections here";
  if (!succeeds("nft '" + rules() + "'")) return nullptr;
  why = "no ctnetlink here";
  kernel->netlink_ = mnl_socket_open(NETLINK_NETFILTER);
  if (kernel->netlink_ == nullptr || mnl_socket_bind(kernel->netlink_, 0, MNL_SOCKET_AUTOPID) < 0) return nullptr;
  return kernel;
}

TrackingKernel::~TrackingKernel() {
  for (const int tunnel : tunnels_) {
    if (tunnel >= 0) close(tunnel);
  }
  if (netlink_ != nullptr) mnl_socket_close(netlink_);
}

bool TrackingKernel::set(const std::string& parameter, const std::string& value) {
  return set_network_parameter("netfilter/nf_conntrack_" + parameter, value);
}

std::optional<TrackingKernel::Judgment> TrackingKernel::track(const Packet& packet) {
  constexpr int kWaitMs = 100;
  if (write(tunnels_[0], packet.data(), packet.size()) < 0) return std::nullopt;
  Packet sent = packet;
  clear_changing_fields(sent);
  for (pollfd ready{tunnels_[1], POLLIN, 0}; poll(&ready, 1, kWaitMs) > 0;) {
    Packet got(4096);
    const ssize_t length = read(tunnels_[1], got.data(), got.size());
    if (length < 20) continue;
    got.resize(static_cast<std::size_t>(length));
    const std::uint8_t dscp = dscp_of(got);
    clear_changing_fields(got);
    if (got != sent) continue;  // the kernel's own
    const int state = (dscp & (kReplyBit - 1)) - 1;
    if (state < 0) return std::nullopt;
    return Judgment{static_cast<State>(state), (dscp & kReplyBit) != 0 ? Direction::reply : Direction::original};
  }
  return std::nullopt;
}

std::optional<TrackingKernel::Entry> TrackingKernel::find(const Tuple& tuple) {
  std::array<char, 8192> buffer{};
  nlmsghdr* const message =
      start_message(buffer.data(), IPCTNL_MSG_CT_GET, NLM_F_ACK, tuple.ip_version == 4 ? AF_INET : AF_INET6);
  put_tuple(message, tuple);
  if (mnl_socket_sendto(netlink_, message, message->nlmsg_len) < 0) return std::nullopt;
  std::optional<Entry> found;
  for (bool more = true; more;) {
    const ssize_t length = mnl_socket_recvfrom(netlink_, buffer.data(), buffer.size());
    if (length <= 0) break;
    int rest = static_cast<int>(length);
    for (auto* reply = reinterpret_cast<nlmsghdr*>(buffer.data()); mnl_nlmsg_ok(reply, rest);
         reply = mnl_nlmsg_next(reply, &rest)) {
      more = reply->nlmsg_type != NLMSG_ERROR;  // also the acknowledgment
      if (!more) continue;
      found.emplace();
      mnl_attr_parse(reply, sizeof(nfgenmsg), read_attribute, &*found);
    }
  }
  return found;
}

void TrackingKernel::flush() {
  std::array<char, 8192> buffer{};
  nlmsghdr* const message = start_message(buffer.data(), IPCTNL_MSG_CT_DELETE, NLM_F_ACK, AF_UNSPEC);
  if (mnl_socket_sendto(netlink_, message, message->nlmsg_len) < 0) return;
  (void)mnl_socket_recvfrom(netlink_, buffer.data(), buffer.size());
}

}  // namespace penstock::conntrack
