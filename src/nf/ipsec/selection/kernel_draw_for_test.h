// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random policies and SAs as `ip` commands, for the namespace of kernel_for_test.h, and packets for them.
//
// Priorities are unique. Among equal ones Linux 6.18 takes the oldest (KernelPolicies), but Linux 6.1 does not if one
// of them is from host to host.

#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/selection/random_selection_for_test.h"
#include "packet/testing/packet_builder.h"

namespace penstock::ipsec {

enum class Way : std::uint8_t { in, out };  // a round has policies of `in` and `fwd`, or of `out`

/// A packet to the kernel itself or to be forwarded, in the clear or on an SA.
struct Probe {
  Flow flow;
  Direction direction = Direction::forward;
  std::optional<std::size_t> sa;
};

class KernelDraw {
 public:
  KernelDraw(unsigned seed, Way way) : random_(seed), way_(way) {}
  std::size_t any(std::size_t n) { return random_() % n; }
  bool chance(std::size_t n) { return any(n) == 0; }

  // Draws from few values. The peers differ in their first 32 bits, because Linux compares only these if the inner
  // packet is IPv4 and the tunnel IPv6.
  std::string peer(bool ipv6) {
    if (!ipv6) return fmt::format("198.51.100.{}", 1 + any(2));
    return chance(2) ? "2001:db8:64::1" : "2001:db9:64::2";
  }
  std::string local(bool ipv6) { return fmt::format("{}{}", ipv6 ? "2001:db8:2::" : "192.0.2.", 1 + any(2)); }
  std::string host(bool ipv6, unsigned net) {
    return fmt::format("{}{}{}{}", ipv6 ? "2001:db8:" : "", net, ipv6 ? "::" : ".0.0.", 1 + any(3));
  }
  static std::string anywhere(bool ipv6) { return ipv6 ? "::" : "0.0.0.0"; }

  /// Lines for `ip -batch`.
  std::string state(std::uint32_t spi) {
    const bool ipv6 = chance(2), transport = chance(3), in = way_ == Way::in;
    std::string source = in ? peer(ipv6) : local_source(ipv6);
    if (transport) source = chance(3) ? anywhere(ipv6) : host(ipv6, 20);
    const std::string destination = in ? local(ipv6) : transport ? host(ipv6, 30) : peer(ipv6);
    std::string text = fmt::format(
        "xfrm state add src {} dst {} proto esp spi {} reqid {} mode {} auth digest_null \"\" enc ecb(cipher_null) "
        "\"\"",
        source, destination, spi, any(3), transport ? "transport" : "tunnel");
    if (!transport && chance(2)) return text + " flag af-unspec";
    if (chance(3)) text += " sel " + selector(transport ? ipv6 : chance(2), transport && in);
    return text + "\n";
  }
  /// One policy per selector and direction, as the kernel requires.
  std::string policies(std::size_t count) {
    std::set<std::string> selectors;
    std::string text;
    std::vector<std::size_t> priorities(count);
    std::iota(priorities.begin(), priorities.end(), 0);
    std::shuffle(priorities.begin(), priorities.end(), random_);
    while (selectors.size() < count) {
      const bool ipv6 = chance(2), here = way_ == Way::in && chance(2);
      const std::string chosen = selector(ipv6, here) + " dir " + (way_ == Way::out ? "out" : here ? "in" : "fwd");
      if (!selectors.insert(chosen).second) continue;
      text += fmt::format("xfrm policy add {} priority {} action {}", chosen, priorities[selectors.size() - 1],
                          chance(6) ? "block" : "allow");
      if (!chance(5)) text += " tmpl " + wanted(ipv6);
      text += "\n";
    }
    return text;
  }
  Probe probe(const std::vector<SecurityAssociation>& states) {
    Probe probe;
    if (way_ == Way::in && !states.empty() && !chance(3)) probe.sa = any(states.size());
    const bool transport = probe.sa && states[*probe.sa].mode == Mode::transport;
    if (transport || (way_ == Way::in && chance(2))) probe.direction = Direction::in;
    const bool ipv6 = transport ? is_ipv6(states[*probe.sa].destination) : chance(2);
    const std::string source = host(ipv6, 20);
    const std::string destination = transport                          ? to_string(states[*probe.sa].destination)
                                    : probe.direction == Direction::in ? local(ipv6)
                                                                       : host(ipv6, 30);
    fill(probe.flow, ipv6, source, destination, probe.direction == Direction::forward && chance(4));
    return probe;
  }

