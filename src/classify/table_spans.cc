// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/table_spans.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "classify/key.h"

namespace penstock::classify {

namespace {

using function::refused;
using function::StageRecipe;

/// How many entries, conditions and port ranges a search may visit. Where each of them has to be fetched from the
/// device's memory, that takes less than a second.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 20;
/// How many steps it takes to begin anew in all vectors.
constexpr std::uint64_t kStepsToSkip = 32;
/// What tables can have, as indices have 32 bits.
constexpr std::uint64_t kMostElements = ~std::uint32_t{0};

Ipv4Spans spans_of(const Ipv4Table& table) { return {table.top, table.middle, table.records}; }
Ipv6Spans spans_of(const Ipv6Table& table) { return {table.first, table.starts, table.records}; }
SmallSpans spans_of(const SmallTable& table) { return {table.pages, table.records, table.use}; }
BitVectorSpans spans_of(const BitVectorTables& tables) {
  const auto* const blocks = reinterpret_cast<const std::uint64_t*>(tables.blocks.data());
  return {spans_of(tables.source4),
          spans_of(tables.destination4),
          spans_of(tables.source6),
          spans_of(tables.destination6),
          spans_of(tables.kind),
          spans_of(tables.destination_port),
          spans_of(tables.source_port),
          spans_of(tables.place),
          spans_of(tables.connection),
          tables.combined,
          tables.port_count,
          tables.summary_words,
          tables.words,
          {blocks, tables.blocks.size() * kWordsPerBlock}};
}

/// In the order of TableArguments::uses.
template <typename Spans>
auto small_tables(Spans& spans) {
  return std::array{&spans.kind, &spans.destination_port, &spans.source_port, &spans.place, &spans.connection};
}

Result<void> check_skips(const StageRecipe& recipe, std::span<const Entry> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].action == Action::skip && entries[i].skip_to <= i) return refused(recipe, "an entry skips back");
  }
  return {};
}

/// How many port ranges a condition visits; nothing for one that leads out of its table.
std::optional<std::uint64_t> ranges_of(const Condition& condition, const LinearSpans& tables) {
  switch (condition.subject) {
    case Subject::source_port:
    case Subject::destination_port:
      if (std::uint64_t{condition.index} + condition.count > tables.port_ranges.size()) return std::nullopt;
      return condition.count;
    case Subject::source6:
    case Subject::destination6:
      if (condition.index >= tables.ranges6.size()) return std::nullopt;
      return 1;
    default: return 1;
  }
}

Result<void> check_linear(const StageRecipe& recipe, std::span<const Entry> entries, const LinearSpans& tables) {
  // Entries may share conditions; `before` has the steps of all conditions before each.
  std::vector<std::uint64_t> before{0};
  before.reserve(tables.conditions.size() + 1);
  for (const Condition& condition : tables.conditions) {
    const auto ranges = ranges_of(condition, tables);
    if (!ranges || !function::is_bool(condition.negated)) return refused(recipe, "a condition leads out of its table");
    before.push_back(before.back() + 1 + *ranges);
  }
  std::uint64_t steps = 0;
  for (const Entry& entry : entries) {
    const std::uint64_t end = std::uint64_t{entry.first_condition} + entry.condition_count;
    if (end > tables.conditions.size()) return refused(recipe, "an entry has conditions out of their table");
    steps += 1 + before[end] - before[entry.first_condition];
  }
  if (steps > kMostSteps) {
    return refused(recipe, "a search takes too long", std::to_string(steps) + " steps",
                   "at most " + std::to_string(kMostSteps));
  }
  return {};
}

/// Checks the tables of bit vectors. Records lie in a grid, so that each is checked once, however many values lead to
/// it.
class VectorCheck {
 public:
  VectorCheck(const StageRecipe& recipe, std::size_t entries, const BitVectorSpans& tables)
      : recipe_(recipe),
        entries_(entries),
        tables_(tables),
        blocks_(std::max<std::uint64_t>(1, (entries + kEntriesPerBlock - 1) / kEntriesPerBlock)),
        stride_(tables.summary_words + (blocks_ + 1) / 2) {}

