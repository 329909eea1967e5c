// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the engines' cores on the device, with copies of the host's tables, with the linear search on the host.

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "classify/device_tables.h"
#include "classify/random_rules_for_test.h"
#include "gpu/check.cuh"
#include "gpu/memory.h"

namespace penstock::classify {
namespace {

constexpr unsigned kThreads = 128;

template <typename View>
__global__ void decide(View table, const Key* keys, std::uint32_t* entries, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) entries[i] = deciding_entry(table, keys[i]);
}

std::vector<std::uint32_t> decide_on_device(Engine engine, const Ruleset& rules, const std::vector<Key>& keys) {
  const auto classifier = make_classifier(engine, rules);
  EXPECT_TRUE(classifier);
  const DeviceTables tables(rules, **classifier);
  const gpu::DeviceBuffer<Key> asked{std::span<const Key>(keys)};
  gpu::DeviceBuffer<std::uint32_t> entries(keys.size());
  const auto count = static_cast<unsigned>(keys.size());
  std::visit(
      [&](const auto& view) {
        decide<<<(count + kThreads - 1) / kThreads, kThreads>>>(view, asked.data(), entries.data(), count);
      },
      tables.engine());
  gpu::check_launch();
  return entries.to_host();
}

TEST(EnginesOnDevice, FindWhatTheLinearSearchOnTheHostFinds) {
  for (const std::uint32_t entries : {1U, 63U, 64U, 65U, 512U, 513U, 4096U, 4097U}) {
    Draw draw(entries);
    const Ruleset rules = draw.rules(entries);
    std::vector<Key> keys;
    for (int i = 0; i < 20'000; ++i) keys.push_back(draw.key());

    const auto linear = decide_on_device(Engine::linear, rules, keys);
    const auto bitvector = decide_on_device(Engine::bitvector, rules, keys);
    // With many such rules, RFC's tables are too large.
    const auto rfc = entries > 65 ? bitvector : decide_on_device(Engine::rfc, rules, keys);

    const LinearView host{rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(), rules.ranges6.data(),
                          entries};
    std::uint32_t decided = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::uint32_t expected = deciding_entry(host, keys[i]);
      ASSERT_EQ(linear[i], expected) << "key " << i << " of " << entries << " entries";
      ASSERT_EQ(bitvector[i], expected) << "key " << i << " of " << entries << " entries";
      ASSERT_EQ(rfc[i], expected) << "key " << i << " of " << entries << " entries";
      decided += expected != kNoEntry ? 1 : 0;
    }
    EXPECT_GT(decided, 0U);
  }
}

}  // namespace
}  // namespace penstock::classify
