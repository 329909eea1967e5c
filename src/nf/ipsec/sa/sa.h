// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An ESP security association as the user configures it (RFC 4301 §4.4.2.1): the output of `ip xfrm state`, checked to
// be one that is implemented. Owns its keys, which are wiped on destruction.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nf/ipsec/crypto/algorithms.h"
#include "nf/ipsec/crypto/secret.h"
#include "nf/ipsec/selection/selector.h"

namespace penstock::ipsec {

enum class Mode : std::uint8_t { transport, tunnel };

/// RFC 3948.
struct UdpEncapsulation {
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  IpAddress original;  // transport mode: the address that a NAT replaced; all zeros if unknown

  friend bool operator==(const UdpEncapsulation&, const UdpEncapsulation&) = default;
};

/// How far the sequence numbers have advanced; 64 bits even without ESN (then below 2^32).
struct SequenceState {
  std::uint64_t sent = 0;      // the last one sent; the next outbound packet uses `sent` + 1
  std::uint64_t received = 0;  // the highest one received
  /// Received numbers: bit i (bit i % 32 of word i / 32) stands for `received` - i.
  std::vector<std::uint32_t> window;

  friend bool operator==(const SequenceState&, const SequenceState&) = default;
};

struct SecurityAssociation {
  IpAddress source;  // of the outer header; all zeros (transport, inbound): any
  IpAddress destination;
  std::uint32_t spi = 0;  // never 0
  std::uint32_t reqid = 0;
  Mode mode = Mode::tunnel;

  Cipher cipher = Cipher::null;
  Secret cipher_key;  // 16, 24 or 32 bytes; empty with Cipher::null
  Secret salt;        // 4 bytes: RFC 3686's nonce (CTR) or RFC 4106's salt (GCM); empty with other ciphers
  Integrity integrity = Integrity::none;
  Secret integrity_key;
  std::uint8_t icv_bytes = 0;

  bool esn = false;                 // RFC 4304
  std::uint32_t replay_window = 0;  // in packets, as in the file; 0 disables the replay check
  SequenceState sequence;

  bool no_ecn = false;             // noecn: ECN is not copied between the inner and outer header (RFC 4301 §5.1.2.1)
  bool decap_dscp = false;         // decap-dscp: inbound, the outer DSCP replaces the inner one
  bool dont_encap_dscp = false;    // dont-encap-dscp: outbound, the outer DSCP is 0
  bool no_pmtu_discovery = false;  // nopmtudisc: the outer DF bit stays clear
  bool icmp = false;               // inbound, an ICMP error also matches by the packet that it quotes
  bool any_family = false;         // af-unspec: the inner family may differ from the outer one
  bool sequence_may_wrap = false;  // oseq-may-wrap: outbound, 1 follows 2^32 - 1 (without ESN)

  std::optional<UdpEncapsulation> udp;
  std::optional<Selector> selector;    // what it may carry; empty: anything
  std::optional<Direction> direction;  // in or out, if the file specifies it
  std::uint32_t tfc_bytes = 0;         // tfcpad: packets are padded to this IP length (RFC 4303 §2.7); 0: no padding
  Lifetimes lifetimes;

  std::uint32_t line = 0;  // where it starts in its file

  friend bool operator==(const SecurityAssociation&, const SecurityAssociation&) = default;
};

}  // namespace penstock::ipsec
