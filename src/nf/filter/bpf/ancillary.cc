// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/ancillary.h"

#include <cstddef>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

/// Its index in the arrays of names, which are by (offset - kAncillary) / 4; kNoName if it has none.
constexpr std::size_t kNoName = 16;
std::size_t name_index(std::uint32_t k) noexcept {
  const std::uint32_t offset = k - kAncillary;
  return !is_ancillary(k) || offset % 4 != 0 || offset / 4 >= kNoName ? kNoName : offset / 4;
}

}  // namespace

std::string_view ancillary_name(std::uint32_t k) noexcept {
  static constexpr std::string_view kNames[kNoName + 1] = {
      "protocol", "pkttype", "ifindex",   "nlattr",   "nlattr_nest",      "mark",       "queue",  "hatype",
      "rxhash",   "cpu",     "alu_xor_x", "vlan_tci", "vlan_tag_present", "pay_offset", "random", "vlan_tpid"};
  return kNames[name_index(k)];
}

std::string_view ancillary_abbreviation(std::uint32_t k) noexcept {
  static constexpr std::string_view kNames[kNoName + 1] = {"proto", "type",   "ifidx",  "nla",      "nlan",  "mark",
                                                           "queue", "hatype", "rxhash", "cpu",      "xor_x", "vlan_tci",
                                                           "vlanp", "poff",   "random", "vlan_tpid"};
  return kNames[name_index(k)];
}

std::vector<Instruction> protocol_of_frame(int link_type) {
  static constexpr std::uint32_t kIpv4 = 0x0800;
  static constexpr std::uint32_t kIpv6 = 0x86dd;
  switch (link_type) {
    case 1:  // Ethernet: eth_type_trans() of Linux
      return {
          {kLoadHalfAbs, 0, 0, 12},
          {kJumpGreaterEqualK, 5, 0, 0x600},  // an EtherType, and not a length; 0x8100 for a frame with a VLAN tag
          {kLoadHalfAbs, 0, 0, 14},
          {kJumpEqualK, 0, 2, 0xffff},
          {kLoadImmediate, 0, 0, 0x0001},  // ETH_P_802_3: raw IPX
          {kJump, 0, 0, 1},
          {kLoadImmediate, 0, 0, 0x0004},  // ETH_P_802_2
      };
    case 113: return {{kLoadHalfAbs, 0, 0, 14}};       // Linux cooked capture
    case 276: return {{kLoadHalfAbs, 0, 0, 0}};        // Linux cooked capture, version 2
    case 228: return {{kLoadImmediate, 0, 0, kIpv4}};  // IPv4
    case 229: return {{kLoadImmediate, 0, 0, kIpv6}};  // IPv6
    case 12:                                           // DLT_RAW
    case 101:                                          // LINKTYPE_RAW: IPv4 or IPv6
      return {
          {kLoadByteAbs, 0, 0, 0},       {kAndK, 0, 0, 0xf0}, {kJumpEqualK, 0, 2, 0x40},
          {kLoadImmediate, 0, 0, kIpv4}, {kJump, 0, 0, 4},    {kJumpEqualK, 0, 2, 0x60},
          {kLoadImmediate, 0, 0, kIpv6}, {kJump, 0, 0, 1},    {kLoadImmediate, 0, 0, 0},
      };
    default: return {};
  }
}

}  // namespace penstock::filter
