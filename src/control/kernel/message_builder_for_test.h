// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: makes the messages that a kernel sends.

#pragma once

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ip_address.h"

namespace penstock::control {

class MessageBuilder {
 public:
  MessageBuilder(std::uint16_t type, std::uint16_t flags = 0) : buffer_(1024) {
    header_ = mnl_nlmsg_put_header(buffer_.data());
    header_->nlmsg_type = type;
    header_->nlmsg_flags = flags;
  }
  template <typename Fixed>
  MessageBuilder& fixed(const Fixed& part) {
    std::memcpy(mnl_nlmsg_put_extra_header(header_, sizeof part), &part, sizeof part);
    return *this;
  }
  MessageBuilder& attribute(std::uint16_t type, std::span<const std::uint8_t> payload) {
    mnl_attr_put(header_, type, payload.size(), payload.data());
    return *this;
  }
  MessageBuilder& number(std::uint16_t type, std::uint32_t value) {
    mnl_attr_put_u32(header_, type, value);
    return *this;
  }
  MessageBuilder& text(std::uint16_t type, const std::string& value) {
    mnl_attr_put_strz(header_, type, value.c_str());
    return *this;
  }
  [[nodiscard]] nlmsghdr* header() noexcept { return header_; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept {
    return {reinterpret_cast<const std::uint8_t*>(header_), header_->nlmsg_len};
  }

 private:
  std::vector<std::uint32_t> buffer_;
  nlmsghdr* header_ = nullptr;
};

inline std::vector<std::uint8_t> bytes_of(Ipv4Address address) {
  return {static_cast<std::uint8_t>(address.bits >> 24), static_cast<std::uint8_t>(address.bits >> 16),
          static_cast<std::uint8_t>(address.bits >> 8), static_cast<std::uint8_t>(address.bits)};
}
inline std::vector<std::uint8_t> bytes_of(Ipv6Address address) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint64_t half : {address.high, address.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(half >> shift));
  }
  return bytes;
}
/// "10.0.0.1", or an IPv6 address.
inline std::vector<std::uint8_t> address_bytes(std::string_view text) {
  if (const auto ipv4 = parse_ipv4(text)) return bytes_of(*ipv4);
  return bytes_of(parse_ipv6(text).value());
}

inline constexpr unsigned kUpWithCarrier = IFF_UP | static_cast<unsigned>(IFF_LOWER_UP);

inline MessageBuilder link_message(int interface, const std::string& name, unsigned flags = kUpWithCarrier) {
  ifinfomsg part{};
  part.ifi_index = interface;
  part.ifi_flags = flags;
  MessageBuilder message(RTM_NEWLINK);
  message.fixed(part).text(IFLA_IFNAME, name);
  const std::vector<std::uint8_t> mac{2, 0, 0, 0, 0, static_cast<std::uint8_t>(interface)};
  message.attribute(IFLA_ADDRESS, mac);
  return message;
}

struct HopOf {
  std::string_view gateway;  // "": none
  int interface = 0;
  std::uint8_t weight = 1;
};

/// A route in `table`, with one next hop or several.
inline MessageBuilder route_message(std::uint16_t type, std::uint16_t flags, std::string_view address,
                                    std::uint8_t length, std::initializer_list<HopOf> hops, std::uint32_t metric = 0,
                                    std::uint8_t table = RT_TABLE_MAIN, std::uint8_t kind = RTN_UNICAST) {
  const std::vector<std::uint8_t> destination = address_bytes(address);
  rtmsg part{};
  part.rtm_family = destination.size() == 4 ? AF_INET : AF_INET6;
  part.rtm_dst_len = length;
  part.rtm_table = table;
  part.rtm_type = kind;
  MessageBuilder message(type, flags);
  message.fixed(part).attribute(RTA_DST, destination);
  if (metric != 0) message.number(RTA_PRIORITY, metric);
  if (hops.size() == 1) {
    if (!hops.begin()->gateway.empty()) message.attribute(RTA_GATEWAY, address_bytes(hops.begin()->gateway));
    message.number(RTA_OIF, static_cast<std::uint32_t>(hops.begin()->interface));
  } else if (hops.size() > 1) {
    std::vector<std::uint8_t> list;
    for (const HopOf& hop : hops) {
      std::vector<std::uint8_t> gateway =
          hop.gateway.empty() ? std::vector<std::uint8_t>() : address_bytes(hop.gateway);
      rtnexthop next{};
      next.rtnh_hops = static_cast<std::uint8_t>(hop.weight - 1);
      next.rtnh_ifindex = hop.interface;
      next.rtnh_len = static_cast<std::uint16_t>(sizeof next + (gateway.empty() ? 0 : sizeof(nlattr) + gateway.size()));
      const auto append = [&](const void* data, std::size_t size) {
        const auto* const bytes = static_cast<const std::uint8_t*>(data);
        list.insert(list.end(), bytes, bytes + size);
      };
      append(&next, sizeof next);
      if (gateway.empty()) continue;
      const nlattr attribute{static_cast<std::uint16_t>(sizeof(nlattr) + gateway.size()), RTA_GATEWAY};
      append(&attribute, sizeof attribute);
      append(gateway.data(), gateway.size());
    }
    message.attribute(RTA_MULTIPATH, list);
  }
  return message;
}

}  // namespace penstock::control
