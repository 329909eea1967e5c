// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions are in the order in which a packet passes through them: the fate of its flow, the waiting bytes of the
// stream, rules that test only addresses, candidates of its group, the full evaluation of each, and the actions of
// matches.

#include "nf/nids/detect/inspector.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "nf/nids/detect/contested_reading.h"
#include "nf/nids/detect/detection_parts.h"
#include "nf/nids/detect/packet_test.h"
#include "nf/nids/detect/stream_findings.h"
#include "packet/transport.h"
#include "stack/tcp_session.h"

namespace penstock::nids {

namespace {

using stack::Bytes;
using stack::TrackedPacket;
using FlowFate = StateStore::FlowFate;

/// The payload to inspect: none if it is encrypted. A packet inside another one is inspected separately.
Bytes payload_of(const TrackedPacket& packet) noexcept {
  return packet.encrypted || packet.packet.carries_packet ? Bytes() : packet.packet.payload;
}

/// Per packet. Streams are contested at a few places, or not at all.
constexpr std::size_t kMostContestedChunks = 64;

Bytes news_of(const stack::StreamChunk& chunk) noexcept {
  return chunk.bytes.subspan(chunk.seen, chunk.bytes.size() - chunk.seen - chunk.seen_behind);
}

bool begins_stream(const stack::StreamChunk& chunk) noexcept { return chunk.offset == 0; }

std::span<const BufferMatch> payload_options(const Rule& rule) noexcept {
  for (const BufferMatches& buffer : rule.buffers) {
    if (buffer.buffer == Buffer::payload) return buffer.matches;
  }
  return {};
}

/// Bytes of a stream on either side of new ones that have been inspected before.
struct BytesAround {
  std::uint32_t before = 0, after = 0;
  std::uint64_t offset = 0;  // offset of the first byte
};

}  // namespace

struct Inspector::Parts {
  Parts(const Detection& all, HostMemory& hosts, AlertSink& sink, const InspectorOptions& how)
      : detection(all.parts()),
        state(detection.rule_set, hosts, StateStore::kDefaultFlowBytes, how.ids),
        alerts(sink),
        options(how),
        looks_for_tags(detection.has_tags),
        scratch(how.budget),
        found_here(detection.most_literals),
        seen(detection.rules.size(), 0),
        seen_anew(detection.rules.size(), 0) {
    scratches.reserve(detection.matchers.size());
    for (const Matcher& matcher : detection.matchers) scratches.push_back(matcher.matcher->make_scratch());
    candidates.reserve(detection.rules.size());
    found_in_stream.reserve(detection.most_literals);
    matches.reserve(detection.rules.size());
    chunks.reserve(stack::TcpSession::kMostChunks);
    contested_chunks.reserve(kMostContestedChunks);
    contested_match.reserve(ContestedText::kMostBytes);
  }

  /// A rule that may match the packet.
  struct Candidate {
    std::uint32_t rule;
    // The literal was in previously inspected bytes: the rule cannot match in new bytes alone.
    bool only_before = false;
    friend bool operator<(const Candidate& a, const Candidate& b) noexcept { return a.rule < b.rule; }
  };
  struct Match {
    std::uint32_t rule;
    bool in_stream;
    Bytes stream;
  };

  void begin_budget(const TrackedPacket& packet) noexcept;
  void prepare_budget() noexcept;
  [[nodiscard]] bool may_evaluate(const CompiledRule& rule) noexcept;
  bool is_to_be_inspected(TrackedPacket& packet) noexcept;
  void note_segment(const TrackedPacket& packet) noexcept;
  void take_stream(TrackedPacket& packet) noexcept;
  [[nodiscard]] Needs what_it_has(const TrackedPacket& packet) const noexcept;

  void find_by_addresses(const TrackedPacket& packet, ProtocolClass protocol) noexcept;
  void find_candidates(const TrackedPacket& packet, const GroupPlan& plan, Needs has) noexcept;
  void find_in_stream(const TrackedPacket& packet, const GroupPlan& plan) noexcept;
  void scan_for_stream(std::uint32_t matcher, Bytes text, std::uint64_t text_end) noexcept;
  void take_known(const StreamFindings::Known& known, const stack::StreamChunk& chunk) noexcept;
  void scan(std::uint32_t matcher, const LiteralTable& table, Bytes text) noexcept;
  void begin_candidates(const GroupPlan& plan, Needs has) noexcept;
  void add_candidates(std::span<const std::uint32_t> rules) noexcept;
  void add_candidate_before(std::uint32_t rule) noexcept;

