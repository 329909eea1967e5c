// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/frame_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "nf/firewall/rule_text.h"
#include "packet/ethernet.h"

namespace penstock::firewall::nftables {

namespace {

using classify::Value;
using Symbol = std::pair<std::string_view, std::uint64_t>;

// `nft describe ether_type`, `arp_op`
constexpr auto kEtherTypes = std::to_array<Symbol>({{"ip", ether_type::kIpv4},
                                                    {"ip6", ether_type::kIpv6},
                                                    {"arp", ether_type::kArp},
                                                    {"vlan", ether_type::kVlan},
                                                    {"8021q", ether_type::kVlan},
                                                    {"8021ad", ether_type::kQinQ}});
constexpr auto kArpOperations = std::to_array<Symbol>(
    {{"request", 1}, {"reply", 2}, {"rrequest", 3}, {"rreply", 4}, {"inrequest", 8}, {"inreply", 9}, {"nak", 10}});

constexpr std::uint64_t kBytes2 = 0xffff, kBytes6 = 0xffff'ffff'ffffU;

struct FrameField {
  std::string_view of, name;  // "arp" and "operation"
  Value value;
  std::uint64_t mask;
  unsigned shift = 0;
  Symbols names{};
  std::string_view set_type{};
};

constexpr std::array kFields{
    FrameField{"ether", "type", Value::ether_type, kBytes2, 0, kEtherTypes, "ether_type"},
    FrameField{"meta", "protocol", Value::protocol_of_frame, kBytes2, 0, kEtherTypes, "ether_type"},
    FrameField{"vlan", "id", Value::vlan_tci, 0x0fff},
    FrameField{"vlan", "dei", Value::vlan_tci, 0x1000, 12},
    FrameField{"vlan", "cfi", Value::vlan_tci, 0x1000, 12},
    FrameField{"vlan", "pcp", Value::vlan_tci, 0xe000, 13},
    FrameField{"vlan", "type", Value::vlan_type, kBytes2, 0, kEtherTypes, "ether_type"},
    FrameField{"arp", "htype", Value::arp_hardware_type, kBytes2},
    FrameField{"arp", "ptype", Value::arp_protocol_type, kBytes2, 0, kEtherTypes, "ether_type"},
    FrameField{"arp", "hlen", Value::arp_hardware_length, 0xff},
    FrameField{"arp", "plen", Value::arp_protocol_length, 0xff},
    FrameField{"arp", "operation", Value::arp_operation, kBytes2, 0, kArpOperations, "arp_op"},
};

struct ArpAddress {
  std::string_view name;
  Value value;
  bool is_ip;
};
constexpr std::array kArpAddresses{
    ArpAddress{"saddr ether", Value::arp_sender_mac, false}, ArpAddress{"daddr ether", Value::arp_target_mac, false},
    ArpAddress{"saddr ip", Value::arp_sender_ip, true}, ArpAddress{"daddr ip", Value::arp_target_ip, true}};

StepKey key_of(const FrameField& field) {
  StepKey key;
  key.operand = {field.value, {0, field.mask}};
  key.shift = field.shift;
  key.last = field.mask >> field.shift;
  key.names = field.names;
  key.set_type = field.set_type;
  return key;
}

StepKey key_of(const ArpAddress& address) {
  StepKey key;
  key.operand = {address.value};
  key.last = kBytes6;
  key.is_link_address = !address.is_ip;
  if (address.is_ip) {
    key.type = Type::ipv4_addr;
  } else {
    key.set_type = "ether_addr";
  }
  return key;
}

}  // namespace

FrameType frame_type_of(const Json& expression) {
  if (!expression.is_object() || expression.size() != 1) return {};
  const std::string& kind = expression.begin().key();
  const Json& value = expression.begin().value();
  if (kind == "&" && value.is_array() && !value.empty()) return frame_type_of(value[0]);
  if (kind == "exthdr") return {ether_type::kIpv6};
  if (kind == "meta") return {{}, text_of(value, "key") == "protocol"};
  if (kind != "payload") return {};
  const std::string_view of = text_of(value, "protocol");
  if (of == "arp") return {ether_type::kArp};
  if (of == "icmp") return {ether_type::kIpv4};
  if (of == "icmpv6") return {ether_type::kIpv6};
  return {{}, of == "ip" || of == "ip6" || of == "vlan"};
}

Checked<std::optional<StepKey>> read_frame_key(const Json& expression) {
  if (!expression.is_object() || expression.size() != 1) return std::nullopt;
  const std::string& kind = expression.begin().key();
  const Json& value = expression.begin().value();
  for (const std::string_view unknown : {"ct", "fib", "rt", "ipsec", "socket"}) {
    if (kind == unknown) return unsupported(fmt::format("{} is not supported in a table of family bridge", kind));
  }
  if ((kind != "payload" && kind != "meta") || !value.is_object()) return std::nullopt;
  const std::string_view of = kind == "meta" ? std::string_view("meta") : text_of(value, "protocol");
  const std::string_view name = text_of(value, kind == "meta" ? "key" : "field");
  if (of == "meta" && name == "nfproto") {
    return unsupported("meta nfproto is not supported in a table of family bridge: it is the same for all frames", "",
                       "ether type");
  }
  const auto* const field =
      std::ranges::find_if(kFields, [&](const FrameField& one) { return one.of == of && one.name == name; });
  if (field != kFields.end()) return key_of(*field);
  const auto* const address = std::ranges::find(kArpAddresses, name, &ArpAddress::name);
  if (of == "arp" && address != kArpAddresses.end()) return key_of(*address);
  return std::nullopt;
}

}  // namespace penstock::firewall::nftables
