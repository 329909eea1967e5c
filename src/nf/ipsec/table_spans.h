// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables in host memory, as they are copied to a device: views of `Tables`, or of a recipe that another process made.
// Borrow everything.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/siphash_core.h"
#include "nf/ipsec/crypto/keys.h"
#include "nf/ipsec/selection/selection.h"
#include "nf/ipsec/tables.h"

namespace penstock::ipsec {

/// Of one direction. Arrays by SA have the same length.
struct TableSpans {
  SelectionSpans selection;
  InboundSpans inbound;                      // empty outbound
  std::span<const std::uint32_t> windows;    // by SA: packets of its replay window
  std::span<const unsigned long long> tops;  // by SA: the highest authenticated sequence number
  std::span<const SaKeys> keys;              // by SA
  bool has_policies = false;
};

/// Of an outbound stage for which the host decides. Arrays by SA have the same length.
struct SealingSpans {
  std::span<const SaView> sas;
  std::span<const SaKeys> keys;
  FrameRoom growth;               // how much frames may grow
  std::span<const SipKey> key{};  // of decisions; empty: they are not signed
};

/// How far SAs have got, by SA, at the time of construction.
struct ReceivedSoFar {
  explicit ReceivedSoFar(const Tables& tables);
  std::vector<std::uint32_t> windows;
  std::vector<unsigned long long> tops;
};

/// Borrows both.
[[nodiscard]] TableSpans spans_of(const Tables& tables, const ReceivedSoFar& received);

}  // namespace penstock::ipsec