  void inspect_contested(const TrackedPacket& packet, const GroupPlan& plan, Needs has,
                         ProtocolClass protocol) noexcept;
  void inspect_contested_text(const TrackedPacket& packet, const GroupPlan& plan, Needs has, ProtocolClass protocol,
                              const stack::StreamChunk& chunk) noexcept;

  /// Calls `holds`, and counts it if rules are profiled.
  [[nodiscard]] bool evaluate(const Candidate& candidate, const TrackedPacket& packet, Needs has, Match& match,
                              const stack::StreamChunk* contested = nullptr) noexcept;
  /// Evaluates all of a rule. `contested`: if set, on the possible readings of these bytes instead of the packet.
  [[nodiscard]] bool holds(const Candidate& candidate, const TrackedPacket& packet, Needs has, Match& match,
                           const stack::StreamChunk* contested) noexcept;
  [[nodiscard]] bool buffers_hold(const Candidate& candidate, const TrackedPacket& packet, Match& match,
                                  const stack::StreamChunk* contested) noexcept;
  [[nodiscard]] bool stream_holds(const Candidate& candidate, const stack::StreamChunk& chunk, Match& match) noexcept;
  [[nodiscard]] bool contested_holds(const CompiledRule& rule, const stack::StreamChunk& chunk, Match& match) noexcept;
  [[nodiscard]] bool holds_anew(const CompiledRule& rule, Bytes text, const BytesAround& around) noexcept;
  [[nodiscard]] bool payload_holds(const CompiledRule& rule, Bytes bytes, std::uint64_t before = 0) noexcept;
  void matched(std::uint32_t place, const TrackedPacket& packet, const Match& match) noexcept;

  void act(TrackedPacket& packet) noexcept;
  void drop(TrackedPacket& packet) noexcept;
  void drop_frame(DropReason reason) noexcept;

  const Detection::Parts& detection;
  StateStore state;
  AlertSink& alerts;
  InspectorOptions options;
  bool looks_for_tags;  // flows or hosts may have tags, of these rules or of a predecessor's
  std::shared_ptr<InspectorCounters> counters = std::make_shared<InspectorCounters>();

  std::vector<std::unique_ptr<PatternMatcher::Scratch>> scratches;  // one for each matcher
  InspectionScratch scratch;
  LiteralSet found_here;

  // State of the current frame.
  FoundLiterals found_elsewhere;
  std::optional<DropReason> frame_dropped;
  // Budget of the frame or stream end. It is only set up when a rule has to be evaluated; most packets need none.
  bool has_budget = false;
  bool in_stream_end = false;
  std::uint64_t bytes_to_add = 0;
  bool frame_passed = false;  // passed by a packet that carries others: a pass rule on a tunnel applies to everything
                              // inside it
  std::uint8_t passed_depth = 0;

  std::shared_ptr<StreamFindings> stream_findings = std::make_shared<StreamFindings>();
  bool takes_findings = false;  // frames come with findings of a GPU