 private:
  /// The source that the kernel itself chooses if a template leaves it open.
  static std::string local_source(bool ipv6) { return ipv6 ? "2001:db8:2::1" : "192.0.2.1"; }

  std::string prefix(bool ipv6, const std::string& address) {
    if (chance(3)) return anywhere(ipv6) + "/0";
    if (chance(2))
      return ipv6 ? address.substr(0, address.rfind(':') + 1) + "/64" : address.substr(0, address.rfind('.')) + ".0/24";
    return address + (ipv6 ? "/128" : "/32");
  }
  std::string selector(bool ipv6, bool here) {
    std::string text =
        fmt::format("src {} dst {}", prefix(ipv6, host(ipv6, 20)), prefix(ipv6, here ? local(ipv6) : host(ipv6, 30)));
    if (chance(2)) return text;
    if (chance(3)) {
      text += ipv6 ? " proto ipv6-icmp" : " proto icmp";
      if (chance(2)) text += fmt::format(" type {}", icmp_type(ipv6));
      if (text.find("type") != std::string::npos && chance(2)) text += fmt::format(" code {}", any(2));
      return text;
    }
    text += chance(3) ? " proto tcp" : " proto udp";
    if (chance(3)) text += fmt::format(" sport {}", 1 + any(2));
    if (chance(3)) text += fmt::format(" dport {}", 1 + any(2));
    return text;
  }
  /// Echo replies and requests; for IPv6 also an unassigned type.
  std::size_t icmp_type(bool ipv6) { return ipv6 ? std::array<std::size_t, 3>{128, 129, 200}[any(3)] : any(2) * 8; }

  std::string wanted(bool selector_is_ipv6) {
    const bool transport = chance(3);
    const bool ipv6 = transport ? selector_is_ipv6 : chance(2), in = way_ == Way::in;
    const std::string source = chance(3) ? anywhere(ipv6) : in ? peer(ipv6) : local(ipv6);
    const std::string destination = chance(in ? 3 : 8) ? anywhere(ipv6) : in ? local(ipv6) : peer(ipv6);
    std::string text = fmt::format("src {} dst {} proto esp", source, destination);
    if (chance(8)) text += fmt::format(" spi {}", 256 + any(8));
    text += fmt::format(" reqid {} mode {}", any(3), transport ? "transport" : "tunnel");
    // Newer kernels reject outbound tunnels with `level use`.
    return text + (chance(4) && (in || transport) ? " level use" : "");
  }
  void fill(Flow& flow, bool ipv6, const std::string& source, const std::string& destination, bool fragment) {
    flow.source = ipv6 ? IpAddress(*parse_ipv6(source)) : IpAddress(*parse_ipv4(source));
    flow.destination = ipv6 ? IpAddress(*parse_ipv6(destination)) : IpAddress(*parse_ipv4(destination));
    auto builder = testing::packet().eth();
    const bool first_of_all = chance(2);
    if (ipv6) {
      builder.ipv6(source, destination);
      if (fragment) builder.fragment6(first_of_all ? 1 : 8);
    } else {
      builder.ipv4(source, destination, 64, {}, static_cast<std::uint16_t>(!fragment ? 0 : first_of_all ? 0x2000 : 1));
    }
    std::uint16_t first = static_cast<std::uint16_t>(1 + any(3)), second = static_cast<std::uint16_t>(1 + any(3));
    switch (any(3)) {
      case 0:
        flow.protocol = ip_protocol::kTcp;
        builder.tcp(first, second);
        break;
      case 1:
        flow.protocol = ip_protocol::kUdp;
        builder.udp(first, second);
        break;
      default:
        flow.protocol = ipv6 ? ip_protocol::kIcmpv6 : ip_protocol::kIcmp;
        first = static_cast<std::uint16_t>(icmp_type(ipv6));
        second = static_cast<std::uint16_t>(any(2));
        builder.icmp(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(second));
    }
    if (!fragment) {
      flow.first = first;
      flow.second = second;
    }
    flow.frame = builder.payload("12345678").bytes();
  }

  std::mt19937 random_;
  Way way_;
};

}  // namespace penstock::ipsec
