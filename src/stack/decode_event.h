// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors and anomalies in a packet's headers, by Suricata's names (decode-events.rules).

#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::stack {

/// Index into kDecodeEventNames.
struct DecodeEvent {
  std::uint16_t index = 0;
};
inline constexpr std::size_t kMostDecodeEvents = 256;
using DecodeEvents = std::bitset<kMostDecodeEvents>;

/// All decode events of Suricata 8 and earlier, including some that the decoder never sets.
inline constexpr auto kDecodeEventNames = std::to_array<std::string_view>({
    "ipv4.pkt_too_small",
    "ipv4.hlen_too_small",
    "ipv4.iplen_smaller_than_hlen",
    "ipv4.trunc_pkt",
    "ipv4.opt_invalid",
    "ipv4.opt_invalid_len",
    "ipv4.opt_malformed",
    "ipv4.opt_pad_required",
    "ipv4.opt_eol_required",
    "ipv4.opt_duplicate",
    "ipv4.opt_unknown",
    "ipv4.wrong_ip_version",
    "ipv4.icmpv6",
    "ipv4.frag_pkt_too_large",
    "ipv4.frag_too_large",
    "ipv4.frag_overlap",
    "ipv4.frag_ignored",
    "ipv4.unknown_protocol",
    "icmpv4.pkt_too_small",
    "icmpv4.unknown_type",
    "icmpv4.unknown_code",
    "icmpv4.ipv4_trunc_pkt",
    "icmpv4.ipv4_unknown_ver",
    "icmpv6.unknown_type",
    "icmpv6.unknown_code",
    "icmpv6.pkt_too_small",
    "icmpv6.ipv6_unknown_version",
    "icmpv6.ipv6_trunc_pkt",
    "icmpv6.mld_message_with_invalid_hl",
    "icmpv6.unassigned_type",
    "icmpv6.experimentation_type",
    "ipv6.pkt_too_small",
    "ipv6.trunc_pkt",
    "ipv6.trunc_exthdr",
    "ipv6.exthdr_dupl_fh",
    "ipv6.exthdr_useless_fh",
    "ipv6.exthdr_dupl_rh",
    "ipv6.exthdr_dupl_hh",
    "ipv6.exthdr_dupl_dh",
    "ipv6.exthdr_dupl_ah",
    "ipv6.exthdr_dupl_eh",
    "ipv6.exthdr_invalid_optlen",
    "ipv6.wrong_ip_version",
    "ipv6.exthdr_ah_res_not_null",
    "ipv6.hopopts_unknown_opt",
    "ipv6.hopopts_only_padding",
    "ipv6.dstopts_unknown_opt",
    "ipv6.dstopts_only_padding",
    "ipv6.rh_type_0",
    "ipv6.zero_len_padn",
    "ipv6.fh_non_zero_reserved_field",
    "ipv6.data_after_none_header",
    "ipv6.unknown_next_header",
    "ipv6.icmpv4",
    "ipv6.frag_pkt_too_large",
    "ipv6.frag_too_large",
    "ipv6.frag_overlap",
    "ipv6.frag_invalid_length",
    "ipv6.frag_ignored",
    "ipv6.ipv4_in_ipv6_too_small",
    "ipv6.ipv4_in_ipv6_wrong_version",
    "ipv6.ipv6_in_ipv6_too_small",
    "ipv6.ipv6_in_ipv6_wrong_version",
    "tcp.pkt_too_small",
    "tcp.hlen_too_small",
    "tcp.invalid_optlen",
    "tcp.opt_invalid_len",
    "tcp.opt_duplicate",
    "udp.pkt_too_small",
    "udp.hlen_too_small",
    "udp.hlen_invalid",
    "udp.len_invalid",
    "sctp.pkt_too_small",
    "esp.pkt_too_small",
    "sll.pkt_too_small",
    "sll2.pkt_too_small",
    "ethernet.pkt_too_small",
    "ethernet.unknown_ethertype",
    "ppp.pkt_too_small",
    "ppp.vju_pkt_too_small",
    "ppp.ip4_pkt_too_small",
    "ppp.ip6_pkt_too_small",
    "ppp.wrong_type",
    "ppp.unsup_proto",
    "pppoe.pkt_too_small",
    "pppoe.wrong_code",
    "pppoe.malformed_tags",
    "gre.pkt_too_small",
    "gre.wrong_version",
    "gre.version0_recur",
    "gre.version0_flags",
    "gre.version0_hdr_too_big",
    "gre.version0_malformed_sre_hdr",
    "gre.version1_chksum",
    "gre.version1_route",
    "gre.version1_ssr",
    "gre.version1_recur",
    "gre.version1_flags",
    "gre.version1_no_key",
    "gre.version1_wrong_protocol",
    "gre.version1_malformed_sre_hdr",
    "gre.version1_hdr_too_big",
    "vlan.header_too_small",
    "vlan.unknown_type",
    "vlan.too_many_layers",
    "ieee8021ah.header_too_small",
    "vntag.header_too_small",
    "vntag.unknown_type",
    "etag.header_too_small",
    "etag.unknown_type",
    "ipraw.invalid_ip_version",
    "ltnull.pkt_too_small",
    "ltnull.unsupported_type",
    "mpls.header_too_small",
    "mpls.pkt_too_small",
    "mpls.bad_label_router_alert",
    "mpls.bad_label_implicit_null",
    "mpls.bad_label_reserved",
    "mpls.unknown_payload_type",
    "vxlan.unknown_payload_type",
    "geneve.unknown_payload_type",
    "erspan.header_too_small",
    "erspan.unsupported_version",
    "erspan.too_many_vlan_layers",
    "dce.pkt_too_small",
    "chdlc.pkt_too_small",
    "nsh.header_too_small",
    "nsh.unsupported_version",
    "nsh.bad_header_length",
    "nsh.reserved_type",
    "nsh.unsupported_type",
    "nsh.unknown_payload",
    "arp.pkt_too_small",
    "arp.unsupported_hardware",
    "arp.unsupported_protocol",
    "arp.unsupported_pkt",
    "arp.invalid_pkt",
    "arp.invalid_hardware_size",
    "arp.invalid_protocol_size",
    "arp.unsupported_opcode",
    "afpacket.truncated_packet",
    "too_many_layers",
});
static_assert(kDecodeEventNames.size() <= kMostDecodeEvents);

/// The event with this name, such as "ipv4.pkt_too_small"; nullopt if there is none.
[[nodiscard]] std::optional<DecodeEvent> decode_event_of(std::string_view name) noexcept;

/// The same for a name known at compile time. An unknown name does not compile.
[[nodiscard]] consteval DecodeEvent decode_event(std::string_view name) {
  for (std::size_t i = 0; i < kDecodeEventNames.size(); ++i) {
    if (kDecodeEventNames[i] == name) return {static_cast<std::uint16_t>(i)};
  }
  throw "no such event";
}

}  // namespace penstock::stack
