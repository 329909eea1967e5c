// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The firewall's decision for one packet, except the search for its rule: whether rules apply at all, what the engine's
// result means, and where it is counted. For host and device.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/host_device.h"
#include "classify/bitvector_core.h"
#include "classify/key.h"
#include "classify/linear_core.h"
#include "classify/rfc_core.h"
#include "classify/rule.h"
#include "classify/rules_view.h"
#include "classify/standing.h"
#include "conntrack/packet_connection.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// The value of Verdict::drop.
enum class DropReason : std::uint16_t {
  denied,            // by a rule or the policy
  rejected,          // the same, with the target reject; it may be answered (rejecter.h)
  malformed,         // a header that rules test contradicts itself
  truncated,         // the capture ends inside a header that rules test
  connections_full,  // it begins a connection, and there is no room for more
  untranslated,      // its connection cannot be translated as a rule says; only of firewalls that translate
  // Only of firewalls with helpers (conntrack::Helped).
  ftp_incomplete,  // it announces a data connection, but not in this packet alone, or not in the right form
  ftp_unexpected,  // it announces a data connection that cannot be expected
};
inline constexpr std::array<std::string_view, 8> kDropReasons{"denied",         "rejected",         "malformed",
                                                              "truncated",      "connections_full", "untranslated",
                                                              "ftp_incomplete", "ftp_unexpected"};

using classify::Standing;
using classify::standing_of;

/// Which packets a firewall judges, by where they come from and go: where the host has a port, its packets pass other
/// hooks than those that are forwarded.
struct Route {
  enum class End : std::uint8_t { any, host, network };

  PortIndex host = kNoPort;  // the host's port; kNoPort: all packets are judged
  End from = End::any, to = End::any;

  [[nodiscard]] constexpr bool has(const PacketDescriptor& packet) const noexcept {
    if (host == kNoPort) return true;
    const bool from_host = packet.in_port == host, to_host = packet.verdict.value == host;
    return (from == End::any || from_host == (from == End::host)) && (to == End::any || to_host == (to == End::host));
  }
};

[[nodiscard]] inline Standing standing_of(PacketView packet, Route route) noexcept {
  return route.has(*packet.packet) ? standing_of(packet.layout()) : Standing::elsewhere;
}

/// The verdict for a packet to which no rule applies, and which has the verdict `so_far`.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Verdict verdict_of(Standing standing, Verdict so_far) noexcept {
  switch (standing) {
    case Standing::malformed: return Verdict::drop(DropReason::malformed);
    case Standing::truncated: return Verdict::drop(DropReason::truncated);
    case Standing::judged:
    case Standing::elsewhere:
    case Standing::not_ip: break;
  }
  return so_far;
}

/// The verdict for a packet that a rule or the policy decides.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Verdict verdict_of(classify::Action action, Verdict so_far) noexcept {
  if (action == classify::Action::accept) return so_far;
  return Verdict::drop(action == classify::Action::reject ? DropReason::rejected : DropReason::denied);
}

/// The complete decision for one packet. `Engine` is LinearView, BitVectorView or RfcView.
template <typename Engine>
struct JudgeCore {
  using Finding = std::uint32_t;  // index of the packet's counter, or kNoCounter

  Engine engine;
  classify::RulesView rules;

  /// `connection`: as Key::connection.
  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict operator()(
      PacketView packet, Finding& counter, std::uint8_t connection = number_of(classify::Connection{})) const noexcept {
    const Verdict so_far = packet.packet->verdict;
    const Standing standing = standing_of(packet.layout());
    if (standing != Standing::judged) {
      counter = classify::kNoCounter;
      return verdict_of(standing, so_far);
    }
    classify::Key key;
    classify::make_key(packet, key, connection);
    const classify::Decision decided = classify::decision(rules, classify::deciding_entry(engine, key), key.family);
    counter = decided.counter;
    return verdict_of(decided.action, so_far);
  }
};

/// The same decision with rules that test connections.
template <typename Engine>
struct TrackedJudgeCore {
  using Finding = std::uint32_t;
  using State = conntrack::PacketConnection;

  JudgeCore<Engine> judge;

  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet, const State& state,
                                                        Finding& counter) const noexcept {
    if (state.full == 0) return judge(packet, counter, state.number);
    counter = classify::kNoCounter;
    return Verdict::drop(DropReason::connections_full);
  }
};

}  // namespace penstock::firewall
