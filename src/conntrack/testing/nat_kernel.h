// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel as a router with NAT between an inside (10.1.0.0/16, 2001:db8::/64) and an outside (everything else), and
// the rules that both have. Packets to the router itself are dropped.

#pragma once

#include <poll.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/testing/tunnel_namespace.h"
#include "conntrack/testing/tracking_kernel.h"
#include "conntrack/testing/translating_table.h"

namespace penstock::conntrack {

enum class Side : std::uint8_t { inside, outside };

inline constexpr std::array<const char*, 2> kInside{"10.1.0.0/16", "2001:db8::/64"};          // v4, v6
inline constexpr std::array<const char*, 2> kPublic{"198.51.100.0/24", "2001:db8:1::/64"};    // what rules translate to
inline constexpr std::array<const char*, 2> kRouterOutside{"192.0.2.1", "2001:db8:ffff::1"};  // addresses of the router
inline constexpr std::array<const char*, 2> kRouterInside{"10.1.255.254", "2001:db8::ffff"};

inline bool lies_in(const Ipv6Address& address, std::uint8_t ip_version, const std::array<const char*, 2>& prefixes) {
  return ip_version == 4
             ? contains(parse_ipv4_prefix(prefixes[0]).value(), Ipv4Address{static_cast<std::uint32_t>(address.low)})
             : contains(parse_ipv6_prefix(prefixes[1]).value(), address);
}

/// One statement of nftables, and the same as ranges.
struct NatStatement {
  std::string verb;                             // snat, dnat, masquerade, redirect; empty: no rule
  std::array<std::string, 2> first{}, last{};   // v4, v6. Of a netmap: the prefix, in `first`
  std::uint16_t first_port = 0, last_port = 0;  // for TCP and UDP; 0: none
  std::uint8_t flags = 0;

  [[nodiscard]] NatRange range(const Tuple& tuple) const {
    if (verb.empty()) return {};
    const unsigned family = tuple.ip_version == 4 ? 0 : 1;
    NatRange range;
    if (verb == "masquerade") {
      range = to_address(kRouterOutside[family], flags);
    } else if (verb == "redirect") {
      range = to_address(kRouterInside[family], flags);
    } else if ((flags & NatRange::kNetmap) == 0) {
      range = to_addresses(first[family], last[family], flags);
    } else if (family == 0) {
      const Ipv4Prefix prefix = parse_ipv4_prefix(first[0]).value();
      range = to_address(to_string(prefix.address), flags);
      range.last_address.low |= ~ipv4_mask(prefix.length);
    } else {
      const Ipv6Prefix prefix = parse_ipv6_prefix(first[1]).value();
      const Ipv6Address mask = ipv6_mask(prefix.length);
      range = to_address(to_string(prefix.address), flags);
      range.last_address.high |= ~mask.high;
      range.last_address.low |= ~mask.low;
    }
    const bool ports = first_port != 0 && (tuple.protocol == ip_protocol::kTcp || tuple.protocol == ip_protocol::kUdp);
    return ports ? with_ports(range, first_port, last_port) : range;
  }

  [[nodiscard]] std::string nft(const std::string& match_v4, const std::string& match_v6) const {
    std::string text;
    for (const unsigned family : {0U, 1U}) {
      const std::string match = family == 0 ? match_v4 : match_v6;
      if (verb.empty()) continue;
      if (first_port != 0) text += match + " meta l4proto { tcp, udp } " + action(family, true) + "\n";
      text += match + " " + action(family, false) + "\n";
    }
    return text;
  }