  // State of the current packet.
  bool found_elsewhere_holds = false;      // the GPU's findings are about this packet
  std::vector<stack::StreamChunk> chunks;  // the stream's
  std::vector<stack::StreamChunk> contested_chunks;
  std::uint64_t contested_bytes = 0;  // in the chunks, and in new versions of them
  ContestedText contested_text;
  ContestedReader contested_reader;
  std::vector<std::uint8_t> contested_match;  // the reading that the packet's first rule matched, for its alert
  std::vector<Candidate> candidates;
  std::vector<StreamFindings::Found> found_in_stream;  // in a chunk's bytes scanned here
  bool found_too_much = false;                         // more than found_in_stream holds
  // By rule: the last packet in which a literal made it a candidate, and the last one in which such a literal was in or
  // near new bytes.
  std::vector<std::uint32_t> seen, seen_anew;
  std::uint32_t packet_number = 0;
  std::vector<Match> matches;
};

Inspector::Inspector(const Detection& detection, HostMemory& hosts, AlertSink& alerts, const InspectorOptions& options)
    : parts_(std::make_unique<Parts>(detection, hosts, alerts, options)) {}
Inspector::~Inspector() = default;

void Inspector::use_slot(unsigned slot) noexcept {
  parts_->state.use_slot(slot);
  parts_->stream_findings->forget();
}

void Inspector::take_over(Inspector& predecessor) noexcept {
  Parts& from = *predecessor.parts_;
  parts_->state.share_flows(from.state);
  parts_->looks_for_tags = parts_->looks_for_tags || from.looks_for_tags;
  parts_->counters = from.counters;
  parts_->stream_findings = from.stream_findings;  // only the memory: what is known are literals of other rules
  parts_->stream_findings->forget();
  parts_->scratch.share_counters(from.scratch);
}

void Inspector::begin_frame(FoundLiterals found) noexcept {
  parts_->has_budget = parts_->in_stream_end = false;
  parts_->bytes_to_add = 0;
  parts_->found_elsewhere = found;
  parts_->takes_findings = parts_->takes_findings || found.known;
  parts_->frame_dropped.reset();
  parts_->frame_passed = false;
}

std::optional<DropReason> Inspector::frame_dropped() const noexcept { return parts_->frame_dropped; }
InspectorCounters Inspector::counters() const noexcept {
  InspectorCounters counters = *parts_->counters;
  const InspectionScratch::Counters& limits = parts_->scratch.counters();
  counters.pcre_limits = limits.pcre_limits;
  counters.step_limits = limits.inspection_limits;
  counters.frames_over_budget = limits.frames_over_budget;
  return counters;
}
void Inspector::prefetch(const stack::Flow& flow) const noexcept { parts_->stream_findings->prefetch(flow); }
void Inspector::flow_ended(stack::Flow& flow) noexcept { parts_->state.flow_ended(flow); }

void Inspector::packet(TrackedPacket& packet) noexcept {
  Parts& parts = *parts_;
  ++parts.counters->packets;
  parts.counters->payload_bytes += packet.packet.payload.size();
  if (parts.takes_findings) parts.note_segment(packet);
  parts.begin_budget(packet);
  parts.take_stream(packet);
  for (const stack::Refusal refusal : {packet.packet.refused, packet.refused}) {
    if (refusal != stack::Refusal::none) parts.drop_frame(reason_of(refusal));
  }
  if (!parts.is_to_be_inspected(packet)) return;

  parts.matches.clear();
  const Needs has = parts.what_it_has(packet);
  const ProtocolClass protocol = protocol_class(packet.packet);
  parts.find_by_addresses(packet, protocol);
  const std::uint16_t group = parts.detection.groups.group_of(protocol, packet.direction, packet.packet);
  if (group != 0) {
    parts.find_candidates(packet, parts.detection.plans[group], has);
    for (const Parts::Candidate& candidate : parts.candidates) {
      const CompiledRule& rule = parts.detection.rules[candidate.rule];
      if ((rule.protocols & bit_of(protocol)) == 0 || (rule.directions & bit_of(packet.direction)) == 0) continue;
      Parts::Match match{candidate.rule, false, {}};
      if (parts.evaluate(candidate, packet, has, match)) parts.matched(candidate.rule, packet, match);
    }
    parts.inspect_contested(packet, parts.detection.plans[group], has, protocol);
  }
  parts.act(packet);
}

// --- What to inspect -----------------------------------------------------------------------------------------------

/// A frame has one budget for all packets in it. The end of a stream, which any frame may cause, has its own.
void Inspector::Parts::begin_budget(const TrackedPacket& packet) noexcept {
  if (packet.stream_end || in_stream_end) {
    has_budget = false;
    bytes_to_add = 0;
  }
  in_stream_end = packet.stream_end;
  bytes_to_add += payload_of(packet).size();
}

void Inspector::Parts::prepare_budget() noexcept {
  if (!has_budget) scratch.begin_frame();
  has_budget = true;
  if (bytes_to_add > 0) scratch.add_bytes(std::exchange(bytes_to_add, 0));
}

bool Inspector::Parts::may_evaluate(const CompiledRule& rule) noexcept {
  prepare_budget();
  const bool may = scratch.take(rule.work);
  ++(may ? counters->evaluations : counters->evaluations_given_up);
  return may;
}

/// Notes the packet's part of its stream. A GPU searches the payload of the outermost packet only.
void Inspector::Parts::note_segment(const TrackedPacket& packet) noexcept {
  const stack::DecodedPacket& it = packet.packet;
  found_elsewhere_holds = found_elsewhere.known && it.tunnel_depth == 0 && !it.reassembled && !packet.stream_end &&
                          (it.is_tcp() || it.is_udp());
  if (packet.stream_end || !it.is_tcp() || packet.flow == nullptr || packet.flow->tcp == nullptr) return;
  const auto& header = *reinterpret_cast<const TcpHeader*>(it.transport.data());
  const stack::TcpStream& stream = packet.flow->tcp->stream(packet.direction);
  const auto offset = [&](std::uint32_t sequence) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, stream.offset_of(sequence)));
  };
  StreamFindings::Segment segment;
  segment.begin = offset(header.sequence.value() + ((header.flags & TcpHeader::kSyn) != 0 ? 1 : 0));
  segment.end = segment.begin + (packet.payload_in_stream ? packet.packet.payload.size() : 0);
  segment.highest = std::max(segment.end, offset(stream.next));
  segment.known = found_elsewhere_holds;
  if (found_elsewhere.with_states) {
    segment.state = &found_elsewhere.state;
    segment.payload = packet.packet.payload;
  }
  const bool has_literals = segment.known && segment.end > segment.begin;
  stream_findings->note(*packet.flow, packet.direction, segment,
                        has_literals ? found_elsewhere.literals : std::span<const std::uint32_t>());
}

