// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule as the inspector runs it: what it looks at, what must be there before it is worth a look, its programs.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "nf/nids/detect/buffer_program.h"
#include "nf/nids/detect/expression_automaton.h"
#include "nf/nids/detect/stream_reach.h"
#include "nf/nids/rules/rule.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// Groups of rules are made for each. A packet is in one, a rule's protocol in one or several.
enum class ProtocolClass : std::uint8_t { tcp, udp, icmp, icmpv6, sctp, other_ip, not_ip };
inline constexpr std::size_t kProtocolClasses = 7;
using ProtocolClasses = std::uint8_t;  // a bit for each
[[nodiscard]] constexpr ProtocolClasses bit_of(ProtocolClass protocol) noexcept {
  return static_cast<ProtocolClasses>(1U << static_cast<unsigned>(protocol));
}
[[nodiscard]] ProtocolClass protocol_class(const stack::DecodedPacket& packet) noexcept;

/// Suricata's signature types ("Rule Types and Categorization" of its user guide).
enum class RuleType : std::uint8_t {
  ip_only,        // nothing but addresses, ports and protocol: once for each flow and direction
  like_ip_only,   // the same with negated addresses: every packet
  event_only,     // events alone: also of packets that are no IP
  packet,         // real packets alone
  packet_stream,  // stream and packet
  stream,
};

/// What a packet must have for a rule to hold on it: checked first, a word at once.
enum class Need : std::uint8_t { payload, no_payload, flow, event, real_packet, established };
using Needs = std::uint8_t;
[[nodiscard]] constexpr Needs bit_of(Need need) noexcept {
  return static_cast<Needs>(1U << static_cast<unsigned>(need));
}

struct CompiledRule {
  const Rule* rule = nullptr;
  std::uint32_t index = 0;  // in RuleSet::rules
  RuleType type = RuleType::packet;
  bool looks_at_packets = false;  // its payload options
  bool looks_at_streams = false;
  bool any_header = false;           // protocol's class, addresses and ports leave nothing to compare
  bool acts_on_flow_always = false;  // Suricata's action scope: of others only a match in a stream acts on the flow
  Needs needs = 0;
  ProtocolClasses protocols = 0;
  std::uint8_t directions = 0;  // bit of stack::Direction
  StreamReach stream_reach;     // of its payload options, where they look at streams
  // In InspectionBudget's units: what it takes to evaluate it, without its options on bytes; and what a match does.
  std::uint32_t work = 0, work_of_match = 0;

  std::optional<BufferProgram> payload;
  struct Expression {
    std::uint32_t option = 0;  // of those on the payload
    ExpressionAutomaton automaton;
  };
  std::vector<Expression> expressions;  // of options on a stream's payload
  struct HeaderProgram {
    Buffer buffer;
    BufferProgram program;
  };
  std::vector<HeaderProgram> headers;
};

/// Those that must match, and that an automaton can be made of: for contested bytes.
[[nodiscard]] std::vector<CompiledRule::Expression> expressions_of(std::span<const BufferMatch> options);

/// Fails where a regular expression does not compile.
[[nodiscard]] Result<CompiledRule> compile_rule(const Rule& rule, std::uint32_t index);

/// As `compile_rule` finds it.
[[nodiscard]] RuleType type_of(const Rule& rule, bool looks_at_packets, bool looks_at_streams);

[[nodiscard]] constexpr std::uint8_t bit_of(stack::Direction direction) noexcept {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(direction));
}

}  // namespace penstock::nids
