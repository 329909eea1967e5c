// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/compiled_rule.h"

#include <algorithm>

namespace penstock::nids {

namespace {

constexpr std::uint8_t kIcmp = 1;
constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kIcmpv6 = 58;
constexpr std::uint8_t kSctp = 132;

constexpr ProtocolClasses kAllIp = bit_of(ProtocolClass::tcp) | bit_of(ProtocolClass::udp) |
                                   bit_of(ProtocolClass::icmp) | bit_of(ProtocolClass::icmpv6) |
                                   bit_of(ProtocolClass::sctp) | bit_of(ProtocolClass::other_ip);

ProtocolClasses classes_of(RuleProtocol protocol) noexcept {
  switch (protocol) {
    case RuleProtocol::ip:
    case RuleProtocol::ipv4:
    case RuleProtocol::ipv6: return kAllIp;
    case RuleProtocol::pkthdr: return kAllIp | bit_of(ProtocolClass::not_ip);
    case RuleProtocol::tcp:
    case RuleProtocol::tcp_pkt:
    case RuleProtocol::tcp_stream: return bit_of(ProtocolClass::tcp);
    case RuleProtocol::udp: return bit_of(ProtocolClass::udp);
    case RuleProtocol::icmp: return bit_of(ProtocolClass::icmp) | bit_of(ProtocolClass::icmpv6);
    case RuleProtocol::icmpv4: return bit_of(ProtocolClass::icmp);
    case RuleProtocol::icmpv6: return bit_of(ProtocolClass::icmpv6);
    case RuleProtocol::sctp: return bit_of(ProtocolClass::sctp);
  }
  return 0;
}

bool asks_of_flow(const FlowMatch& flow) noexcept {
  return flow.to_server || flow.to_client || flow.established || flow.not_established || flow.stateless ||
         flow.only_stream || flow.no_stream || flow.only_frag || flow.no_frag;
}

bool is_event(const PacketMatch& match) noexcept {
  return std::holds_alternative<DecodeEventMatch>(match) || std::holds_alternative<StreamEventMatch>(match);
}

/// Whether Suricata evaluates the option only on packets. Options about sessions and events do not matter here.
bool asks_of_packet(const PacketMatch& match) noexcept {
  return !is_event(match) && !std::holds_alternative<StreamSize>(match) &&
         !std::holds_alternative<ChecksumMatch>(match);
}

const BufferMatches* buffer_of(const Rule& rule, Buffer buffer) noexcept {
  const auto found = std::find_if(rule.buffers.begin(), rule.buffers.end(),
                                  [&](const BufferMatches& matches) { return matches.buffer == buffer; });
  return found == rule.buffers.end() || found->matches.empty() ? nullptr : &*found;
}

bool has_header_buffer(const Rule& rule) noexcept {
  return std::any_of(rule.buffers.begin(), rule.buffers.end(), [](const BufferMatches& matches) {
    return matches.buffer != Buffer::payload && matches.buffer != Buffer::base64_data;
  });
}

struct Looks {
  bool packets, streams;
};

/// Suricata's SIG_FLAG_REQUIRE_PACKET and SIG_FLAG_REQUIRE_STREAM.
Looks looks_of(const Rule& rule) {
  Looks looks{rule.protocol == RuleProtocol::tcp_pkt || rule.flow.no_stream || has_header_buffer(rule) ||
                  std::any_of(rule.packet_matches.begin(), rule.packet_matches.end(), asks_of_packet),
              rule.protocol == RuleProtocol::tcp_stream || rule.flow.only_stream};
  const BufferMatches* const payload = buffer_of(rule, Buffer::payload);
  if (payload == nullptr || looks.packets || looks.streams) return looks;
  if ((classes_of(rule.protocol) & bit_of(ProtocolClass::tcp)) == 0) return {true, false};
  looks.streams = true;
  looks.packets = std::any_of(payload->matches.begin(), payload->matches.end(),
                              [](const BufferMatch& match) {
                                const auto* const content = std::get_if<Content>(&match);
                                return content != nullptr && (content->offset || content->depth);
                              }) ||
                  std::any_of(rule.packet_matches.begin(), rule.packet_matches.end(),
                              [](const PacketMatch& match) { return std::holds_alternative<StreamSize>(match); });
  return looks;
}

/// What a dsize implies about the payload. As in Suricata, `!N`, `>N`, `>=N` and `A<>B` require a payload, even if 0
/// would match.
Needs needs_of(const NumberRange& dsize) noexcept {
  using Operator = NumberRange::Operator;
  switch (dsize.operation) {
    case Operator::equal: return dsize.first == 0 ? bit_of(Need::no_payload) : bit_of(Need::payload);
    case Operator::not_equal:
    case Operator::greater:
    case Operator::greater_equal:
    case Operator::between: return bit_of(Need::payload);
    case Operator::less:
    case Operator::less_equal:
    case Operator::not_between: return 0;
  }
  return 0;
}

Needs needs_of(const Rule& rule, RuleType type) {
  Needs needs = 0;
  if (buffer_of(rule, Buffer::payload) != nullptr) needs |= bit_of(Need::payload);
  if (asks_of_flow(rule.flow) || !rule.state_matches.empty()) needs |= bit_of(Need::flow);
  if (rule.flow.established) needs |= bit_of(Need::established);
  if (type == RuleType::packet) needs |= bit_of(Need::real_packet);
  for (const PacketMatch& match : rule.packet_matches) {
    if (is_event(match)) needs |= bit_of(Need::event);
    if (const auto* const dsize = std::get_if<Dsize>(&match)) needs |= needs_of(dsize->range);
  }
  return needs;
}

std::uint32_t work_of(const PacketMatch& match) noexcept {
  constexpr std::uint32_t kWorkOfComparison = 4, kWorkOfChecksum = 256;
  return std::holds_alternative<ChecksumMatch>(match) ? kWorkOfChecksum : kWorkOfComparison;
}

// State of hosts is looked up under a lock.
constexpr std::uint32_t kWorkOfFlowRecord = 32, kWorkOfHostRecord = 128;

std::uint32_t work_of(const StateMatch& match) noexcept {
  if (std::holds_alternative<XbitsMatch>(match)) return kWorkOfHostRecord;
  const auto* const bits = std::get_if<FlowbitsMatch>(&match);
  return kWorkOfFlowRecord * (bits == nullptr ? 1 : static_cast<std::uint32_t>(bits->bits.size()));
}

std::uint32_t work_of_evaluation(const Rule& rule) noexcept {
  std::uint32_t work = kWorkOfStep;
  for (const PacketMatch& match : rule.packet_matches) work += work_of(match);
  for (const StateMatch& match : rule.state_matches) work += work_of(match);
  return work;
}

std::uint32_t work_of_match(const Rule& rule) noexcept {
  std::uint32_t work = kWorkOfHostRecord * static_cast<std::uint32_t>(rule.tags.size() + (rule.threshold ? 1 : 0));
  for (const StateChange& change : rule.state_changes) {
    work += std::holds_alternative<XbitsChange>(change) ? kWorkOfHostRecord : kWorkOfFlowRecord;
  }
  return work;
}

}  // namespace

ProtocolClass protocol_class(const stack::DecodedPacket& packet) noexcept {
  if (packet.ip_version == 0) return ProtocolClass::not_ip;
  switch (packet.protocol) {
    case kTcp: return ProtocolClass::tcp;
    case kUdp: return ProtocolClass::udp;
    case kIcmp: return ProtocolClass::icmp;
    case kIcmpv6: return ProtocolClass::icmpv6;
    case kSctp: return ProtocolClass::sctp;
    default: return ProtocolClass::other_ip;
  }
}

RuleType type_of(const Rule& rule, bool looks_at_packets, bool looks_at_streams) {
  const bool buffers = std::any_of(rule.buffers.begin(), rule.buffers.end(),
                                   [](const BufferMatches& matches) { return !matches.matches.empty(); });
  const bool only_sets_flowbits =
      rule.state_matches.empty() &&
      std::all_of(rule.state_changes.begin(), rule.state_changes.end(), [](const StateChange& change) {
        if (const auto* const bits = std::get_if<FlowbitsChange>(&change)) {
          return bits->how == FlowbitsChange::How::set;
        }
        return std::holds_alternative<XbitsChange>(change);
      });
  if (!buffers && rule.packet_matches.empty() && !asks_of_flow(rule.flow) && only_sets_flowbits) {
    return rule.negates_addresses ? RuleType::like_ip_only : RuleType::ip_only;
  }
  if (!buffers && !rule.packet_matches.empty() && !asks_of_flow(rule.flow) && rule.state_matches.empty() &&
      std::all_of(rule.packet_matches.begin(), rule.packet_matches.end(), is_event)) {
    return RuleType::event_only;
  }
  if (has_header_buffer(rule) || buffer_of(rule, Buffer::payload) == nullptr) return RuleType::packet;
  if (looks_at_streams) return looks_at_packets ? RuleType::packet_stream : RuleType::stream;
  return RuleType::packet;
}

std::vector<CompiledRule::Expression> expressions_of(std::span<const BufferMatch> options) {
  std::vector<CompiledRule::Expression> expressions;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto* const pcre = std::get_if<Pcre>(&options[i]);
    if (pcre == nullptr || pcre->negated || pcre->of != Pcre::Of::buffer) continue;
    if (auto automaton = ExpressionAutomaton::of(*pcre)) {
      expressions.push_back({static_cast<std::uint32_t>(i), std::move(*automaton)});
    }
  }
  return expressions;
}

