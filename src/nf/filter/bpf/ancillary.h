// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Linux's extensions of absolute loads (linux/filter.h): large offsets stand for what the kernel knows of a packet, and
// for positions relative to its headers.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

inline constexpr std::uint32_t kAncillary = 0xfffff000;      // SKF_AD_OFF
inline constexpr std::uint32_t kNetworkHeader = 0xfff00000;  // SKF_NET_OFF
inline constexpr std::uint32_t kLinkHeader = 0xffe00000;     // SKF_LL_OFF

inline constexpr std::uint32_t kAncillaryProtocol = kAncillary + 0;
inline constexpr std::uint32_t kAncillaryVlanTci = kAncillary + 44;
inline constexpr std::uint32_t kAncillaryVlanPresent = kAncillary + 48;
inline constexpr std::uint32_t kAncillaryVlanTpid = kAncillary + 60;

[[nodiscard]] constexpr bool is_ancillary(std::uint32_t k) noexcept { return k >= kAncillary; }
/// The VLAN tag that a kernel has taken out of the frame.
[[nodiscard]] constexpr bool is_vlan_tag(std::uint32_t k) noexcept {
  return k == kAncillaryVlanTci || k == kAncillaryVlanPresent || k == kAncillaryVlanTpid;
}

/// "protocol", "vlan_tci" …, as linux/filter.h names them; empty if no ancillary data is at this offset.
[[nodiscard]] std::string_view ancillary_name(std::uint32_t k) noexcept;
/// "proto", "vlan_tci" …, as libpcap's bpf_image() prints them.
[[nodiscard]] std::string_view ancillary_abbreviation(std::uint32_t k) noexcept;

/// What gives the frame's EtherType as the kernel has it, `protocol`, in A. X is kept, and all jumps go to the end at
/// most. Empty if frames of this link type (DLT_ or LINKTYPE_) have none.
[[nodiscard]] std::vector<Instruction> protocol_of_frame(int link_type);

}  // namespace penstock::filter
