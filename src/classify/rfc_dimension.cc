// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rfc_dimension.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "classify/rfc_table_writer.h"

namespace penstock::classify {

namespace {

constexpr std::uint32_t kChunkBits = 16;
constexpr std::uint32_t kWordsPerNumber = 4;

void push_number(Number n, std::vector<std::uint32_t>& words) {
  for (const std::uint64_t half : {n.high, n.low}) {
    words.push_back(static_cast<std::uint32_t>(half >> 32));
    words.push_back(static_cast<std::uint32_t>(half));
  }
}

Number number_at(std::span<const std::uint32_t> words) {
  return {std::uint64_t{words[0]} << 32 | words[1], std::uint64_t{words[2]} << 32 | words[3]};
}

/// The bits of `n` from `at` on; `at` is below 128.
std::uint64_t bits_from(Number n, std::uint32_t at) {
  if (at >= 64) return n.high >> (at - 64);
  return at == 0 ? n.low : n.low >> at | n.high << (64 - at);
}

/// The lowest `count` bits; `count` is below 128.
Number lowest_bits(Number n, std::uint32_t count) {
  const auto ones = [](std::uint32_t bits) { return (std::uint64_t{1} << bits) - 1; };
  return count >= 64 ? Number{n.high & ones(count - 64), n.low} : Number{0, n.low & ones(count)};
}

/// From `value` on, the numbers of a chunk lead to the state `child`.
struct Segment {
  std::uint32_t value;
  std::uint32_t child;
};
using Row = std::vector<Segment>;

/// A function from a number's remaining chunks to its class, as a list: the start of each interval (four words) and its
/// class. States with equal functions are one: they are the classes of the chunks so far.
using States = ListPool;

/// For each state, where the next chunk leads.
class Expansion {
 public:
  /// `later_chunks`: how many chunks follow the one that is expanded. `highest`: this chunk's highest value.
  Expansion(const States& states, std::uint32_t later_chunks, std::uint64_t highest, RfcBudget& budget)
      : later_bits_(later_chunks * kChunkBits), highest_(highest) {
    for (std::uint32_t s = 0; s < states.size(); ++s) {
      if (!budget.spend(states[s].size()) || !budget.fits(next_.memory_bytes())) return;
      expand(states[s]);
    }
  }

  std::vector<Row> rows;  // by state
  [[nodiscard]] States take_next() noexcept { return std::move(next_); }

 private:
  void expand(std::span<const std::uint32_t> state) {
    constexpr std::size_t kStep = kWordsPerNumber + 1;
    const auto start = [&](std::size_t i) { return number_at(state.subspan(i)); };
    const auto chunk = [&](std::size_t i) { return bits_from(start(i), later_bits_); };
    Row& row = rows.emplace_back();
    std::uint32_t cls = state[kWordsPerNumber];  // of the numbers before step i
    for (std::size_t i = 0; i < state.size();) {
      const std::uint64_t value = chunk(i);
      if (lowest_bits(start(i), later_bits_) == Number{}) {
        cls = state[i + kWordsPerNumber];
        i += kStep;
      }
      begin_function(cls);
      for (; i < state.size() && chunk(i) == value; i += kStep) {
        cls = state[i + kWordsPerNumber];
        push_number(lowest_bits(start(i), later_bits_), function_);
        function_.push_back(cls);
      }
      push(row, value, intern_function());
      if (value < highest_ && (i == state.size() || chunk(i) > value + 1)) {
        begin_function(cls);
        push(row, value + 1, intern_function());
      }
    }
  }

  void begin_function(std::uint32_t cls) {
    function_.clear();
    push_number({}, function_);
    function_.push_back(cls);
  }
  /// After the last chunk, a state is a class.
  std::uint32_t intern_function() { return later_bits_ == 0 ? function_.back() : next_.intern(function_); }
  static void push(Row& row, std::uint64_t value, std::uint32_t child) {
    if (row.empty() || row.back().child != child) row.push_back({static_cast<std::uint32_t>(value), child});
  }