/// Takes the waiting bytes even if no rule needs them, because the session stores them until then.
void Inspector::Parts::take_stream(TrackedPacket& packet) noexcept {
  chunks.clear();
  contested_chunks.clear();
  contested_bytes = 0;
  if (!packet.stream_ready && !packet.stream_end) return;
  if (packet.flow == nullptr || packet.flow->tcp == nullptr) return;
  packet.flow->tcp->inspect(packet.direction, packet.stream_end, [this](const stack::StreamChunk& chunk) {
    if (chunk.contested) {
      if (contested_chunks.size() == kMostContestedChunks) {
        ++counters->contested_given_up;
        return;
      }
      contested_chunks.push_back(chunk);
      contested_bytes += chunk.bytes.size();
      for (const stack::ContestedBytes::Version& version : chunk.versions) {
        if (!version.offered) contested_bytes += version.length;  // it came in a separate frame
      }
      return;
    }
    const Bytes news = news_of(chunk);
    if (news.empty()) return;
    chunks.push_back(chunk);
    counters->stream_bytes += news.size();
    bytes_to_add += news.size();
  });
}

bool Inspector::Parts::is_to_be_inspected(TrackedPacket& packet) noexcept {
  if (frame_passed && packet.packet.tunnel_depth > passed_depth && !packet.stream_end) return false;
  if (packet.flow == nullptr) return true;
  switch (state.fate(*packet.flow)) {
    case FlowFate::inspected: return true;
    case FlowFate::passed:
      if (!packet.stream_end) {
        frame_passed = true;
        passed_depth = packet.packet.tunnel_depth;
      }
      return false;
    case FlowFate::dropped: drop(packet); return false;
  }
  return true;
}

Needs Inspector::Parts::what_it_has(const TrackedPacket& packet) const noexcept {
  Needs has = 0;
  const bool has_payload = !payload_of(packet).empty() || !chunks.empty() || !contested_chunks.empty();
  has |= has_payload ? bit_of(Need::payload) : bit_of(Need::no_payload);
  if (packet.flow != nullptr) has |= bit_of(Need::flow);
  if (packet.established) has |= bit_of(Need::established);
  if (!packet.stream_end) has |= bit_of(Need::real_packet);
  if (packet.packet.events.any() || packet.stream_events.any()) has |= bit_of(Need::event);
  return has;
}

// --- Candidates ----------------------------------------------------------------------------------------------------

void Inspector::Parts::find_by_addresses(const TrackedPacket& packet, ProtocolClass protocol) noexcept {
  if (detection.ip_only.empty() || packet.packet.ip_version == 0 || packet.stream_end) return;
  if (packet.flow != nullptr && packet.flow->count(packet.direction).packets > 1) return;
  detection.ip_only.for_candidates(packet.packet, [&](std::uint32_t place) {
    const CompiledRule& rule = detection.rules[place];
    if ((rule.protocols & bit_of(protocol)) == 0 || !may_evaluate(rule)) return;
    if (rule.any_header || header_holds(*rule.rule, packet)) matched(place, packet, {place, false, {}});
  });
}

