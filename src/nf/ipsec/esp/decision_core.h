// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound, where a device does not choose SAs and numbers itself: what the host has decided about a packet crosses
// with it, and the device carries it out. Both may come from another process that lies, so any decision about any
// packet stays within the SAs and within the packet's room.

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/host_device.h"
#include "base/siphash_core.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/esp/used_numbers_core.h"

namespace penstock::ipsec {

struct Decision {
  enum class Kind : std::uint8_t {
    left_to_cpu,  // also where nothing has been decided: all zeros
    passes,       // unprotected
    dropped,
    protected_by_sa,
  };

  std::uint64_t sequence = 0;  // of the SA, used for no other packet
  std::uint32_t sa = 0;
  std::uint16_t reason = 0;  // why it is dropped
  Kind kind = Kind::left_to_cpu;
  std::uint8_t reserved = 0;
};
static_assert(sizeof(Decision) == 16 && std::has_unique_object_representations_v<Decision>);

/// Where who has decided, and thus has the keys, is another process than who has the packets: that one can neither
/// change decisions nor make any. It can repeat them, but a number is used once (SealingView::used).
struct SignedDecision {
  Decision decision;
  std::uint64_t mac = 0;
};
static_assert(sizeof(SignedDecision) == 24 && std::has_unique_object_representations_v<SignedDecision>);

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t mac_of(const Decision& decision, SipKey key) noexcept {
  return siphash(key, {decision.sequence, std::uint64_t{decision.sa} | std::uint64_t{decision.reason} << 32 |
                                              static_cast<std::uint64_t>(decision.kind) << 48 |
                                              std::uint64_t{decision.reserved} << 56});
}

/// Borrows the SAs, on the host or on a device.
struct SealingView {
  const SaView* sas = nullptr;
  std::uint32_t count = 0;
  FrameRoom growth;         // how much frames may grow
  bool are_signed = false;  // the decisions. If so:
  SipKey key{};
  UsedNumbersView used{};
};

/// Of `packet`, among the states that have come with a batch. Looks at them once. One with a wrong MAC says nothing.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Decision decision_of(const std::byte* states, std::uint32_t packet,
                                                               const SealingView& tables) noexcept {
  if (!tables.are_signed) return reinterpret_cast<const Decision*>(states)[packet];
  const SignedDecision given = reinterpret_cast<const SignedDecision*>(states)[packet];
  // Takes the same time wherever they differ.
  return mac_of(given.decision, tables.key) == given.mac ? given.decision : Decision{};
}

/// For a forwarded packet with a parsed layout: writes its verdict, and lays it out for its SA. Returns the job that
/// seals it; without an SA, nothing is to be sealed.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline CryptoJob carry_out(const Decision& decision, PacketView& packet,
                                                              const SealingView& tables) noexcept {
  Verdict& verdict = packet.packet->verdict;
  switch (decision.kind) {
    case Decision::Kind::passes: return {};
    case Decision::Kind::dropped: verdict = Verdict::drop(decision.reason); return {};
    case Decision::Kind::protected_by_sa: {
      if (decision.sa >= tables.count) break;
      const SaView& sa = tables.sas[decision.sa];
      // The host has found that both hold, so the number is not lost.
      Reason reason = standing_of(packet.layout());
      Encapsulation plan;
      if (reason == Reason::none) {
        plan = plan_encapsulation(packet, sa, tables.growth);
        reason = plan.reason;
      }
      if (reason == Reason::none && tables.are_signed && !tables.used.take(decision.sa, decision.sequence)) break;
      if (reason == Reason::none) return encapsulate(packet, sa, decision.sa, plan, decision.sequence);
      verdict = Verdict::drop(reason);
      return {};
    }
    case Decision::Kind::left_to_cpu: break;
  }
  verdict = Verdict::punt();
  return {};
}

}  // namespace penstock::ipsec
