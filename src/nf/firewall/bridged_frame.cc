// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/bridged_frame.h"

#include "packet/mac_address.h"

namespace penstock::firewall {

namespace {

using classify::Number;
using classify::Value;

/// Linux's eth_type_trans and vlan_set_encap_proto: of frames that have a length instead of a type.
std::uint16_t protocol_at(PacketView packet, std::uint32_t type_at) noexcept {
  constexpr std::uint16_t kNovell = 1, k8022 = 4;  // ETH_P_802_3, ETH_P_802_2
  const std::uint16_t type = packet.at<Be16>(type_at).value();
  if (type >= ether_type::kLeast) return type;
  const bool is_raw = type_at + 4 <= packet.length() && packet.at<Be16>(type_at + 2).value() == 0xffff;
  return is_raw ? kNovell : k8022;
}

const ArpHeader* arp_of(PacketView packet, const BridgedFrame& frame) noexcept {
  if (frame.protocol != ether_type::kArp || frame.network_offset + sizeof(ArpHeader) > packet.length()) return nullptr;
  return &packet.at<ArpHeader>(frame.network_offset);
}

std::optional<Number> value_of_arp(const ArpHeader& arp, Value value) noexcept {
  switch (value) {
    case Value::arp_hardware_type: return Number{0, arp.hardware_type.value()};
    case Value::arp_protocol_type: return Number{0, arp.protocol_type.value()};
    case Value::arp_hardware_length: return Number{0, arp.hardware_length};
    case Value::arp_protocol_length: return Number{0, arp.protocol_length};
    case Value::arp_operation: return Number{0, arp.operation.value()};
    case Value::arp_sender_mac: return Number{0, to_number(arp.sender_mac)};
    case Value::arp_sender_ip: return Number{0, arp.sender_ip.value()};
    case Value::arp_target_mac: return Number{0, to_number(arp.target_mac)};
    case Value::arp_target_ip: return Number{0, arp.target_ip.value()};
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<BridgedFrame> read_bridged_frame(PacketView packet) noexcept {
  constexpr std::uint32_t kTypeAt = 12;
  if (packet.packet->link_type != LinkType::ethernet || packet.length() < sizeof(EthernetHeader)) return std::nullopt;
  BridgedFrame frame{packet.ethernet().type.value(), {}, 0, sizeof(EthernetHeader)};
  if (frame.ether_type == ether_type::kVlan || frame.ether_type == ether_type::kQinQ) {
    if (packet.length() < sizeof(EthernetHeader) + sizeof(VlanTag)) return std::nullopt;
    frame.tag = packet.at<VlanTag>(sizeof(EthernetHeader));
    frame.network_offset += sizeof(VlanTag);
  }
  frame.protocol = protocol_at(packet, frame.tag ? kTypeAt + std::uint32_t{sizeof(VlanTag)} : kTypeAt);
  return frame;
}

std::optional<Number> value_of_frame(PacketView packet, Value value) noexcept {
  const auto frame = read_bridged_frame(packet);
  if (!frame) return std::nullopt;
  switch (value) {
    case Value::ether_type: return Number{0, frame->ether_type};
    case Value::protocol_of_frame: return Number{0, frame->protocol};
    case Value::vlan_tci:
      if (frame->ether_type != ether_type::kVlan) return std::nullopt;
      return Number{0, frame->tag->tci.value()};
    case Value::vlan_type:
      if (frame->ether_type != ether_type::kVlan) return std::nullopt;
      return Number{0, frame->tag->type.value()};
    default: break;
  }
  const ArpHeader* const arp = arp_of(packet, *frame);
  return arp == nullptr ? std::nullopt : value_of_arp(*arp, value);
}

std::uint32_t bridged_bytes(PacketView packet) noexcept {
  const auto frame = read_bridged_frame(packet);
  return frame ? packet.packet->wire_length - frame->network_offset : 0;
}

Standing bridged_standing(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  const auto frame = read_bridged_frame(packet);
  if (!frame) {
    const bool is_cut = packet.packet->link_type == LinkType::ethernet && packet.packet->wire_length > packet.length();
    return is_cut ? Standing::truncated : Standing::malformed;
  }
  if (frame->is_ip()) {
    const Standing standing = standing_of(layout);
    return standing == Standing::not_ip ? Standing::malformed : standing;
  }
  // Hosts take no ARP that is cut off, but rules about its parts would miss it.
  if (frame->protocol == ether_type::kArp && arp_of(packet, *frame) == nullptr)
    return packet.packet->wire_length > packet.length() ? Standing::truncated : Standing::malformed;
  return Standing::judged;
}

classify::Key bridged_key(PacketView packet, std::span<const PortIndex> exits) noexcept {
  classify::Key key;
  const auto frame = read_bridged_frame(packet);
  if (frame && frame->is_ip()) {
    classify::make_key(packet, key);
  } else {
    key.family = NetworkLayer::other;
    key.in_port = packet.packet->in_port;
    key.out_port = packet.packet->verdict.value;
  }
  if (key.out_port == kNoPort && key.in_port < exits.size()) key.out_port = exits[key.in_port];
  return key;
}

}  // namespace penstock::firewall