void Inspector::Parts::find_candidates(const TrackedPacket& packet, const GroupPlan& plan, Needs has) noexcept {
  begin_candidates(plan, has);
  const std::size_t always = candidates.size();

  const Bytes payload = payload_of(packet);
  if (!payload.empty()) {
    if (takes_findings && found_elsewhere_holds) {
      for (const std::uint32_t literal : found_elsewhere.literals) {
        add_candidates(detection.payload_literals.rules_of(literal));
      }
    } else {
      scan(plan.packets, detection.payload_literals, payload);
      if (!packet.payload_in_stream) scan(plan.streams, detection.payload_literals, payload);
    }
  }
  find_in_stream(packet, plan);
  if (!packet.stream_end) {
    for (const GroupPlan::OfHeader& header : plan.headers) {
      scan(header.matcher, detection.header_literals, header_buffer(header.buffer, packet.packet));
    }
  }
  counters->candidates += candidates.size() - always;
  if (candidates.size() == always) return;
  for (Candidate& candidate : candidates) {
    candidate.only_before = seen[candidate.rule] == packet_number && seen_anew[candidate.rule] != packet_number;
  }
  std::sort(candidates.begin(), candidates.end());
}

/// Finds candidates in new bytes, and in bytes inspected before, as far as a rule's match may reach. Bytes that have
/// been searched are not scanned again.
void Inspector::Parts::find_in_stream(const TrackedPacket& packet, const GroupPlan& plan) noexcept {
  if (plan.streams == kNoMatcher) return;
  const std::uint64_t reach = detection.matchers[plan.streams].longest - 1;
  StreamFindings::Known known;
  for (const stack::StreamChunk& chunk : chunks) {
    const bool has_start = plan.from_start && begins_stream(chunk);
    const std::uint32_t before = has_start ? chunk.seen : std::min(chunk.seen, plan.stream_reach);
    const std::uint32_t after = std::min(chunk.seen_behind, plan.stream_reach);
    const std::uint64_t begin = chunk.offset + chunk.seen - before;
    const std::uint64_t end = chunk.offset + chunk.bytes.size() - chunk.seen_behind + after;
    const Bytes text = chunk.bytes.subspan(chunk.seen - before, end - begin);
    found_in_stream.clear();
    found_too_much = false;
    // If no rule reaches further than a literal, or the stream ends, nothing has to be remembered.
    const bool is_remembered = plan.stream_reach > reach || has_start;
    if (takes_findings || (is_remembered && before + after > 0)) {
      stream_findings->look_up(*packet.flow, packet.direction, begin, end, reach, known);
      for (std::size_t i = 0; i < known.rest_count; ++i) {
        const StreamFindings::Range& rest = known.rest[i];
        scan_for_stream(plan.streams, text.subspan(rest.begin - begin, rest.end - rest.begin), rest.end);
      }
      counters->seams_known += known.seams_known;
      take_known(known, chunk);
    } else {
      scan_for_stream(plan.streams, text, end);
    }
    if (is_remembered && !packet.stream_end && !found_too_much) {
      stream_findings->searched(*packet.flow, packet.direction, begin, end, reach, found_in_stream);
    }
  }
}

void Inspector::Parts::scan_for_stream(std::uint32_t matcher, Bytes text, std::uint64_t text_end) noexcept {
  scan(matcher, detection.payload_literals, text);
  found_too_much = found_too_much || found_in_stream.size() + found_here.list().size() > found_in_stream.capacity();
  if (found_too_much) return;
  for (const std::uint32_t literal : found_here.list()) {
    found_in_stream.push_back({detection.matchers[matcher].literals[literal], text_end});
  }
}

/// Literals found earlier select rules whose match may reach from them to a new byte.
void Inspector::Parts::take_known(const StreamFindings::Known& known, const stack::StreamChunk& chunk) noexcept {
  const std::uint64_t news = chunk.offset + chunk.seen;
  for (std::size_t i = 0; i < known.literal_count; ++i) {
    const auto [literal, end] = known.literals[i];
    const std::span<const std::uint32_t> rules = detection.payload_literals.rules_of(literal);
    if (end > news) {
      add_candidates(rules);
      continue;
    }
    // If seams were not scanned, it may be a part of a literal that continues after `end`.
    const std::size_t whole = detection.payload_literals.literals[literal].bytes.size();
    const std::uint64_t farthest = news - end + (known.seams_known > 0 ? std::min(whole, kCutLiteralBytes) : whole);
    for (const std::uint32_t rule : rules) {
      const StreamReach& reach = detection.rules[rule].stream_reach;
      if (reach.from_start ? begins_stream(chunk) : reach.bytes >= farthest) add_candidate_before(rule);
    }
  }
}

