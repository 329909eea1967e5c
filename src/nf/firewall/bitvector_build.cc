// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/bitvector_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "base/units.h"
#include "nf/firewall/interval_set.h"
#include "nf/firewall/vector_pool.h"

namespace penstock::firewall {

namespace {

/// An interval's first value and the record of all its values.
struct Step {
  Number start;
  std::uint32_t record;
};

/// A dimension, cut where any entry's values begin or end.
struct Steps {
  std::vector<Step> steps;  // the first starts at the domain's lowest value
  bool used = false;        // some entry does not match all values
};

std::uint32_t count_ports(const Ruleset& rules) {
  std::uint64_t named = 0;
  for (const Condition& condition : rules.conditions) {
    if (condition.subject != Subject::in_port && condition.subject != Subject::out_port) continue;
    named |= static_cast<std::uint64_t>(condition.high) << 32 | condition.low;
  }
  return static_cast<std::uint32_t>(std::bit_width(named));
}

/// Sweeps over a dimension from its lowest value to its highest and notes the vector of each interval. Stops where the
/// pool is over `limit`.
Steps sweep(const Ruleset& rules, Dimension dimension, std::uint32_t port_count, std::size_t limit, VectorPool& pool) {
  struct Event {
    Number at;
    std::uint32_t entry;
    bool on;
  };
  Steps result;
  const Interval domain = domain_of(dimension, port_count);
  std::vector<Event> events;
  for (std::uint32_t e = 0; e < rules.entries.size(); ++e) {
    const IntervalSet values = values_of(rules, rules.entries[e], dimension, port_count);
    result.used |= values != IntervalSet{domain};
    for (const Interval& interval : values) {
      events.push_back({interval.low, e, true});
      if (interval.high != domain.high) events.push_back({successor(interval.high), e, false});
    }
  }
  // An entry's intervals are not adjacent, so no value has two events of one entry.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });

  pool.clear();
  result.steps.push_back({domain.low, 0});
  auto event = events.begin();
  for (;;) {
    for (; event != events.end() && event->at == result.steps.back().start; ++event) pool.set(event->entry, event->on);
    result.steps.back().record = pool.record();
    const std::size_t n = result.steps.size();
    if (n > 1 && result.steps[n - 2].record == result.steps[n - 1].record) result.steps.pop_back();
    if (event == events.end() || pool.memory_bytes() > limit) return result;
    result.steps.push_back({event->at, 0});
  }
}

std::uint32_t narrow(const Number& n, std::uint32_t) { return static_cast<std::uint32_t>(n.low); }
Ipv6Address narrow(const Number& n, const Ipv6Address&) { return n; }
std::uint32_t lowest_of(std::uint32_t bucket, std::uint32_t) { return bucket << 16; }
Ipv6Address lowest_of(std::uint32_t bucket, const Ipv6Address&) { return {std::uint64_t{bucket} << 48, 0}; }

template <typename Address>
IntervalTable<Address> interval_table(const std::vector<Step>& steps) {
  IntervalTable<Address> table;
  for (const Step& step : steps) {
    table.starts.push_back(narrow(step.start, Address{}));
    table.records.push_back(step.record);
  }
  table.first.resize(65537);
  std::uint32_t last = 0;  // the interval that holds the bucket's first address
  for (std::uint32_t bucket = 0; bucket < 65536; ++bucket) {
    const Address lowest = lowest_of(bucket, Address{});
    while (last + 1 < table.starts.size() && table.starts[last + 1] <= lowest) ++last;
    table.first[bucket] = last;
  }
  table.first[65536] = static_cast<std::uint32_t>(table.starts.size() - 1);
  return table;
}

PageTable page_table(const std::vector<Step>& steps, const Interval& domain) {
  PageTable table;
  std::map<std::array<std::uint32_t, 256>, std::uint32_t> known;
  std::map<std::uint32_t, std::uint32_t> uniform;  // record -> page, for the many pages of one record
  std::array<std::uint32_t, 256> page{};
  std::size_t step = 0;
  const auto intern = [&] {
    const auto [at, is_new] = known.emplace(page, static_cast<std::uint32_t>(known.size()));
    if (is_new) table.records.insert(table.records.end(), page.begin(), page.end());
    return at->second;
  };
  for (std::uint64_t first = 0; first <= domain.high.low; first += 256) {
    while (step + 1 < steps.size() && steps[step + 1].start.low <= first) ++step;
    if (step + 1 == steps.size() || steps[step + 1].start.low >= first + 256) {
      const auto [at, is_new] = uniform.emplace(steps[step].record, 0);
      if (is_new) {
        page.fill(steps[step].record);
        at->second = intern();
      }
      table.pages.push_back(at->second);
      continue;
    }
    std::size_t s = step;
    for (std::uint64_t i = 0; i < 256; ++i) {
      while (s + 1 < steps.size() && steps[s + 1].start.low <= first + i) ++s;
      page[i] = steps[s].record;
    }
    table.pages.push_back(intern());
  }
  return table;
}

template <typename T>
std::size_t bytes_of(const std::vector<T>& v) { return v.size() * sizeof(T); }
template <typename Address>
std::size_t bytes_of(const IntervalTable<Address>& t) { return bytes_of(t.first) + bytes_of(t.starts) + bytes_of(t.records); }
std::size_t bytes_of(const PageTable& t) { return bytes_of(t.pages) + bytes_of(t.records); }

}  // namespace

BitVectorView BitVectorTables::view(const Entry* entries) const noexcept {
  return {source4.view(),    destination4.view(), source6.view(),
          destination6.view(), kind.view(),       source_port.view(),
          destination_port.view(), place.view(),  uses_kind,
          uses_source_port,  uses_destination_port, uses_place,
          port_count,        summary_words,       words.data(),
          blocks.data(),     entries};
}

std::size_t BitVectorTables::memory_bytes() const noexcept {
  return bytes_of(source4) + bytes_of(destination4) + bytes_of(source6) + bytes_of(destination6) + bytes_of(kind) +
         bytes_of(source_port) + bytes_of(destination_port) + bytes_of(place) + bytes_of(words) + bytes_of(blocks);
}

Result<BitVectorTables> build_bitvectors(const Ruleset& rules, std::size_t limit) {
  BitVectorTables tables;
  tables.port_count = count_ports(rules);
  VectorPool pool(static_cast<std::uint32_t>(rules.entries.size()));
  std::array<Steps, kDimensionCount> cuts;
  for (std::uint32_t d = 0; d < kDimensionCount; ++d) {
    cuts[d] = sweep(rules, static_cast<Dimension>(d), tables.port_count, limit, pool);
    if (pool.memory_bytes() > limit) {
      return failure({{rules.file, 0, 0},
                      "too many rules for bit vectors",
                      fmt::format("{} rules whose vectors need more than {}", format_count(rules.entries.size()),
                                  format_size(limit)),
                      "fewer rules, or `engine: linear`"});
    }
  }
  const auto cut = [&](Dimension d) -> const Steps& { return cuts[static_cast<std::size_t>(d)]; };
  const auto pages = [&](Dimension d) { return page_table(cut(d).steps, domain_of(d, tables.port_count)); };
  tables.source4 = interval_table<std::uint32_t>(cut(Dimension::source4).steps);
  tables.destination4 = interval_table<std::uint32_t>(cut(Dimension::destination4).steps);
  tables.source6 = interval_table<Ipv6Address>(cut(Dimension::source6).steps);
  tables.destination6 = interval_table<Ipv6Address>(cut(Dimension::destination6).steps);
  tables.source_port = pages(Dimension::source_port);
  tables.destination_port = pages(Dimension::destination_port);
  tables.kind = pages(Dimension::kind);
  tables.place = pages(Dimension::place);
  tables.uses_source_port = cut(Dimension::source_port).used;
  tables.uses_destination_port = cut(Dimension::destination_port).used;
  tables.uses_kind = cut(Dimension::kind).used;
  tables.uses_place = cut(Dimension::place).used;
  tables.summary_words = pool.summary_words();
  tables.words = pool.take_words();
  tables.blocks = pool.take_blocks();
  return tables;
}

}  // namespace penstock::firewall
