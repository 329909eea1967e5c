// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random rules on streams cut at random, inspected as they arrive: the alerts must be those of evaluating the whole
// stream at once, if all of a match lies within kMostStreamReach bytes.

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/nids/detect/compiled_rule.h"
#include "nf/nids/detect/stream_reach.h"
#include "nf/nids/detect/testing/cut_streams.h"

namespace penstock::nids::testing {
namespace {

using Sids = std::set<std::uint32_t>;

template <typename T>
const T& one_of(const std::vector<T>& all, std::mt19937& random) {
  return all[random() % all.size()];
}

std::string word(std::mt19937& random) {
  std::string made(1 + random() % 3, 'a');
  for (char& c : made) c = static_cast<char>('a' + random() % 3);
  return made;
}

/// Options that still match if more bytes are added, and that are tried at every position that could help.
std::string options(std::mt19937& random) {
  std::string made;
  for (std::size_t chains = 1 + random() % 3; chains > 0; --chains) {
    if (random() % 5 == 0) {
      const std::vector<std::string> expressions{"a.b", "c[ab]{2}a", "aa?b", "ba|cc.a", "ab.{0,900}ca", "b\\.+a"};
      made += "pcre:\"/" + one_of(expressions, random) + "/sm\"; ";
      continue;
    }
    made += "content:\"" + word(random) + "\"; ";
    if (random() % 4 == 0) made += "nocase; ";
    if (random() % 6 == 0) made += "offset:" + std::to_string(random() % 3000) + "; ";
    for (std::size_t more = random() % 3; more > 0; --more) {
      const std::string text = word(random);
      made += "content:\"" + text + "\"; ";
      const int distance = random() % 2 == 0 ? static_cast<int>(random() % 400) - 200 : 0;
      if (distance != 0) made += "distance:" + std::to_string(distance) + "; ";
      if (distance == 0 || random() % 2 == 0) {
        // Never ends before the first byte, because Suricata treats that as no bound.
        const std::vector<int> lengths{0, 5, 100, 1000, 2500};
        const int within = static_cast<int>(text.size()) + std::max(0, -distance) + one_of(lengths, random);
        made += "within:" + std::to_string(within) + "; ";
      }
    }
    if (random() % 6 == 0) made += "isdataat:" + std::to_string(random() % 600) + ",relative; ";
    if (random() % 8 == 0) made += "byte_test:1,>,97,0,relative; ";
  }
  if (random() % 10 == 0) made += "isdataat:" + std::to_string(random() % 600) + "; ";
  return made;
}

/// Dots with words among them, all within the reach of rules.
std::string stream(std::mt19937& random) {
  std::string text(random() % 5000, '.');
  const std::size_t most = text.size() + 1 + random() % (kMostStreamReach - 600);  // isdataat reaches beyond them
  while (text.size() < most) {
    text += word(random);
    const std::vector<std::size_t> gaps{0, 1, 3, 40, 400};
    text += std::string(random() % (1 + one_of(gaps, random)), '.');
  }
  text.resize(most);
  return text + std::string(random() % 4000, '.');
}

Sids found_at_once(const std::vector<CompiledRule>& rules, const std::string& text) {
  Sids found;
  InspectionScratch scratch;
  for (const CompiledRule& rule : rules) {
    scratch.begin_frame();
    scratch.begin_rule();
    if (rule.payload->matches({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, scratch)) {
      found.insert(rule.rule->sid);
    }
  }
  return found;
}

class WindowOracle : public ::testing::TestWithParam<std::tuple<Mode, SearchedBy>> {
 protected:
  /// `exact`: there must be no other alerts.
  static void expect_found(const std::function<std::string(std::mt19937&)>& options_of,
                           const std::function<std::string(std::mt19937&)>& stream_of, bool exact) {
    const auto [mode, who] = GetParam();
    std::size_t found = 0, streams_seen = 0;
    for (unsigned seed = 0; seed < penstock::testing::rounds(25); ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 random(seed);
      std::string text;
      for (std::uint32_t sid = 1; sid <= 40; ++sid) {
        text += "alert tcp-stream any any -> any any (" + options_of(random) + "sid:" + std::to_string(sid) + ";)\n";
      }
      const RuleSet set = rules_of(text);
      std::vector<CompiledRule> rules;
      for (std::uint32_t i = 0; i < set.rules.size(); ++i) rules.push_back(std::move(*compile_rule(set.rules[i], i)));
      const std::vector<std::size_t> segments{7, 100, 1460, 6000};
      CutStreams streams(text, mode, who, kMostStreamReach, one_of(segments, random));
      for (int i = 0; i < 8; ++i) {
        const std::string bytes = stream_of(random);
        const std::vector<std::uint32_t> alerts = streams.alerts_of(bytes, random);
        const Sids seen(alerts.begin(), alerts.end()), expected = found_at_once(rules, bytes);
        found += expected.size();
        ++streams_seen;
        for (const CompiledRule& rule : rules) {
          const std::uint32_t sid = rule.rule->sid;
          if (!exact && !expected.contains(sid)) continue;
          ASSERT_EQ(seen.contains(sid), expected.contains(sid)) << rule.rule->text << "\nin " << bytes;
        }
      }
    }
    EXPECT_GT(found, streams_seen);
  }
};

TEST_P(WindowOracle, ReportsTheMatchesOfTheWholeStream) { expect_found(options, stream, true); }

/// If positions count from the start, segments and chunks are also tried from their own start, so there may be more
/// alerts.
TEST_P(WindowOracle, ReportsTheMatchesOfTheWholeStreamAtPositionsFromItsStart) {
  expect_found(
      [](std::mt19937& random) {
        const std::vector<std::string> placed{
            "content:\"a\"; depth:" + std::to_string(1 + random() % 2000) + "; ",
            "content:\"ab\"; offset:9; depth:" + std::to_string(2 + random() % 2000) + "; ",
            "content:\".\"; startswith; ", "pcre:\"/^\\.+a/\"; ", "byte_test:1,=,0x2e,0; "};
        return one_of(placed, random) + options(random);
      },
      [](std::mt19937& random) { return std::string(random() % 20, '.') + stream(random).substr(0, 2500); }, false);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, WindowOracle,
                         ::testing::Combine(::testing::Values(Mode::watching, Mode::inline_),
                                            ::testing::Values(SearchedBy::us, SearchedBy::another)));

}  // namespace
}  // namespace penstock::nids::testing