void Inspector::Parts::scan(std::uint32_t matcher, const LiteralTable& table, Bytes text) noexcept {
  found_here.clear();
  if (matcher == kNoMatcher || text.empty()) return;
  const Matcher& it = detection.matchers[matcher];
  it.matcher->scan(text, scratches[matcher].get(), found_here);
  for (const std::uint32_t literal : found_here.list()) add_candidates(table.rules_of(it.literals[literal]));
}

/// Starts the list of candidates with the rules that no literal selects.
void Inspector::Parts::begin_candidates(const GroupPlan& plan, Needs has) noexcept {
  if (++packet_number == 0) {  // all numbers have been used: clear the marks
    std::fill(seen.begin(), seen.end(), 0);
    std::fill(seen_anew.begin(), seen_anew.end(), 0);
    packet_number = 1;
  }
  candidates.clear();
  for (const GroupPlan::Always& rule : plan.always) {
    if ((rule.needs & ~has) == 0) candidates.push_back({rule.rule});
  }
}

void Inspector::Parts::add_candidates(std::span<const std::uint32_t> rules) noexcept {
  for (const std::uint32_t rule : rules) {
    add_candidate_before(rule);
    seen_anew[rule] = packet_number;
  }
}

void Inspector::Parts::add_candidate_before(std::uint32_t rule) noexcept {
  if (seen[rule] == packet_number) return;
  seen[rule] = packet_number;
  candidates.push_back({rule});
}

// --- Contested bytes -----------------------------------------------------------------------------------------------

/// Runs last, for matches that the bytes in the stream's buffer do not show.
void Inspector::Parts::inspect_contested(const TrackedPacket& packet, const GroupPlan& plan, Needs has,
                                         ProtocolClass protocol) noexcept {
  if (contested_chunks.empty() || !plan.looks_at_streams) return;
  contested_match.clear();
  // It has a separate budget, so that uncontested data in the same packet cannot use it up.
  has_budget = false;
  bytes_to_add = contested_bytes;
  for (const stack::StreamChunk& chunk : contested_chunks) {
    ++counters->contested_chunks;
    for_each_choice_of_urgent(chunk, [&](std::uint32_t left_out) {
      contested_text.read(chunk, left_out);
      if (contested_text.differs()) inspect_contested_text(packet, plan, has, protocol, chunk);
    });
  }
}

void Inspector::Parts::inspect_contested_text(const TrackedPacket& packet, const GroupPlan& plan, Needs has,
                                              ProtocolClass protocol, const stack::StreamChunk& chunk) noexcept {
  begin_candidates(plan, has);
  const bool searched = detection.contested_search.search(
      contested_text, detection.payload_literals.literals,
      [&](std::uint32_t literal) { add_candidates(detection.payload_literals.rules_of(literal)); });
  if (!searched) ++counters->contested_given_up;
  std::sort(candidates.begin(), candidates.end());
  for (const Candidate& candidate : candidates) {
    const std::uint32_t place = candidate.rule;
    const CompiledRule& rule = detection.rules[place];
    if (!rule.payload || !rule.looks_at_streams || (rule.protocols & bit_of(protocol)) == 0 ||
        (rule.directions & bit_of(packet.direction)) == 0) {
      continue;
    }
    const auto is_of_rule = [place](const Match& match) { return match.rule == place; };
    if (std::any_of(matches.begin(), matches.end(), is_of_rule)) continue;
    Match match{place, false, {}};
    if (evaluate(candidate, packet, has, match, &chunk)) matched(place, packet, match);
  }
}

/// Whether the rule matches some reading, but neither the bytes that were already inspected as they are, nor previously
/// inspected bytes alone.
bool Inspector::Parts::contested_holds(const CompiledRule& rule, const stack::StreamChunk& chunk,
                                       Match& match) noexcept {
  if (rule.stream_reach.from_start && !begins_stream(chunk)) return false;
  if (payload_holds(rule, chunk.bytes, chunk.offset)) return false;
  const auto is_new = [&](Bytes bytes) {
    if (!may_evaluate(rule) || !payload_holds(rule, bytes, chunk.offset)) return false;
    const std::size_t former = contested_text.seen();
    return former == 0 || !payload_holds(rule, bytes.first(former), chunk.offset);
  };
  const bool found =
      contested_reader.find(contested_text, chunk, payload_options(*rule.rule), rule.expressions, is_new);
  static_cast<void>(scratch.take(contested_reader.work()));
  if (!found) return false;
  match.in_stream = true;
  match.stream = chunk.bytes;
  if (contested_match.empty()) {
    contested_match.assign(contested_reader.bytes().begin(), contested_reader.bytes().end());
    match.stream = contested_match;
  }
  return true;
}

