// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nids/scanner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "nf/nids/flow_state_stage.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/match/scan_range_core.h"
#include "nf/nids/match/scan_tables.h"
#include "nf/nids/match/seam_core.h"
#include "packet/packet.h"
#include "packet/parse_core.h"
#include "port/capture_reader.h"

namespace penstock::nids::test {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
    std::abort();
  }
  return std::move(*result);
}

stack::TrackerOptions tracker_options(const ScanOptions& options, const Detection& detection) {
  stack::TrackerOptions tracker = options.tracker;
  tracker.seam_bytes = detection.seam_bytes();
  return tracker;
}

}  // namespace

void CountingSink::alert(const Alert& alert) noexcept {
  if (alert.rule == nullptr) {
    ++tagged;
    return;
  }
  ++counts[alert.rule->sid];
  if (alert.dropped) ++dropped;
}

std::unique_ptr<const Detection> compiled(RuleSet rules, const DetectionOptions& options) {
  return must(Detection::compile(std::move(rules), options));
}

/// Does a device's work with a matcher on the host.
struct Scanner::Elsewhere {
  Elsewhere(std::span<const Literal> all, const ScanOptions& options)
      : literals(options.whole_literals ? std::vector(all.begin(), all.end()) : cut_literals(all)),
        tables(must(build_scan_tables(literals))),
        with_states(options.flow_states),
        matcher(must(make_pattern_matcher(MatcherKind::hashed_filter, literals))),
        scratch(matcher->make_scratch()),
        found(literals.size()) {}

  FoundLiterals scan(PacketView packet) {
    const ScanRange range = scan_range(packet.layout(), packet.length());
    found.clear();
    matcher->scan({packet.frame + range.begin, packet.frame + range.end}, scratch.get(), found);
    finding = {};
    finding.flags = PacketLiterals::kScanned;
    if (range.is_payload) finding.flags |= PacketLiterals::kPayload;
    for (const std::uint32_t literal : found.list()) finding.add(literal);
    if (!with_states) return {finding.complete(), finding.list()};
    FlowState state;
    std::byte* const place = reinterpret_cast<std::byte*>(&state);
    stage.fill({&packet, 1}, {&place, 1});
    const auto scan_seam_with = [&](const auto& engine) {
      scan_seam(engine, state, packet.frame + range.begin, packet.frame + range.end, finding);
    };
    if (const auto* const automaton = std::get_if<AhoCorasickTables>(&tables.engine)) {
      scan_seam_with(automaton->view<std::uint16_t>());
    } else {
      scan_seam_with(std::get<HashedFilterTables>(tables.engine).view());
    }
    const bool has_state = (finding.flags & PacketLiterals::kWithState) != 0;
    return {finding.complete(), finding.list(), true, has_state ? state : FlowState()};
  }

  std::vector<Literal> literals;
  ScanTables tables;
  bool with_states;
  FlowStateStage stage;
  PacketLiterals finding;
  std::unique_ptr<PatternMatcher> matcher;
  std::unique_ptr<PatternMatcher::Scratch> scratch;
  LiteralSet found;
};

Scanner::Scanner(RuleSet rules, const ScanOptions& options)
    : detection_(compiled(std::move(rules), options.detection)),
      hosts_(options.host_bytes),
      tracker_(tracker_options(options, *detection_)),
      inspector_(std::make_unique<Inspector>(*detection_, hosts_, sink_, options.inspector)) {
  if (options.scanned_elsewhere) elsewhere_ = std::make_unique<Elsewhere>(detection_->literals(), options);
}

Scanner::Scanner(const Detection& detection, const ScanOptions& options)
    : hosts_(options.host_bytes),
      tracker_(tracker_options(options, detection)),
      inspector_(std::make_unique<Inspector>(detection, hosts_, sink_, options.inspector)) {
  if (options.scanned_elsewhere) elsewhere_ = std::make_unique<Elsewhere>(detection.literals(), options);
}

Scanner::~Scanner() = default;

void Scanner::frame(std::span<const std::uint8_t> bytes, std::uint64_t timestamp_ns, LinkType link_type,
                    std::uint32_t wire_length) {
  // In memory of exactly its size, so that a sanitizer detects overruns.
  bytes_ = std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  PacketDescriptor descriptor;
  descriptor.timestamp_ns = timestamp_ns;
  descriptor.length = static_cast<std::uint32_t>(bytes_.size());
  descriptor.wire_length = std::max(wire_length, descriptor.length);
  descriptor.link_type = link_type;
  const PacketView packet{bytes_.data(), &descriptor};
  parse(packet);
  inspector_->begin_frame(elsewhere_ != nullptr ? elsewhere_->scan(packet) : FoundLiterals{});
  tracker_.track(packet, ++number_, *inspector_);
  if (dropped()) tracker_.refuse_frame();
}

void Scanner::finish() {
  inspector_->begin_frame();
  tracker_.finish(*inspector_);
}

bool Scanner::capture(const std::string& path) {
  port::ReadControl control;
  auto captures = port::CaptureSequence::open({path}, control);
  if (!captures) return false;
  port::CapturedFrame captured;
  while (captures->next(captured))
    frame(captured.bytes, captured.timestamp_ns, captured.link_type, captured.wire_length);
  finish();
  return true;
}

RuleSet rules_of(std::string_view text) {
  RuleSet rules = must(read_rules_text(text));
  for (const RuleSet::Left& left : rules.left_out) {
    std::fprintf(stderr, "%s\n", to_string(left.why).c_str());
  }
  if (!rules.left_out.empty()) std::abort();
  return rules;
}

std::string corpus() {
  const char* const set = std::getenv("PENSTOCK_CORPUS");
  std::string folder = set != nullptr ? set : PENSTOCK_SOURCE_DIR "/../shared/data";
  return std::filesystem::is_directory(folder + "/ids") ? folder : std::string();
}

}  // namespace penstock::nids::test
