// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/bitvector_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "base/units.h"
#include "classify/interval_set.h"
#include "classify/vector_pool.h"

namespace penstock::classify {

namespace {

/// An interval's first value and the record of all its values.
struct Step {
  Number start;
  std::uint32_t record;
};

/// A dimension, divided where any entry's values begin or end.
struct Steps {
  std::vector<Step> steps;  // the first starts at the domain's lowest value
  bool used = false;        // some entry does not match all values
};

/// Sweeps over a dimension from its lowest value to its highest, and stores the vector of each interval. Stops if the
/// pool exceeds `limit`.
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
  // The intervals of an entry are not adjacent, so no value has two events of one entry.
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

/// Walks the steps of an IPv4 dimension in order, one block of addresses with common higher bits after the other.
class Ipv4Builder {
 public:
  explicit Ipv4Builder(const std::vector<Step>& steps) : steps_(steps) {}

  Ipv4Table build() {
    for (std::uint64_t block = 0; block < std::uint64_t{1} << 32; block += 1U << 16) {
      table_.top.push_back(is_uniform(block, 1U << 16) ? shared_middle() : own_middle(block));
    }
    return std::move(table_);
  }

 private:
  /// Whether one step contains all of [block, block + size). Afterwards `at_` is the step of the first address.
  bool is_uniform(std::uint64_t block, std::uint64_t size) {
    while (at_ + 1 < steps_.size() && steps_[at_ + 1].start.low <= block) ++at_;
    return at_ + 1 == steps_.size() || steps_[at_ + 1].start.low >= block + size;
  }

  static std::uint32_t node(std::size_t slot, bool adds_bits) {
    return static_cast<std::uint32_t>(slot << 1 | (adds_bits ? 1 : 0));
  }

  std::uint32_t shared_records() {
    const auto [at, is_new] = record_slots_.emplace(steps_[at_].record, table_.records.size());
    if (is_new) table_.records.push_back(steps_[at_].record);
    return node(at->second, false);
  }

  std::uint32_t shared_middle() {
    const auto [at, is_new] = middle_slots_.emplace(steps_[at_].record, table_.middle.size());
    if (is_new) table_.middle.push_back(shared_records());
    return node(at->second, false);
  }

  std::uint32_t own_middle(std::uint64_t block) {
    const std::size_t slot = table_.middle.size();
    table_.middle.resize(slot + 256);
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint64_t inner = block + (i << 8);
      table_.middle[slot + i] = is_uniform(inner, 256) ? shared_records() : own_records(inner);
    }
    return node(slot, true);
  }

  std::uint32_t own_records(std::uint64_t block) {
    const std::size_t slot = table_.records.size();
    for (std::uint64_t i = 0; i < 256; ++i) {
      static_cast<void>(is_uniform(block + i, 1));
      table_.records.push_back(steps_[at_].record);
    }
    return node(slot, true);
  }

