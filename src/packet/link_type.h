// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The supported link layers that carry IP, with libpcap's names for them (pcap-linktype(7)).

#pragma once

#include <cstdint>

namespace penstock {

enum class LinkType : std::uint8_t {
  ethernet,    // DLT_EN10MB
  raw_ip,      // DLT_RAW, DLT_IPV4, DLT_IPV6: the frame is the IP packet
  null_host,   // DLT_NULL: a 4-byte address family in the capturing host's byte order
  loop,        // DLT_LOOP: a 4-byte address family in network byte order
  linux_sll,   // DLT_LINUX_SLL: "cooked" v1, 16 bytes
  linux_sll2,  // DLT_LINUX_SLL2: "cooked" v2, 20 bytes
  ppp,         // DLT_PPP, DLT_PPP_SERIAL: with or without address and control bytes
  cisco_hdlc,  // DLT_C_HDLC
};

}  // namespace penstock
