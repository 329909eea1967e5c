// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/classifier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "classify/bitvector_build.h"
#include "classify/bitvector_core.h"
#include "classify/linear_core.h"
#include "classify/rfc_build.h"
#include "classify/rfc_core.h"

namespace penstock::classify {

namespace {

class LinearClassifier final : public Classifier {
 public:
  explicit LinearClassifier(const Ruleset& rules) noexcept
      : view_{rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(), rules.ranges6.data(),
              static_cast<std::uint32_t>(rules.entries.size())},
        bytes_(rules.entries.size() * sizeof(Entry) + rules.conditions.size() * sizeof(Condition) +
               rules.port_ranges.size() * sizeof(PortRange) + rules.ranges6.size() * sizeof(Ipv6Range)) {}

  void classify(std::span<const Key> keys, std::uint32_t* entries) const noexcept override {
    for (std::size_t i = 0; i < keys.size(); ++i) entries[i] = deciding_entry(view_, keys[i]);
  }
  std::uint32_t next(const Key& key, std::uint32_t from) const noexcept override {
    return deciding_entry(view_, key, from);
  }
  std::size_t memory_bytes() const noexcept override { return bytes_; }
  std::string_view name() const noexcept override { return "linear"; }

 private:
  LinearView view_;
  std::size_t bytes_;
};

class BitVectorClassifier final : public Classifier {
 public:
  BitVectorClassifier(const Ruleset& rules, BitVectorTables tables) noexcept
      : tables_(std::move(tables)), view_(tables_.view(rules.entries.data())) {}

  void classify(std::span<const Key> keys, std::uint32_t* entries) const noexcept override {
    while (!keys.empty()) {
      const std::span<const Key> group = keys.first(std::min(keys.size(), kGroup));
      std::array<VectorSet, kGroup> sets;
      // Lookups of different packets are independent, and the vectors are fetched while they go on.
      for (std::size_t i = 0; i < group.size(); ++i) {
        locate(view_, group[i], sets[i]);
        for (std::uint32_t d = 0; d < sets[i].count; ++d) __builtin_prefetch(view_.words + sets[i].records[d]);
      }
      for (std::size_t i = 0; i < group.size(); ++i) entries[i] = deciding_entry(view_, sets[i]);
      keys = keys.subspan(group.size());
      entries += group.size();
    }
  }
  std::uint32_t next(const Key& key, std::uint32_t from) const noexcept override {
    return deciding_entry(view_, key, from);
  }
  const BitVectorTables* bitvectors() const noexcept override { return &tables_; }
  std::size_t memory_bytes() const noexcept override { return tables_.memory_bytes(); }
  std::string_view name() const noexcept override { return "bitvector"; }

 private:
  BitVectorTables tables_;
  BitVectorView view_;
};

/// The entries of at most kGroup keys.
inline void find_group(const RfcView& view, std::span<const Key> group, std::uint32_t* entries) noexcept {
  std::array<RfcPlace, Classifier::kGroup> places;
  std::array<std::uint32_t, Classifier::kGroup> last;
  // As for bit vectors: the tables of the later phases are large, and are fetched for all packets at once.
  for (std::size_t i = 0; i < group.size(); ++i) {
    const RfcFamily& tables = family_of(view, group[i]);
    places[i] = locate(view.memory, tables, group[i], view.port_count);
    if (tables.has_first) view.memory.prefetch(tables.first, places[i].first);
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    const RfcFamily& tables = family_of(view, group[i]);
    last[i] = last_element(view.memory, tables, places[i]);
    view.memory.prefetch(tables.last, last[i]);
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    entries[i] = entry_at(view.memory, family_of(view, group[i]), last[i]);
  }
}

/// The same, with the processor's instruction that counts bits; our programs also run without it.
[[gnu::target("popcnt"), gnu::flatten]] void find_group_by_popcnt(const RfcView& view, std::span<const Key> group,
                                                                  std::uint32_t* entries) noexcept {
  find_group(view, group, entries);
}

const bool kHasPopcnt = __builtin_cpu_supports("popcnt") != 0;

class RfcClassifier final : public Classifier {
 public:
  explicit RfcClassifier(RfcTables tables) noexcept : tables_(std::move(tables)), view_(tables_.view()) {}

  void classify(std::span<const Key> keys, std::uint32_t* entries) const noexcept override {
    while (!keys.empty()) {
      const std::span<const Key> group = keys.first(std::min(keys.size(), kGroup));
      (kHasPopcnt ? find_group_by_popcnt : find_group)(view_, group, entries);
      keys = keys.subspan(group.size());
      entries += group.size();
    }
  }
  std::uint32_t next(const Key& /*key*/, std::uint32_t /*from*/) const noexcept override {
    return kNoEntry;  // make_classifier() refuses rules with steps
  }
  const RfcTables* rfc() const noexcept override { return &tables_; }
  std::size_t memory_bytes() const noexcept override { return tables_.memory_bytes(); }
  std::string_view name() const noexcept override { return "rfc"; }

 private:
  RfcTables tables_;
  RfcView view_;
};

}  // namespace

Engine engine_of(std::string_view name) {
  if (name == "linear") return Engine::linear;
  return name == "rfc" ? Engine::rfc : Engine::bitvector;
}

Result<std::unique_ptr<Classifier>> make_classifier(Engine engine, const Ruleset& rules) {
  if (engine == Engine::linear) return std::make_unique<LinearClassifier>(rules);
  if (engine == Engine::rfc && rules.has_steps()) {
    return failure({{},
                    "rules with limits, quotas, sets that change, marks or logs, which rfc cannot have",
                    "",
                    "`engine: bitvector` or `engine: linear`"});
  }
  if (engine == Engine::rfc) {
    return build_rfc(rules).map([](RfcTables&& tables) -> std::unique_ptr<Classifier> {
      return std::make_unique<RfcClassifier>(std::move(tables));
    });
  }
  Result<BitVectorTables> tables = build_bitvectors(rules);
  if (!tables) return tl::unexpected(std::move(tables.error()));
  return std::make_unique<BitVectorClassifier>(rules, std::move(*tables));
}

}  // namespace penstock::classify