  const std::vector<Step>& steps_;
  std::size_t at_ = 0;
  Ipv4Table table_;
  std::map<std::uint32_t, std::size_t> record_slots_, middle_slots_;  // by record
};

Ipv6Table ipv6_table(const std::vector<Step>& steps) {
  Ipv6Table table;
  for (const Step& step : steps) {
    table.starts.push_back(step.start);
    table.records.push_back(step.record);
  }
  std::uint32_t last = 0;  // the interval that contains the bucket's first address
  for (std::uint64_t bucket = 0; bucket < 65536; ++bucket) {
    const Ipv6Address lowest{bucket << 48, 0};
    while (last + 1 < table.starts.size() && table.starts[last + 1] <= lowest) ++last;
    table.first.push_back(last);
  }
  table.first.push_back(static_cast<std::uint32_t>(table.starts.size() - 1));
  return table;
}

/// The pages for a small dimension's values, in order of the values.
SmallTable small_table(const std::vector<Step>& steps, const Interval& domain, SmallView::Use use) {
  SmallTable table;
  table.use = use;
  std::map<std::array<std::uint32_t, 256>, std::uint32_t> known;
  std::map<std::uint32_t, std::uint32_t> uniform;  // record -> page, for the many pages with one record
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
std::size_t bytes_of(const std::vector<T>& v) {
  return v.size() * sizeof(T);
}
std::size_t bytes_of(const Ipv4Table& t) { return bytes_of(t.top) + bytes_of(t.middle) + bytes_of(t.records); }
std::size_t bytes_of(const Ipv6Table& t) { return bytes_of(t.first) + bytes_of(t.starts) + bytes_of(t.records); }
std::size_t bytes_of(const SmallTable& t) { return bytes_of(t.pages) + bytes_of(t.records); }

/// The most combined vectors: their index must stay in the first-level cache, and building them must not take long.
std::size_t most_combined(std::size_t entries) {
  constexpr std::size_t kMost = 1 << 14, kMostBits = std::size_t{1} << 27;
  return std::min(kMost, kMostBits / std::max<std::size_t>(entries, 1));
}

/// The distinct records of a dimension, in ascending order.
std::vector<std::uint32_t> records_of(const Steps& cut) {
  std::vector<std::uint32_t> records;
  for (const Step& step : cut.steps) records.push_back(step.record);
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
  return records;
}

/// Combines as many small dimensions as the number of vectors allows.
class Combiner {
 public:
  Combiner(VectorPool& pool, std::size_t most) : pool_(pool), most_(most) {}

  SmallTable add(Steps cut, const Interval& domain) {
    if (!cut.used) return small_table(cut.steps, domain, SmallView::Use::none);
    std::vector<std::uint32_t> records = records_of(cut);
    const std::size_t count = std::max<std::size_t>(count_, 1) * records.size();
    if (count > most_) return small_table(cut.steps, domain, SmallView::Use::alone);
    const auto stride = static_cast<std::uint32_t>(std::max<std::size_t>(count_, 1));
    for (Step& step : cut.steps) {
      const auto at = std::lower_bound(records.begin(), records.end(), step.record);
      step.record = static_cast<std::uint32_t>(at - records.begin()) * stride;
    }
    count_ = count;
    factors_.push_back(std::move(records));
    return small_table(cut.steps, domain, SmallView::Use::combined);
  }

  /// The records of all combinations; the first dimension's values vary fastest.
  std::vector<std::uint32_t> combine() {
    std::vector<std::uint32_t> combined(count_);
    std::vector<std::uint32_t> parts(factors_.size());
    for (std::size_t i = 0; i < count_; ++i) {
      std::size_t rest = i;
      for (std::size_t f = 0; f < factors_.size(); ++f) {
        parts[f] = factors_[f][rest % factors_[f].size()];
        rest /= factors_[f].size();
      }
      combined[i] = pool_.combined(parts);
    }
    return combined;
  }

 private:
  VectorPool& pool_;
  std::size_t most_;
  std::size_t count_ = 0;
  std::vector<std::vector<std::uint32_t>> factors_;
};

}  // namespace

BitVectorView BitVectorTables::view(const Entry* entries) const noexcept {
  BitVectorView view{};
  view.source4 = source4.view();
  view.destination4 = destination4.view();
  view.source6 = source6.view();
  view.destination6 = destination6.view();
  view.kind = kind.view();
  view.destination_port = destination_port.view();
  view.source_port = source_port.view();
  view.place = place.view();
  view.connection = connection.view();
  view.combined = combined.empty() ? nullptr : combined.data();
  view.port_count = port_count;
  view.summary_words = summary_words;
  view.words = words.data();
  view.blocks = blocks.data();
  view.entries = entries;
  return view;
}

std::size_t BitVectorTables::memory_bytes() const noexcept {
  return bytes_of(source4) + bytes_of(destination4) + bytes_of(source6) + bytes_of(destination6) + bytes_of(kind) +
         bytes_of(destination_port) + bytes_of(source_port) + bytes_of(place) + bytes_of(connection) +
         bytes_of(combined) + bytes_of(words) + bytes_of(blocks);
}

Result<BitVectorTables> build_bitvectors(const Ruleset& rules, std::size_t limit) {
  BitVectorTables tables;
  tables.port_count = count_ports(rules);
  VectorPool pool(static_cast<std::uint32_t>(rules.entries.size()));
  const auto too_many = [&] {
    return failure({{rules.file, 0, 0},
                    "too many rules for bit vectors",
                    fmt::format("{} rules, whose vectors need more than {}", format_count(rules.entries.size()),
                                format_size(limit)),
                    "fewer rules, or `engine: linear`"});
  };
  std::array<Steps, kDimensionCount> cuts;
  for (std::uint32_t d = 0; d < kDimensionCount; ++d) {
    cuts[d] = sweep(rules, static_cast<Dimension>(d), tables.port_count, limit, pool);
    if (pool.memory_bytes() > limit) return too_many();
  }
  const auto cut = [&](Dimension d) -> Steps& { return cuts[static_cast<std::size_t>(d)]; };
  tables.source4 = Ipv4Builder(cut(Dimension::source4).steps).build();
  tables.destination4 = Ipv4Builder(cut(Dimension::destination4).steps).build();
  tables.source6 = ipv6_table(cut(Dimension::source6).steps);
  tables.destination6 = ipv6_table(cut(Dimension::destination6).steps);

  Combiner combiner(pool, most_combined(rules.entries.size()));
  const auto small = [&](Dimension d) { return combiner.add(std::move(cut(d)), domain_of(d, tables.port_count)); };
  tables.kind = small(Dimension::kind);
  tables.destination_port = small(Dimension::destination_port);
  tables.source_port = small(Dimension::source_port);
  tables.place = small(Dimension::place);
  tables.connection = small(Dimension::connection);
  tables.combined = combiner.combine();
  tables.summary_words = pool.summary_words();
  tables.words = pool.take_words();
  tables.blocks = pool.take_blocks();
  if (tables.memory_bytes() > limit) return too_many();
  return tables;
}

}  // namespace penstock::classify