  std::uint32_t later_bits_;
  std::uint64_t highest_;
  States next_;
  std::vector<std::uint32_t> function_;
};

/// The values of a chunk that lead to the same state from each state.
struct Columns {
  std::vector<std::uint32_t> starts;     // values where the class may change, ascending
  std::vector<std::uint32_t> column_of;  // by start
  std::vector<std::uint32_t> first;      // by column: its first value
};

/// The child that most intervals of the columns have.
std::uint32_t most_frequent(std::span<const std::pair<std::uint32_t, std::uint32_t>> lengths) {
  std::unordered_map<std::uint32_t, std::uint64_t> total;
  std::pair<std::uint64_t, std::uint32_t> most{0, 0};
  for (const auto& [child, length] : lengths) {
    std::uint64_t& sum = total[child];
    sum += length;
    most = std::max(most, {sum, child});
  }
  return most.second;
}

/// Splits all columns that a row distinguishes. Intervals with the row's most frequent child keep their columns, so the
/// cost is that of the others.
void refine(const Row& row, Columns& columns, std::uint32_t& count, RfcBudget& budget) {
  std::vector<std::uint32_t> ends;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths;
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto end = i + 1 == row.size()
                         ? columns.starts.end()
                         : std::lower_bound(columns.starts.begin(), columns.starts.end(), row[i + 1].value);
    ends.push_back(static_cast<std::uint32_t>(end - columns.starts.begin()));
    lengths.emplace_back(row[i].child, ends.back() - begin);
    begin = ends.back();
  }
  const std::uint32_t usual = most_frequent(lengths);
  std::unordered_map<std::uint64_t, std::uint32_t> split;
  begin = 0;
  for (std::size_t i = 0; i < row.size(); begin = ends[i++]) {
    if (row[i].child == usual) continue;
    if (!budget.spend(ends[i] - begin)) return;
    for (std::uint32_t s = begin; s < ends[i]; ++s) {
      const std::uint64_t key = std::uint64_t{columns.column_of[s]} << 32 | row[i].child;
      const auto [at, is_new] = split.emplace(key, count);
      if (is_new) ++count;
      columns.column_of[s] = at->second;
    }
  }
}

Columns columns_of(const std::vector<Row>& rows, RfcBudget& budget) {
  Columns columns;
  for (const Row& row : rows) {
    for (const Segment& segment : row) columns.starts.push_back(segment.value);
  }
  std::sort(columns.starts.begin(), columns.starts.end());
  columns.starts.erase(std::unique(columns.starts.begin(), columns.starts.end()), columns.starts.end());
  columns.column_of.assign(columns.starts.size(), 0);
  std::uint32_t count = 1;
  for (const Row& row : rows) {
    if (row.size() > 1) refine(row, columns, count, budget);
  }
  // Number them in the order of the values. With one row, this is the order of its children.
  std::vector<std::uint32_t> numbers(count, 0);
  for (std::size_t s = 0; s < columns.starts.size(); ++s) {
    std::uint32_t& known = numbers[columns.column_of[s]];
    if (known == 0) {
      columns.first.push_back(columns.starts[s]);
      known = static_cast<std::uint32_t>(columns.first.size());
    }
    columns.column_of[s] = known - 1;
  }
  return columns;
}

RfcTable write_phase0(const Columns& columns, std::uint64_t highest, std::vector<std::uint64_t>& memory) {
  // If the class only changes at multiples of a power of 2, the lower bits need no elements.
  std::uint32_t any = 0;
  for (const std::uint32_t start : columns.starts) any |= start;
  const auto shift = static_cast<std::uint8_t>(std::countr_zero(any));
  RfcTableWriter table;
  std::size_t s = 0;
  for (std::uint64_t value = 0; value <= highest; value += std::uint64_t{1} << shift) {
    while (s + 1 < columns.starts.size() && columns.starts[s + 1] <= value) ++s;
    table.add(columns.column_of[s]);
  }
  return table.append_to(memory, 1, shift);
}

RfcTable write_combination(const std::vector<Row>& rows, const Columns& columns, std::vector<std::uint64_t>& memory,
                           RfcBudget& budget) {
  const std::size_t before = memory.size() * sizeof(std::uint64_t);
  if (!budget.fits(before + RfcTableWriter::least_bytes(std::uint64_t{rows.size()} * columns.first.size()))) return {};
  RfcTableWriter table;
  for (const Row& row : rows) {
    if (!budget.spend(columns.first.size()) || !budget.fits(before + table.memory_bytes())) return {};
    std::size_t i = 0;
    for (const std::uint32_t value : columns.first) {
      while (i + 1 < row.size() && row[i + 1].value <= value) ++i;
      table.add(row[i].child);
    }
  }
  return table.append_to(memory, static_cast<std::uint32_t>(columns.first.size()), 0);
}

}  // namespace

