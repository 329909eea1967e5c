// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule as the inspector runs it: what it inspects, the conditions to check first, and its programs.

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

/// Rules are grouped by protocol class. A packet belongs to one class, a rule to one or several.
enum class ProtocolClass : std::uint8_t { tcp, udp, icmp, icmpv6, sctp, other_ip, not_ip };
inline constexpr std::size_t kProtocolClasses = 7;
using ProtocolClasses = std::uint8_t;  // one bit for each class
[[nodiscard]] constexpr ProtocolClasses bit_of(ProtocolClass protocol) noexcept {
  return static_cast<ProtocolClasses>(1U << static_cast<unsigned>(protocol));
}
[[nodiscard]] ProtocolClass protocol_class(const stack::DecodedPacket& packet) noexcept;

/// Suricata's signature types ("Rule Types and Categorization" of its user guide).
enum class RuleType : std::uint8_t {
  ip_only,        // only addresses, ports and protocol: evaluated once per flow and direction
  like_ip_only,   // the same with negated addresses: evaluated for every packet
  event_only,     // only events: also evaluated for packets that are not IP
  packet,         // only real packets
  packet_stream,  // stream and packet
  stream,
};

/// Preconditions of a rule on a packet, as bits of one word that is checked first.
enum class Need : std::uint8_t { payload, no_payload, flow, event, real_packet, established };
using Needs = std::uint8_t;
[[nodiscard]] constexpr Needs bit_of(Need need) noexcept {
  return static_cast<Needs>(1U << static_cast<unsigned>(need));
}

struct CompiledRule {
  const Rule* rule = nullptr;
  std::uint32_t index = 0;  // in RuleSet::rules
  RuleType type = RuleType::packet;
  bool looks_at_packets = false;  // its payload options are tested on packets
  bool looks_at_streams = false;
  bool any_header = false;           // the protocol class, addresses and ports need no further check
  bool acts_on_flow_always = false;  // Suricata's action scope: without it, only a match in a stream acts on the flow
  Needs needs = 0;
  ProtocolClasses protocols = 0;
  std::uint8_t directions = 0;  // one bit for each stack::Direction
  StreamReach stream_reach;     // of its payload options, if they are tested on streams
  // In InspectionBudget's units: the cost of evaluating the rule without its byte options, and of applying a match.
  std::uint32_t work = 0, work_of_match = 0;

  std::optional<BufferProgram> payload;
  struct Expression {
    std::uint32_t option = 0;  // index among the options on the payload
    ExpressionAutomaton automaton;
  };
  std::vector<Expression> expressions;  // of the options that are tested on streams
  struct HeaderProgram {
    Buffer buffer;
    BufferProgram program;
  };
  std::vector<HeaderProgram> headers;
};

/// The expressions that must match and that can be turned into an automaton; for contested bytes.
[[nodiscard]] std::vector<CompiledRule::Expression> expressions_of(std::span<const BufferMatch> options);

/// Fails if a regular expression does not compile.
[[nodiscard]] Result<CompiledRule> compile_rule(const Rule& rule, std::uint32_t index);

/// The type that `compile_rule` gives the rule.
[[nodiscard]] RuleType type_of(const Rule& rule, bool looks_at_packets, bool looks_at_streams);

[[nodiscard]] constexpr std::uint8_t bit_of(stack::Direction direction) noexcept {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(direction));
}

}  // namespace penstock::nids