// --- Full evaluation of a rule -------------------------------------------------------------------------------------

bool Inspector::Parts::evaluate(const Candidate& candidate, const TrackedPacket& packet, Needs has, Match& match,
                                const stack::StreamChunk* contested) noexcept {
  if (options.profile.empty()) return holds(candidate, packet, has, match, contested);
  RuleProfile& profile = options.profile[detection.rules[candidate.rule].index];
  prepare_budget();
  const std::uint64_t evaluations = counters->evaluations;
  const std::uint64_t left = scratch.work_left();
  const bool result = holds(candidate, packet, has, match, contested);
  profile.evaluations.add(counters->evaluations - evaluations);
  profile.work.add(left - scratch.work_left());
  if (result) profile.matches.add(1);
  return result;
}

bool Inspector::Parts::holds(const Candidate& candidate, const TrackedPacket& packet, Needs has, Match& match,
                             const stack::StreamChunk* contested) noexcept {
  const CompiledRule& rule = detection.rules[candidate.rule];
  if ((rule.needs & ~has) != 0) return false;
  if (!rule.any_header && !header_holds(*rule.rule, packet)) return false;
  if (!may_evaluate(rule)) return false;
  const Rule& tested = *rule.rule;
  // only_stream and no_stream are already decided by what the rule inspects.
  if (!flow_holds(tested.flow, packet, tested.flow.only_stream)) return false;
  for (const PacketMatch& one : tested.packet_matches) {
    if (!nids::holds(one, packet)) return false;
  }
  for (const StateMatch& one : tested.state_matches) {
    if (!state.holds(one, packet)) return false;
  }
  return buffers_hold(candidate, packet, match, contested);
}

/// Tests the stream before the packet. The packet is tested if the rule looks at packets, or its payload is not in the
/// stream.
bool Inspector::Parts::buffers_hold(const Candidate& candidate, const TrackedPacket& packet, Match& match,
                                    const stack::StreamChunk* contested) noexcept {
  const CompiledRule& rule = detection.rules[candidate.rule];
  if (contested != nullptr) {
    if (!contested_holds(rule, *contested, match)) return false;
  } else if (rule.payload) {
    if (rule.looks_at_streams) {
      for (const stack::StreamChunk& chunk : chunks) {
        if (stream_holds(candidate, chunk, match)) break;
      }
    }
    if (!match.in_stream) {
      if (packet.stream_end || candidate.only_before ||
          (rule.looks_at_streams && !rule.looks_at_packets && packet.payload_in_stream)) {
        return false;
      }
      if (!payload_holds(rule, payload_of(packet))) return false;
    }
  } else if (!rule.headers.empty()) {
    scratch.begin_rule();
  }
  for (const CompiledRule::HeaderProgram& header : rule.headers) {
    const Bytes bytes = header_buffer(header.buffer, packet.packet);
    if (bytes.empty() || !header.program.matches(bytes, scratch)) return false;
  }
  return true;
}

/// Tests the new bytes alone, with positions relative to their start, as Suricata does; or together with inspected
/// bytes around them, as far as the rule may reach, if the match includes new bytes. Then positions are relative to the
/// start of the stream.
bool Inspector::Parts::stream_holds(const Candidate& candidate, const stack::StreamChunk& chunk,
                                    Match& match) noexcept {
  const CompiledRule& rule = detection.rules[candidate.rule];
  const auto matched_in = [&](Bytes bytes) {
    match.in_stream = true;
    match.stream = bytes;
    return true;
  };
  const Bytes news = news_of(chunk);
  if (!candidate.only_before && payload_holds(rule, news)) return matched_in(news);

  const StreamReach& reach = rule.stream_reach;
  if (reach.from_start && !begins_stream(chunk)) return false;
  BytesAround around;
  around.before = reach.from_start ? chunk.seen : std::min(chunk.seen, reach.bytes);
  around.after = reach.from_start ? chunk.seen_behind : std::min(chunk.seen_behind, reach.bytes);
  around.offset = chunk.offset + chunk.seen - around.before;
  const bool differs = around.before > 0 || around.after > 0 || (reach.has_places && around.offset > 0);
  if (!differs) return false;
  const Bytes text = chunk.bytes.subspan(chunk.seen - around.before, around.before + news.size() + around.after);
  if (candidate.only_before && !rule.payload->may_match_from(text, around.before, scratch)) return false;
  return holds_anew(rule, text, around) && matched_in(text);
}