RfcDimension make_dimension(const Ruleset& rules, std::span<const std::uint32_t> entries, Dimension dimension,
                            std::uint32_t port_count, RfcBudget& budget) {
  RfcDimension result;
  const Interval domain = domain_of(dimension, port_count);
  ListPool groups;  // a list: the lowest and highest number of each interval
  std::vector<std::uint32_t> list;
  for (const std::uint32_t entry : entries) {
    list.clear();
    for (const Interval& interval : values_of(rules, rules.entries[entry], dimension, port_count)) {
      push_number(interval.low, list);
      push_number(interval.high, list);
    }
    result.node.group_of.push_back(groups.intern(list));
    if (!budget.spend(list.size()) || !budget.fits(groups.memory_bytes())) return result;
  }
  result.node.groups = groups.size();

  struct Event {
    Number at;
    std::uint32_t group;
    bool on;
  };
  std::vector<Event> events;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const std::span<const std::uint32_t> bounds = groups[g];
    for (std::size_t i = 0; i < bounds.size(); i += 2 * kWordsPerNumber) {
      const Number high = number_at(bounds.subspan(i + kWordsPerNumber));
      events.push_back({number_at(bounds.subspan(i)), g, true});
      if (high != domain.high) events.push_back({successor(high), g, false});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
  list.clear();
  auto event = events.begin();
  for (Number start = domain.low;;) {
    for (; event != events.end() && event->at == start; ++event) {
      const auto at = std::lower_bound(list.begin(), list.end(), event->group);
      if (event->on) {
        list.insert(at, event->group);
      } else {
        list.erase(at);
      }
    }
    const std::uint32_t cls = result.node.classes.intern(list);
    if (result.steps.empty() || result.steps.back().cls != cls) result.steps.push_back({start, cls});
    if (!budget.spend(1 + list.size()) || !budget.fits(result.node.classes.memory_bytes())) return result;
    if (event == events.end()) return result;
    start = event->at;
  }
}

std::uint32_t write_chunks(std::span<const RfcStep> steps, std::uint32_t chunk_count, Number highest,
                           std::span<RfcChunk> chunks, std::vector<std::uint64_t>& memory, RfcBudget& budget) {
  std::vector<std::uint32_t> root;
  for (const RfcStep& step : steps) {
    push_number(step.start, root);
    root.push_back(step.cls);
  }
  States states;
  states.intern(root);
  std::uint32_t count = 0;
  for (std::uint32_t c = 0; c < chunk_count; ++c) {
    const std::uint32_t later = chunk_count - c - 1;
    const std::uint64_t top = c == 0 ? bits_from(highest, later * kChunkBits) : 0xffff;
    Expansion expansion(states, later, top, budget);
    const Columns columns = columns_of(expansion.rows, budget);
    if (budget.excess()) return count;
    if (columns.first.size() > 1) {
      RfcChunk& chunk = chunks[count++];
      chunk.at = later * kChunkBits;
      chunk.classes = write_phase0(columns, top, memory);
      // The first chunk's classes are the states that it leads to, in the same order.
      if (count > 1) chunk.combination = write_combination(expansion.rows, columns, memory, budget);
      if (!budget.fits(memory.size() * sizeof(std::uint64_t))) return count;
    }
    // A chunk that does not matter leads from each state to one of its own, in the same order.
    states = expansion.take_next();
  }
  return count;
}

}  // namespace penstock::classify
