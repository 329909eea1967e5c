// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/ancillary.h"

#include <cstddef>

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

}  // namespace penstock::filter
