// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Both engines' cores on the device, over copies of the host's tables, against the linear search on the host.

#include <gtest/gtest.h>

#include <vector>

#include "gpu/check.cuh"
#include "gpu/memory.h"
#include "nf/firewall/bitvector_build.h"
#include "nf/firewall/bitvector_core.h"
#include "nf/firewall/linear_core.h"
#include "nf/firewall/random_rules_for_test.h"

namespace penstock::firewall {
namespace {

constexpr unsigned kThreads = 128;

__global__ void decide(LinearView rules, const Key* keys, std::uint32_t* entries, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) entries[i] = deciding_entry(rules, keys[i]);
}

__global__ void decide(BitVectorView table, const Key* keys, std::uint32_t* entries, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  VectorSet set;
  locate(table, keys[i], set);
  entries[i] = deciding_entry(table, set);
}

/// Owns the copies of a rule set's tables on the device.
class DeviceTables {
 public:
  LinearView linear(const Ruleset& rules) {
    return {copy_of(rules.entries), copy_of(rules.conditions), copy_of(rules.port_ranges), copy_of(rules.ranges6),
            static_cast<std::uint32_t>(rules.entries.size())};
  }

  BitVectorView bitvector(const BitVectorTables& tables, const std::vector<Entry>& entries) {
    BitVectorView view = tables.view(copy_of(entries));
    view.source4 = copy_of(tables.source4);
    view.destination4 = copy_of(tables.destination4);
    view.source6 = copy_of(tables.source6);
    view.destination6 = copy_of(tables.destination6);
    view.kind = copy_of(tables.kind);
    view.destination_port = copy_of(tables.destination_port);
    view.source_port = copy_of(tables.source_port);
    view.place = copy_of(tables.place);
    view.combined = copy_of(tables.combined);
    view.words = copy_of(tables.words);
    view.blocks = copy_of(tables.blocks);
    return view;
  }

 private:
  /// nullptr where there is nothing to copy.
  template <typename T>
  const T* copy_of(const std::vector<T>& host) {
    copies_.emplace_back(std::as_bytes(std::span(host)));
    return reinterpret_cast<const T*>(copies_.back().data());
  }
  Ipv4View copy_of(const Ipv4Table& table) {
    return {copy_of(table.top), copy_of(table.middle), copy_of(table.records)};
  }
  Ipv6View copy_of(const Ipv6Table& table) {
    return {copy_of(table.first), copy_of(table.starts), copy_of(table.records)};
  }
  SmallView copy_of(const SmallTable& table) { return {{copy_of(table.pages), copy_of(table.records)}, table.use}; }

  std::vector<gpu::DeviceBuffer<std::byte>> copies_;
};

template <typename View>
std::vector<std::uint32_t> decide_on_device(const View& view, const std::vector<Key>& keys) {
  const gpu::DeviceBuffer<Key> asked{std::span<const Key>(keys)};
  gpu::DeviceBuffer<std::uint32_t> entries(keys.size());
  const auto count = static_cast<unsigned>(keys.size());
  decide<<<(count + kThreads - 1) / kThreads, kThreads>>>(view, asked.data(), entries.data(), count);
  gpu::check_launch();
  return entries.to_host();
}

TEST(EnginesOnDevice, FindWhatTheLinearSearchOnTheHostFinds) {
  for (const std::uint32_t entries : {1U, 63U, 64U, 65U, 512U, 513U, 4096U, 4097U}) {
    Draw draw(entries);
    const Ruleset rules = draw.rules(entries);
    const auto tables = build_bitvectors(rules);
    ASSERT_TRUE(tables);
    std::vector<Key> keys;
    for (int i = 0; i < 20'000; ++i) keys.push_back(draw.key());

    DeviceTables device;
    const auto linear = decide_on_device(device.linear(rules), keys);
    const auto bitvector = decide_on_device(device.bitvector(*tables, rules.entries), keys);

    const LinearView host{rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(), rules.ranges6.data(),
                          entries};
    std::uint32_t decided = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::uint32_t expected = deciding_entry(host, keys[i]);
      ASSERT_EQ(linear[i], expected) << "key " << i << " of " << entries << " entries";
      ASSERT_EQ(bitvector[i], expected) << "key " << i << " of " << entries << " entries";
      decided += expected != kNoEntry ? 1 : 0;
    }
    EXPECT_GT(decided, 0U);
  }
}

}  // namespace
}  // namespace penstock::firewall