/// Whether the text has a match that includes new bytes: matches within the other bytes alone were reported when those
/// were new. Such matches are skipped one after the other, each with all bytes before its end; the remaining bytes are
/// tested together with the new ones.
bool Inspector::Parts::holds_anew(const CompiledRule& rule, Bytes text, const BytesAround& around) noexcept {
  if (!payload_holds(rule, text, around.offset)) return false;
  const bool from_start = rule.stream_reach.from_start;
  const std::uint64_t after_offset = around.offset + text.size() - around.after;
  if (!from_start && around.after > 0 && payload_holds(rule, text.last(around.after), after_offset)) {
    text = text.first(text.size() - around.after);
  }
  std::size_t from = 0;
  while (from < around.before && payload_holds(rule, text.subspan(from, around.before - from), around.offset + from)) {
    if (from_start) return false;
    from += std::max<std::size_t>(1, scratch.match_end());
  }
  return (from == 0 && around.after == 0) || payload_holds(rule, text.subspan(from), around.offset + from);
}

bool Inspector::Parts::payload_holds(const CompiledRule& rule, Bytes bytes, std::uint64_t before) noexcept {
  scratch.begin_rule();
  return rule.payload->matches(bytes, scratch, before);
}

/// Sets bits immediately, because later rules may test them.
void Inspector::Parts::matched(std::uint32_t place, const TrackedPacket& packet, const Match& match) noexcept {
  const CompiledRule& rule = detection.rules[place];
  for (const StateChange& change : rule.rule->state_changes) state.change(change, packet);
  static_cast<void>(scratch.take(rule.work_of_match));
  matches.push_back(match);
}

// --- Actions of matches ---------------------------------------------------------------------------------------------

void Inspector::Parts::act(TrackedPacket& packet) noexcept {
  std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.rule < b.rule; });
  unsigned written = 0;
  for (const Match& match : matches) {
    const CompiledRule& compiled = detection.rules[match.rule];
    const Rule& rule = *compiled.rule;
    const bool is_suppressed = state.suppressed(compiled.index, packet);
    const StateStore::Decision decision =
        is_suppressed ? StateStore::Decision{.alerts = false} : state.count(rule, compiled.index, packet);
    if (!decision.acts) continue;
    const Action action = decision.new_action.value_or(rule.action);
    const bool is_blocked = options.drops && drops(action);
    if (is_blocked) drop(packet);
    if (action == Action::pass && packet.flow != nullptr && (match.in_stream || compiled.acts_on_flow_always)) {
      state.set_fate(*packet.flow, FlowFate::passed);
    }

    if (!rule.alerts || !decision.alerts) {
      if (rule.alerts) ++counters->alerts_suppressed;
    } else if (written < detection.options.most_alerts) {
      ++written;
      ++counters->alerts;
      alerts.alert({&rule, &packet, is_blocked, match.in_stream, match.stream});
    } else {
      ++counters->alerts_over_limit;
    }
    if (!rule.tags.empty()) state.tag(rule, compiled.index, packet);
    if (action == Action::pass) {  // later matches do not count
      if (!packet.stream_end) {
        frame_passed = true;
        passed_depth = packet.packet.tunnel_depth;
      }
      break;
    }
  }
  if (looks_for_tags && !packet.stream_end && state.tagged(packet)) {
    alerts.alert({nullptr, &packet, false, false, {}});
  }
}

void Inspector::Parts::drop(TrackedPacket& packet) noexcept {
  if (!options.drops) return;
  if (packet.flow != nullptr) {
    state.set_fate(*packet.flow, FlowFate::dropped);
    packet.flow->blocked = true;
  }
  if (!packet.stream_end) drop_frame(DropReason::rule);
}

void Inspector::Parts::drop_frame(DropReason reason) noexcept {
  if (!options.drops || frame_dropped) return;
  ++counters->dropped[static_cast<std::size_t>(reason)];
  frame_dropped = reason;
}

}  // namespace penstock::nids