Result<CompiledRule> compile_rule(const Rule& rule, std::uint32_t index) {
  CompiledRule compiled;
  compiled.rule = &rule;
  compiled.index = index;
  const Looks looks = looks_of(rule);
  compiled.looks_at_packets = looks.packets;
  compiled.looks_at_streams = looks.streams;
  compiled.type = type_of(rule, looks.packets, looks.streams);
  compiled.needs = needs_of(rule, compiled.type);
  compiled.work = work_of_evaluation(rule);
  compiled.work_of_match = work_of_match(rule);
  compiled.protocols = classes_of(rule.protocol);
  if (compiled.type == RuleType::event_only) compiled.protocols |= bit_of(ProtocolClass::not_ip);
  compiled.acts_on_flow_always = compiled.type == RuleType::ip_only || compiled.type == RuleType::like_ip_only;
  compiled.any_header = rule.protocol != RuleProtocol::ipv4 && rule.protocol != RuleProtocol::ipv6 &&
                        rule.source.is_any() && rule.destination.is_any() && rule.source_ports.is_any() &&
                        rule.destination_ports.is_any();
  const bool one_direction = rule.flow.to_server != rule.flow.to_client;
  if (!one_direction || rule.flow.to_server) compiled.directions |= bit_of(stack::Direction::to_server);
  if (!one_direction || rule.flow.to_client) compiled.directions |= bit_of(stack::Direction::to_client);

  const BufferMatches* const base64 = buffer_of(rule, Buffer::base64_data);
  const std::span<const BufferMatch> of_base64 =
      base64 == nullptr ? std::span<const BufferMatch>() : std::span<const BufferMatch>(base64->matches);
  for (const BufferMatches& matches : rule.buffers) {
    if (matches.matches.empty() || matches.buffer == Buffer::base64_data) continue;
    auto program = BufferProgram::compile(matches, of_base64);
    if (!program) {
      for (Error& error : program.error()) {
        if (error.place.file.empty()) error.place = {rule.file, rule.line, 0};
      }
      return tl::unexpected(std::move(program.error()));
    }
    if (matches.buffer == Buffer::payload) {
      compiled.payload.emplace(std::move(*program));
      if (compiled.looks_at_streams) {
        compiled.stream_reach = stream_reach(matches.matches);
        compiled.expressions = expressions_of(matches.matches);
      }
    } else {
      compiled.headers.push_back({matches.buffer, std::move(*program)});
    }
  }
  return compiled;
}

}  // namespace penstock::nids
