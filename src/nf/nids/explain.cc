// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/explain.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "nf/nids/detect/detection_parts.h"
#include "nf/nids/detect/packet_test.h"
#include "stack/decoder.h"
#include "stack/tracker.h"

namespace penstock::nids {

namespace {

/// Collects the rules whose header holds.
class Candidates {
 public:
  Candidates(const std::vector<CompiledRule>& rules, const stack::TrackedPacket& packet, function::Explanation& to)
      : rules_(rules), packet_(packet), protocol_(protocol_class(packet.packet)), to_(to) {}

  void add(std::uint32_t place) {
    const CompiledRule& rule = rules_[place];
    if ((rule.protocols & bit_of(protocol_)) == 0 || (rule.directions & bit_of(packet_.direction)) == 0 ||
        !header_holds(*rule.rule, packet_)) {
      return;
    }
    if (++count_ > function::Explanation::kMostListed) return;
    to_.notes.push_back(fmt::format("rule {}:{} (line {} of {}): {}", rule.rule->gid, rule.rule->sid, rule.rule->line,
                                    rule.rule->file, rule.rule->message));
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  const std::vector<CompiledRule>& rules_;
  const stack::TrackedPacket& packet_;
  const ProtocolClass protocol_;
  function::Explanation& to_;
  std::size_t count_ = 0;
};

}  // namespace

function::Explanation explain(PacketView packet, const Detection& detection, bool drops) {
  stack::TrackerOptions options;
  options.fragment_memory = std::size_t{64} << 10;  // nothing is reassembled
  stack::TrackerCounters counters;
  stack::Decoder decoder(options, counters);
  stack::TrackedPacket tracked;
  tracked.packet = decoder.begin(packet, 1);

  function::Explanation explanation;
  const Detection::Parts& parts = detection.parts();
  Candidates candidates(parts.rules, tracked, explanation);
  const std::uint16_t group = parts.groups.group_of(protocol_class(tracked.packet), tracked.direction, tracked.packet);
  const std::vector<std::uint32_t>& of_group = parts.groups.groups()[group];
  for (const std::uint32_t place : of_group) candidates.add(place);
  parts.ip_only.for_candidates(tracked.packet, [&](std::uint32_t place) { candidates.add(place); });
  explanation.decided_by = fmt::format("{} for its protocol and port in group {}; the headers of {} match it",
                                       format_count(of_group.size(), "rule"), group, format_count(candidates.count()));
  if (candidates.count() > function::Explanation::kMostListed) {
    explanation.notes.push_back(
        fmt::format("… and {} more", format_count(candidates.count() - function::Explanation::kMostListed)));
  }
  if (drops) explanation.depends_on = "the state of its flow and its payload";
  return explanation;
}

}  // namespace penstock::nids
