// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A security association of ESP as the user gives it (RFC 4301 §4.4.2.1): what `ip xfrm state` prints of it, checked to
// be one that our code carries out. It owns its keys; they are wiped with it.

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
  IpAddress original;  // what a NAT has replaced, for transport mode; all zeros where it is not known

  friend bool operator==(const UdpEncapsulation&, const UdpEncapsulation&) = default;
};

/// How far the sequence numbers have got, 64 bits also without ESN (then below 2^32).
struct SequenceState {
  std::uint64_t sent = 0;      // the last one: the next packet out has the one above
  std::uint64_t received = 0;  // the highest one
  /// Which below and with it were received: bit i (bit i % 32 of word i / 32) stands for `received` - i.
  std::vector<std::uint32_t> window;

  friend bool operator==(const SequenceState&, const SequenceState&) = default;
};

struct SecurityAssociation {
  IpAddress source;  // of the outer header; all zeros (transport, in): any
  IpAddress destination;
  std::uint32_t spi = 0;  // never 0
  std::uint32_t reqid = 0;
  Mode mode = Mode::tunnel;

  Cipher cipher = Cipher::null;
  Secret cipher_key;  // 16, 24 or 32 bytes; none with Cipher::null
  Secret salt;        // the 4 bytes of RFC 3686's nonce (CTR) and RFC 4106's salt (GCM); none with the others
  Integrity integrity = Integrity::none;
  Secret integrity_key;
  std::uint8_t icv_bytes = 0;

  bool esn = false;                 // RFC 4304
  std::uint32_t replay_window = 0;  // in packets, as the file has it; 0: numbers are not checked
  SequenceState sequence;

  bool no_ecn = false;             // noecn: the outer header's ECN field is not the inner one's (RFC 4301 §5.1.2.1)
  bool decap_dscp = false;         // decap-dscp: inwards the outer DSCP replaces the inner one
  bool dont_encap_dscp = false;    // dont-encap-dscp: outwards the DSCP is 0
  bool no_pmtu_discovery = false;  // nopmtudisc: the outer DF bit stays clear
  bool icmp = false;               // inwards, an ICMP error is also let in by the packet that it is about
  bool any_family = false;         // af-unspec: the inner family need not be the outer one
  bool sequence_may_wrap = false;  // oseq-may-wrap: outwards, 1 follows 2^32 - 1 (without ESN)

  std::optional<UdpEncapsulation> udp;
  std::optional<Selector> selector;    // what it may carry; none: anything
  std::optional<Direction> direction;  // in or out, where the file says so
  std::uint32_t tfc_bytes = 0;         // tfcpad: packets are padded to this IP length (RFC 4303 §2.7); 0: not
  Lifetimes lifetimes;

  std::uint32_t line = 0;  // where it begins in its file
};

}  // namespace penstock::ipsec