  [[nodiscard]] Result<void> run() const {
    if (tables_.summary_words != (blocks_ * kWordsPerBlock + 63) / 64)
      return refused(recipe_, "number of summary words", std::to_string(tables_.summary_words));
    if (!has_good_records()) return refused(recipe_, "a vector leads out of its table");
    const bool good = check(tables_.source4) && check(tables_.destination4) && check(tables_.source6) &&
                      check(tables_.destination6) && check_small();
    if (!good) return refused(recipe_, "a table of addresses, ports or kinds leads out of itself or to no vector");
    return {};
  }

 private:
  [[nodiscard]] bool has_good_records() const {
    if (tables_.words.size() % stride_ != 0 || tables_.words.size() > kMostElements) return false;
    if (tables_.block_words.size() % kWordsPerBlock != 0) return false;
    const std::size_t stored = tables_.block_words.size() / kWordsPerBlock;
    // Blocks with entries beyond the last one must not be the last of a vector.
    std::vector<bool> ends(stored);
    for (std::size_t block = 0; block < stored; ++block) ends[block] = can_end(block);
    for (std::size_t record = 0; record < tables_.words.size(); record += stride_) {
      const auto words = tables_.words.subspan(record, stride_);
      for (std::uint64_t word = blocks_ * kWordsPerBlock; word < std::uint64_t{tables_.summary_words} * 64; ++word) {
        if ((words[word / 64] >> word % 64 & 1) != 0) return false;
      }
      for (std::uint64_t i = 0; i < blocks_; ++i) {
        const auto block = static_cast<std::uint32_t>(words[tables_.summary_words + i / 2] >> (i % 2 * 32));
        if (block >= stored || (i + 1 == blocks_ && !ends[block])) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool can_end(std::size_t block) const {
    for (std::size_t bit = entries_ - (blocks_ - 1) * kEntriesPerBlock; bit < kEntriesPerBlock; ++bit) {
      if ((tables_.block_words[block * kWordsPerBlock + bit / 64] >> bit % 64 & 1) != 0) return false;
    }
    return true;
  }
  [[nodiscard]] bool is_record(std::uint32_t word) const { return word % stride_ == 0 && word < tables_.words.size(); }
  [[nodiscard]] bool are_records(Numbers numbers) const {
    return numbers.size() <= kMostElements &&
           std::ranges::all_of(numbers, [&](std::uint32_t number) { return is_record(number); });
  }

  [[nodiscard]] bool check(const Ipv4Spans& table) const {
    const auto lead_into = [](Numbers nodes, Numbers next) {
      return std::ranges::all_of(nodes, [&](std::uint32_t node) {
        return std::uint64_t{node >> 1} + ((node & 1) != 0 ? 0xff : 0) < next.size();
      });
    };
    return table.top.size() == 65'536 && lead_into(table.top, table.middle) && lead_into(table.middle, table.records) &&
           are_records(table.records);
  }
  [[nodiscard]] bool check(const Ipv6Spans& table) const {
    return table.first.size() == 65'537 && std::ranges::is_sorted(table.first) &&
           table.first.back() < std::min(table.starts.size(), table.records.size()) && are_records(table.records);
  }

  /// The pages of `numbers` numbers.
  [[nodiscard]] static bool check_pages(const SmallSpans& table, std::uint64_t numbers) {
    if (table.pages.size() < (numbers + 255) / 256 || table.records.size() > kMostElements) return false;
    return std::ranges::all_of(table.pages, [&](std::uint32_t page) { return page < table.records.size() / 256; });
  }
  [[nodiscard]] bool check_small() const {
    const std::uint64_t ends = std::uint64_t{tables_.port_count} + 1;
    if (ends > std::uint64_t{1} << 15) return false;  // places have 32 bits
    const std::array<std::uint64_t, 5> numbers{kKindCount, kNoTransportPort + 1, kNoTransportPort + 1, ends * ends * 2,
                                               256};
    std::uint64_t dimensions = 2, combined = 0;
    std::size_t i = 0;
    for (const SmallSpans* const table : small_tables(tables_)) {
      const std::uint64_t count = numbers[i++];
      if (table->use == SmallView::Use::none) continue;
      if (!check_pages(*table, count)) return false;
      if (table->use == SmallView::Use::combined) {
        combined += std::ranges::max(table->records);
      } else {
        if (!are_records(table->records)) return false;
        ++dimensions;
      }
    }
    if (!tables_.combined.empty()) {
      ++dimensions;
      if (combined >= tables_.combined.size() || !are_records(tables_.combined)) return false;
    }
    return dimensions <= kMaxDimensions;
  }

  const StageRecipe& recipe_;
  const std::uint64_t entries_;
  const BitVectorSpans& tables_;
  const std::uint64_t blocks_;
  const std::uint64_t stride_;  // of records
};

Result<void> check_vectors(const StageRecipe& recipe, std::span<const Entry> entries, const BitVectorSpans& tables) {
  const auto skips = static_cast<std::uint64_t>(std::ranges::count(entries, Action::skip, &Entry::action));
  const std::uint64_t steps = entries.size() / 64 * kMaxDimensions + skips * kStepsToSkip;
  if (steps > kMostSteps) {
    return refused(recipe, "a search takes too long", std::to_string(steps) + " steps",
                   "at most " + std::to_string(kMostSteps));
  }
  return VectorCheck(recipe, entries.size(), tables).run();
}

}  // namespace

std::optional<TableSpans> spans_of(const Ruleset& rules, const Classifier& classifier) {
  if (classifier.rfc() != nullptr) return std::nullopt;
  TableSpans tables{rules.entries, view_of(rules), LinearSpans{rules.conditions, rules.port_ranges, rules.ranges6}};
  tables.rules.entries = nullptr;
  if (const BitVectorTables* const vectors = classifier.bitvectors()) tables.engine = spans_of(*vectors);
  return tables;
}

TableArguments arguments_of(const TableSpans& tables) {
  const auto* const vectors = std::get_if<BitVectorSpans>(&tables.engine);
  TableArguments arguments{tables.rules.rule_count,
                           vectors != nullptr ? vectors->port_count : 0,
                           vectors != nullptr ? vectors->summary_words : 0,
                           vectors != nullptr ? std::uint8_t{1} : std::uint8_t{0},
                           tables.rules.ipv4_policy,
                           tables.rules.ipv6_policy,
                           {}};
  if (vectors == nullptr) return arguments;
  std::size_t i = 0;
  for (const SmallSpans* const table : small_tables(*vectors)) arguments.uses[i++] = table->use;
  return arguments;
}

TableSpans read_tables(const TableArguments& arguments, function::TableReader& read_table) {
  TableSpans tables{{}, {nullptr, arguments.rule_count, arguments.ipv4_policy, arguments.ipv6_policy}, LinearSpans{}};
  if (arguments.has_vectors != 0) {
    auto& vectors = tables.engine.emplace<BitVectorSpans>();
    vectors.port_count = arguments.port_count;
    vectors.summary_words = arguments.summary_words;
    std::size_t i = 0;
    for (SmallSpans* const table : small_tables(vectors)) table->use = arguments.uses[i++];
  }
  each_array(tables, read_table);
  return tables;
}

Result<void> check_tables(const StageRecipe& recipe, const TableSpans& tables) {
  if (tables.entries.size() >= kMostElements) return refused(recipe, "too many entries");
  if (auto checked = check_skips(recipe, tables.entries); !checked) return checked;
  if (const auto* const linear = std::get_if<LinearSpans>(&tables.engine))
    return check_linear(recipe, tables.entries, *linear);
  return check_vectors(recipe, tables.entries, std::get<BitVectorSpans>(tables.engine));
}

}  // namespace penstock::classify