 private:
  [[nodiscard]] std::string action(unsigned family, bool ports) const {
    const std::string ip = family == 0 ? "ip" : "ip6", end = verb == "dnat" ? " daddr" : " saddr";
    const std::string range = std::to_string(first_port) + "-" + std::to_string(last_port);
    std::string text = verb;
    if (verb == "masquerade" || verb == "redirect") {
      if (ports) text += " to :" + range;
    } else if ((flags & NatRange::kNetmap) != 0) {
      const std::string from = verb == "dnat" ? kPublic[family] : kInside[family];
      return text + " " + ip + " prefix to " + ip + end + " map { " + from + " : " + first[family] + " }";
    } else {
      const auto written = [&](const std::string& address) {
        return family == 1 && ports ? "[" + address + "]" : address;
      };
      text += " " + ip + " to " + written(first[family]);
      if (last[family] != first[family]) text += "-" + written(last[family]);
      if (ports) text += ":" + range;
    }
    if ((flags & NatRange::kRandom) != 0) text += " random";
    if ((flags & NatRange::kFullyRandom) != 0) text += " fully-random";
    if ((flags & NatRange::kPersistent) != 0) text += " persistent";
    return text;
  }
};

struct NatRuleSet {
  std::string name;
  NatStatement destination;  // of packets to public addresses
  NatStatement source;       // of packets from inside to outside
  bool may_close = true;     // which ended connection gives up its port is up to chance
  // Connections to port 21 have the helper of FTP, and other new ones pass only if they are expected.
  bool ftp = false;
};

class NatKernel {
 public:
  /// As TrackingKernel::start.
  static std::unique_ptr<NatKernel> start(std::string& why) {
    using testing::set_network_parameter;
    using testing::succeeds;
    std::unique_ptr<NatKernel> nat(new NatKernel);
    nat->kernel_ = TrackingKernel::start(why);
    if (!nat->kernel_) return nullptr;
    why = "cannot set up a router with NAT here";
    for (const std::string name : {"all", "default", "d0", "d1"}) {
      if (!set_network_parameter("ipv4/conf/" + name + "/send_redirects", "0")) return nullptr;
    }
    for (const unsigned family : {0U, 1U}) {
      const std::string host = family == 0 ? "/32" : "/128 nodad", ip = family == 0 ? "ip" : "ip -6";
      if (!succeeds(ip + " addr add " + kRouterOutside[family] + host + " dev d1") ||
          !succeeds(ip + " addr add " + kRouterInside[family] + host + " dev d0") ||
          !succeeds(ip + " route add " + kInside[family] + " dev d0")) {
        return nullptr;
      }
    }
    why = "nft cannot translate here";
    if (!nat->use({})) return nullptr;
    return nat;
  }

  /// Forgets all connections and takes these rules.
  [[nodiscard]] bool use(const NatRuleSet& rules, bool delivers = false) {
    const std::string from_inside = " oifname d1 ";
    const bool set = testing::succeeds(
        "nft 'flush ruleset\ntable inet n {\nchain pre {\ntype nat hook prerouting priority dstnat\n" +
        rules.destination.nft(std::string("ip daddr ") + kPublic[0], std::string("ip6 daddr ") + kPublic[1]) +
        "}\nchain post {\ntype nat hook postrouting priority srcnat\n" +
        rules.source.nft(std::string("ip saddr ") + kInside[0] + from_inside,
                         std::string("ip6 saddr ") + kInside[1] + from_inside) +
        "}\n" +
        (rules.ftp ? "ct helper ftp {\ntype \"ftp\" protocol tcp;\n}\n"
                     "chain help {\ntype filter hook prerouting priority -150\ntcp dport 21 ct helper set \"ftp\"\n}\n"
                     "chain through {\ntype filter hook forward priority filter; policy drop\n"
                     "ct state established,related accept\ntcp dport 21 ct state new accept\n}\n"
                   : "") +
        "chain in {\ntype filter hook input priority filter\nct state invalid drop\n" + (delivers ? "accept" : "drop") +
        "\n}\n}'");
    kernel_->flush();
    return set;
  }

  struct Output {
    Side side;
    Packet packet;
  };
  /// What leaves the router, within this time.
  [[nodiscard]] std::optional<Output> forward(Side side, const Packet& packet, int wait_ms) {
    if (write(kernel_->tunnel(static_cast<unsigned>(side)), packet.data(), packet.size()) < 0) return std::nullopt;
    return next(wait_ms);
  }
  [[nodiscard]] std::optional<Output> next(int wait_ms) {
    std::array<pollfd, 2> ready{pollfd{kernel_->tunnel(0), POLLIN, 0}, pollfd{kernel_->tunnel(1), POLLIN, 0}};
    while (poll(ready.data(), ready.size(), wait_ms) > 0) {
      for (const unsigned i : {0U, 1U}) {
        if ((ready[i].revents & POLLIN) == 0) continue;
        Packet got(4096);
        const ssize_t length = read(ready[i].fd, got.data(), got.size());
        if (length < 20) continue;
        got.resize(static_cast<std::size_t>(length));
        if (!is_own(got)) return Output{static_cast<Side>(i), got};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<TrackingKernel::Entry> find(const Tuple& tuple) { return kernel_->find(tuple); }

 private:
  NatKernel() = default;

  /// Neighbour discovery and multicast listener reports of the kernel.
  static bool is_own(const Packet& packet) {
    ParsedPacket parsed(packet);
    const PacketLayout& layout = parsed.descriptor.layout;
    if (layout.network != NetworkLayer::ipv6 || layout.transport != ip_protocol::kIcmpv6 ||
        !layout.has(PacketLayout::kTransportHeader)) {
      return false;
    }
    const std::uint8_t type = parsed.view().icmp().type;
    const bool redirect = type == 137 && parsed.view().ipv6().source_address().high >> 48 == 0xfe80;
    return redirect || (type >= 130 && type <= 136) || type == 143;
  }

  std::unique_ptr<TrackingKernel> kernel_;
};

}  // namespace penstock::conntrack
