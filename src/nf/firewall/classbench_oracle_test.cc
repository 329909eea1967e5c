// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the engines with ClassBench sets: against the corpus's expected results, which come from an independent linear
// search, and, with keys at the edges of rules and TCP flags, against each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "classify/linear_core.h"
#include "nf/firewall/corpus_for_test.h"
#include "nf/firewall/rules_for_test.h"

namespace penstock::firewall {
namespace {

class ClassBench : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_ = corpus_set(GetParam());
    if (!set_) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
    rules_ = rules_of(set_->rules);
  }

  std::vector<std::uint32_t> classify(classify::Engine engine, const std::vector<classify::Key>& keys) const {
    const auto classifier = classify::make_classifier(engine, rules_);
    EXPECT_TRUE(classifier) << to_string(classifier.error());
    std::vector<std::uint32_t> entries(keys.size());
    (*classifier)->classify(keys, entries.data());
    return entries;
  }

  /// Keys with addresses and ports from the ends of random rules, and next to them.
  std::vector<classify::Key> edge_keys(std::size_t count) const {
    std::mt19937_64 random(count);
    std::vector<classify::Key> keys(count);
    for (classify::Key& key : keys) {
      const classify::Entry& entry = rules_.entries[random() % rules_.entries.size()];
      key.family = entry.family;
      key.kind = 6U << classify::kKindDetailBits | (random() & 0xff);
      key.source_port = random() & 0xffff;
      key.destination_port = random() & 0xffff;
      for (std::uint32_t c = 0; c < entry.condition_count; ++c) {
        take_edge(key, rules_.conditions[entry.first_condition + c], random);
      }
    }
    return keys;
  }

  void expect_truth(classify::Engine engine) const {
    if (set_->truth.empty()) GTEST_SKIP() << "the corpus has no truth for this set";
    const std::vector<std::uint32_t> entries = classify(engine, set_->keys);
    ASSERT_EQ(entries.size(), set_->truth.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::int64_t rule = entries[i] == classify::kNoEntry ? -1 : rules_.entries[entries[i]].rule;
      ASSERT_EQ(rule, set_->truth[i]) << "line " << i + 1 << " of the trace";
    }
  }
  static bool fits_rfc() {
    const std::string_view set = GetParam();
    return set.ends_with("_1k") || set == "acl_10k";
  }

  std::optional<CorpusSet> set_;
  classify::Ruleset rules_;

 private:
  void take_edge(classify::Key& key, const classify::Condition& condition, std::mt19937_64& random) const {
    const std::uint64_t beside = random() % 8 == 0 ? 1 : 0;
    const bool low_end = random() % 2 == 0;
    const auto word = [&] { return (low_end ? condition.low - beside : condition.high + beside) & 0xffffffff; };
    const auto wide = [&] {
      const classify::Ipv6Range& range = rules_.ranges6[condition.index];
      return low_end ? Ipv6Address{range.low.high, range.low.low - beside}
                     : Ipv6Address{range.high.high, range.high.low + beside};
    };
    const auto port = [&] {
      const classify::PortRange& range = rules_.port_ranges[condition.index];
      return static_cast<std::uint32_t>((low_end ? range.low - beside : range.high + beside) & 0xffff);
    };
    switch (condition.subject) {
      case classify::Subject::source4: key.source.low = word(); break;
      case classify::Subject::destination4: key.destination.low = word(); break;
      case classify::Subject::source6: key.source = wide(); break;
      case classify::Subject::destination6: key.destination = wide(); break;
      case classify::Subject::source_port: key.source_port = port(); break;
      case classify::Subject::destination_port: key.destination_port = port(); break;
      case classify::Subject::protocol:
        key.kind = condition.low << classify::kKindDetailBits | (random() & 0xff);
        break;
      default: break;
    }
  }
};

TEST_P(ClassBench, BitVectorsGiveTheExpectedResults) { expect_truth(classify::Engine::bitvector); }

TEST_P(ClassBench, RfcGivesTheExpectedResults) {
  if (!fits_rfc()) GTEST_SKIP() << "building RFC's tables takes too long for a test";
  expect_truth(classify::Engine::rfc);
}

TEST_P(ClassBench, TheEnginesAgreeAtTheRulesEdges) {
  const std::vector<classify::Key> keys = edge_keys(20'000'000 / rules_.rules.size());
  const std::vector<std::uint32_t> entries = classify(classify::Engine::linear, keys);
  EXPECT_EQ(entries, classify(classify::Engine::bitvector, keys));
  if (fits_rfc()) {
    EXPECT_EQ(entries, classify(classify::Engine::rfc, keys));
  }
}

TEST_P(ClassBench, TheEnginesAgreeIfTheLastMatchDecides) {
  let_last_decide(rules_);
  const std::vector<classify::Key> keys = edge_keys(10'000'000 / rules_.rules.size());
  const std::vector<std::uint32_t> entries = classify(classify::Engine::linear, keys);
  EXPECT_EQ(entries, classify(classify::Engine::bitvector, keys));
  if (fits_rfc()) {
    EXPECT_EQ(entries, classify(classify::Engine::rfc, keys));
  }
  // The entries are reversed, and so the expectation does not depend on the order in which engines search.
  std::ranges::reverse(rules_.entries);
  const classify::LinearView forwards{rules_.entries.data(), rules_.conditions.data(), rules_.port_ranges.data(),
                                      rules_.ranges6.data(), static_cast<std::uint32_t>(rules_.entries.size())};
  for (std::size_t i = 0; i < keys.size(); i += 50) {
    std::uint32_t last = classify::kNoEntry;
    for (std::uint32_t e = 0; e < rules_.entries.size(); ++e) {
      if (matches(forwards, rules_.entries[e], keys[i])) last = e;
    }
    const std::uint32_t mirrored = static_cast<std::uint32_t>(rules_.entries.size()) - 1 - entries[i];
    ASSERT_EQ(entries[i] == classify::kNoEntry ? classify::kNoEntry : mirrored, last) << "key " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, ClassBench,
                         ::testing::Values("acl_1k", "fw_1k", "ipc_1k", "acl_10k", "fw_10k", "ipc_10k", "acl1_100k",
                                           "fw1_v6_100k"),
                         [](const auto& set) { return std::string(set.param); });

}  // namespace
}  // namespace penstock::firewall
