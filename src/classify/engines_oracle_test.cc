// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the bit vectors and RFC with the linear search, on random rules and keys that cluster at the edges of the
// rules.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "base/testing/rounds.h"
#include "classify/bitvector_build.h"
#include "classify/classifier.h"
#include "classify/random_rules_for_test.h"

namespace penstock::classify {
namespace {

// The same cases in every run, unless the user sets a seed.
[[maybe_unused]] const int kFixedSeed = ::setenv("RC_PARAMS", "seed=1", 0);

void expect_agreement(const Ruleset& rules, Draw& draw, std::uint32_t keys, std::initializer_list<Engine> engines) {
  const auto linear = make_classifier(Engine::linear, rules);
  ASSERT_TRUE(linear);
  std::vector<Key> asked;
  for (std::uint32_t i = 0; i < keys; ++i) asked.push_back(draw.key());
  std::vector<std::uint32_t> slow(asked.size()), quick(asked.size());
  (*linear)->classify(asked, slow.data());
  for (const Engine engine : engines) {
    const auto made = make_classifier(engine, rules);
    ASSERT_TRUE(made) << to_string(made.error());
    (*made)->classify(asked, quick.data());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(slow[i], quick[i]) << (*made)->name() << ", key " << i;
    }
  }
}

RC_GTEST_PROP(Engines, AgreeOnRandomRules, ()) {
  Draw draw(*rc::gen::arbitrary<std::uint64_t>());
  const auto entries = *rc::gen::element(1U, 2U, 63U, 64U, 65U, 511U, 512U, 513U);
  // Most of these rules leave many fields open, and so RFC's tables grow with a high power of their number.
  const Ruleset rules = draw.rules(entries);
  expect_agreement(rules, draw, penstock::testing::rounds(300), {Engine::bitvector});
  if (entries < 100) expect_agreement(rules, draw, penstock::testing::rounds(300), {Engine::rfc});
}

TEST(Engines, AgreeIfASummaryTakesSeveralWords) {
  // 4,096 entries fill a summary word.
  for (const std::uint32_t entries : {4095U, 4096U, 4097U, 9000U}) {
    if (entries != 4097 && penstock::testing::stride() > 1) continue;  // a minute under sanitizers
    Draw draw(entries);
    expect_agreement(draw.rules(entries), draw, penstock::testing::rounds(3000), {Engine::bitvector});
  }
}

TEST(Engines, WithoutRulesThePolicyDecides) {
  Draw draw(1);
  const Ruleset rules;
  for (const Engine engine : {Engine::linear, Engine::bitvector, Engine::rfc}) {
    const auto made = make_classifier(engine, rules);
    ASSERT_TRUE(made);
    const Key key = draw.key();
    std::uint32_t entry = 0;
    (*made)->classify({&key, 1}, &entry);
    EXPECT_EQ(entry, kNoEntry) << (*made)->name();
  }
}

TEST(BitVectorBuild, RefusesToGrowBeyondItsLimit) {
  Draw draw(7);
  const Ruleset rules = draw.rules(4096);
  const auto tables = build_bitvectors(rules, std::size_t{1} << 12);
  ASSERT_FALSE(tables);
  EXPECT_EQ(to_string(tables.error()),
            "too many rules for bit vectors: found 4,096 rules, whose vectors need more than 4.0 KiB, "
            "expected fewer rules, or `engine: linear`");
}

}  // namespace
}  // namespace penstock::classify
