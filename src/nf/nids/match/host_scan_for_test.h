// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scan of the GPU stage (scan_stage.cu) on the host: the same range of a packet, the same literals, the same
// finding. For tests without a GPU.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/match/scan_range_core.h"

namespace penstock::nids::testing {

class HostScan {
 public:
  /// `literals`: Detection::literals().
  explicit HostScan(std::span<const Literal> literals) : literals_(cut_literals(literals)) {
    auto matcher = make_pattern_matcher(MatcherKind::aho_corasick, literals_);
    EXPECT_TRUE(matcher) << to_string(matcher.error());
    matcher_ = std::move(*matcher);
    scratch_ = matcher_->make_scratch();
  }

  [[nodiscard]] PacketLiterals operator()(PacketView packet) const {
    const ScanRange range = scan_range(packet.layout(), packet.length());
    LiteralSet found(literals_.size());
    matcher_->scan({packet.frame + range.begin, range.end - range.begin}, scratch_.get(), found);
    PacketLiterals finding;
    finding.flags = PacketLiterals::kScanned;
    if (range.is_payload) finding.flags |= PacketLiterals::kPayload;
    for (const std::uint32_t literal : found.list()) {
      if (finding.count == PacketLiterals::kMost) {
        finding.flags |= PacketLiterals::kTooMany;
        break;
      }
      finding.literals[finding.count++] = literal;
    }
    return finding;
  }

 private:
  std::vector<Literal> literals_;
  std::unique_ptr<PatternMatcher> matcher_;
  std::unique_ptr<PatternMatcher::Scratch> scratch_;
};

}  // namespace penstock::nids::testing
