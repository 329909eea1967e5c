// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rfc_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/units.h"
#include "classify/rfc_phases.h"
#include "classify/rfc_table_writer.h"

namespace penstock::classify {

namespace {

constexpr std::array<Dimension, kRfcRest> kRestDimensions{
    Dimension::kind, Dimension::source_port, Dimension::destination_port, Dimension::place, Dimension::connection};
constexpr std::array<std::string_view, 3> kNodeNames{"source", "destination", "rest"};

std::string shape(std::uint64_t rows, std::uint64_t columns) {
  return fmt::format("{} × {} classes", format_count(rows), format_count(columns));
}

/// A table that is being written, row by row, within the memory that the budget leaves.
class BoundedTable {
 public:
  BoundedTable(const std::vector<std::uint64_t>& memory, RfcBudget& budget, std::uint64_t rows, std::uint64_t columns)
      : before_(memory.size() * sizeof(std::uint64_t)), budget_(budget) {
    // The index of an element has 32 bits.
    if (rows * columns > 0xffffffff) static_cast<void>(budget_.refuse("has too many elements"));
    static_cast<void>(budget_.fits(before_ + RfcTableWriter::least_bytes(rows * columns)));
  }

  bool add(std::span<const std::uint32_t> row) {
    for (const std::uint32_t element : row) table_.add(element);
    return budget_.fits(before_ + table_.memory_bytes());
  }
  [[nodiscard]] const RfcTableWriter& writer() const noexcept { return table_; }
  [[nodiscard]] RfcTableWriter take() noexcept { return std::move(table_); }

 private:
  std::size_t before_;
  RfcBudget& budget_;
  RfcTableWriter table_;
};

/// A node without conditions: all entries are in one group, all packets in one class.
RfcNode trivial_node(std::size_t entries) {
  RfcNode node;
  node.group_of.assign(entries, 0);
  node.groups = 1;
  node.classes.intern(std::array{0U});
  return node;
}

/// Builds the tables of one address family.
class FamilyBuilder {
 public:
  FamilyBuilder(const Ruleset& rules, NetworkLayer family, std::uint32_t port_count, std::vector<std::uint64_t>& memory,
                RfcBudget& budget)
      : rules_(rules),
        ipv4_(family == NetworkLayer::ipv4),
        port_count_(port_count),
        memory_(memory),
        budget_(budget),
        entries_(entries_of(rules, matching_entries())) {}

  RfcFamily build() {
    nodes_[0] = dimension(ipv4_ ? Dimension::source4 : Dimension::source6, ipv4_ ? 2 : 8, tables_.source);
    nodes_[1] =
        dimension(ipv4_ ? Dimension::destination4 : Dimension::destination6, ipv4_ ? 2 : 8, tables_.destination);
    build_rest();
    if (!budget_.excess()) combine_nodes();
    return tables_;
  }

 private:
  [[nodiscard]] std::string_view family_name() const { return ipv4_ ? "IPv4" : "IPv6"; }

  /// Those of the family, without those that match no packet.
  std::vector<std::uint32_t> matching_entries() const {
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < rules_.entries.size(); ++i) {
      const Entry& entry = rules_.entries[i];
      if (entry.family == (ipv4_ ? NetworkLayer::ipv6 : NetworkLayer::ipv4)) continue;
      const auto never = [&](Dimension d) { return values_of(rules_, entry, d, port_count_).empty(); };
      if (never(ipv4_ ? Dimension::source4 : Dimension::source6) ||
          never(ipv4_ ? Dimension::destination4 : Dimension::destination6) ||
          std::ranges::any_of(kRestDimensions, never)) {
        continue;
      }
      indices.push_back(i);
    }
    return indices;
  }

  template <std::uint32_t Most>
  RfcNode dimension(Dimension which, std::uint32_t chunk_count, RfcNumber<Most>& into) {
    constexpr std::array<std::string_view, kDimensionCount> kNames{"source",      "destination", "source",
                                                                   "destination", "source port", "destination port",
                                                                   "kind",        "place",       "connection"};
    budget_.begin(fmt::format("{} {}", family_name(), kNames[static_cast<std::size_t>(which)]));
    RfcDimension made = make_dimension(rules_, entries_.index, which, port_count_, budget_);
    if (budget_.excess()) return {};
    into.count =
        write_chunks(made.steps, chunk_count, domain_of(which, port_count_).high, into.chunks, memory_, budget_);
    return std::move(made.node);
  }

  /// Combines the other dimensions, beginning with those with the fewest classes.
  void build_rest() {
    std::array<RfcNode, kRfcRest> parts{
        dimension(Dimension::kind, 2, tables_.kind), dimension(Dimension::source_port, 1, tables_.source_port),
        dimension(Dimension::destination_port, 1, tables_.destination_port),
        dimension(Dimension::place, 1, tables_.place), dimension(Dimension::connection, 1, tables_.connection)};
    std::ranges::sort(tables_.rest_order, {}, [&](std::uint8_t d) {
      // Those that do not matter are last.
      return parts[d].matters() ? parts[d].classes.size() : ~std::uint32_t{0};
    });
    while (tables_.rest_count < kRfcRest && parts[tables_.rest_order[tables_.rest_count]].matters())
      ++tables_.rest_count;
    nodes_[2] = tables_.rest_count == 0 ? trivial_node(entries_.count()) : std::move(parts[tables_.rest_order[0]]);
    for (std::uint32_t i = 1; i < tables_.rest_count && !budget_.excess(); ++i) {
      const RfcNode& next = parts[tables_.rest_order[i]];
      begin("protocols and ports", nodes_[2].classes.size(), next.classes.size(), budget_);
      BoundedTable table(memory_, budget_, nodes_[2].classes.size(), next.classes.size());
      if (budget_.excess()) return;
      nodes_[2] = combined(nodes_[2], next, budget_, [&](auto row) { return table.add(row); });
      if (!budget_.excess()) tables_.rest[i - 1] = table.writer().append_to(memory_, next.classes.size(), 0);
    }
  }

  void begin(std::string_view phase, std::uint64_t rows, std::uint64_t columns, RfcBudget& budget) {
    budget.begin(fmt::format("{} {} ({})", family_name(), phase, shape(rows, columns)));
  }

  void combine_nodes() {
    std::ranges::sort(tables_.order, {}, [&](std::uint8_t n) { return !nodes_[n].matters(); });
    const auto matter = std::ranges::count_if(nodes_, &RfcNode::matters);
    if (matter < 3) {
      std::swap(tables_.order[1], tables_.order[2]);  // the first and the last are combined
      const RfcNode& first = nodes_[tables_.order[0]];
      return decide_last(entry_lists(first, budget_), nodes_[tables_.order[2]]);
    }
    // Which two are combined first makes a great difference. Try them, and keep those with the fewest elements in both
    // tables.
    std::array<std::array<std::uint8_t, 3>, 3> orders{{{0, 2, 1}, {1, 2, 0}, {0, 1, 2}}};
    std::ranges::sort(orders, {}, [&](const auto& order) { return first_elements(order); });
    std::optional<Candidate> best;
    std::optional<RfcBudget> refused;
    for (const auto& order : orders) {
      RfcBudget trial = budget_;
      try_order(order, trial, best);
      budget_.charge(trial);
      if (trial.excess()) refused = trial;
    }
    if (!best) return budget_ = *refused, void();
    std::ranges::copy(best->order, tables_.order);
    tables_.has_first = true;
    tables_.first = best->first.append_to(memory_, nodes_[best->order[1]].classes.size(), 0);
    decide_last(best->lists, nodes_[best->order[2]]);
  }

  struct Candidate {
    std::array<std::uint8_t, 3> order;
    RfcTableWriter first;
    ListPool lists;
    std::uint64_t elements;
  };

  [[nodiscard]] std::uint64_t first_elements(const std::array<std::uint8_t, 3>& order) const {
    return std::uint64_t{nodes_[order[0]].classes.size()} * nodes_[order[1]].classes.size();
  }

  /// Takes the place of `best` if it is better.
  void try_order(const std::array<std::uint8_t, 3>& order, RfcBudget& budget, std::optional<Candidate>& best) {
    const RfcNode& x = nodes_[order[0]];
    const RfcNode& y = nodes_[order[1]];
    const RfcNode& z = nodes_[order[2]];
    const auto elements = [&](std::uint64_t classes) { return first_elements(order) + classes * z.classes.size(); };
    if (best && elements(0) >= best->elements) return;
    begin(fmt::format("{} × {}", kNodeNames[order[0]], kNodeNames[order[1]]), x.classes.size(), y.classes.size(),
          budget);
    BoundedTable table(memory_, budget, x.classes.size(), y.classes.size());
    RfcPruner pruner(entries_, z, budget);
    if (budget.excess()) return;
    bool better = true;
    ListPool lists = combine(x, y, x.group_of, y.group_of, &pruner, budget, [&](const ListPool& classes, auto row) {
      better = !best || elements(classes.size()) < best->elements;
      return better && budget.fits(RfcTableWriter::least_bytes(elements(classes.size()))) && table.add(row);
    });
    if (!better || budget.excess()) return;
    const std::uint64_t total = elements(lists.size());
    best.emplace(Candidate{order, table.take(), std::move(lists), total});
  }

  void decide_last(const ListPool& lists, const RfcNode& rest) {
    begin("last phase", lists.size(), rest.classes.size(), budget_);
    BoundedTable table(memory_, budget_, lists.size(), rest.classes.size());
    if (budget_.excess()) return;
    decide(entries_, lists, rest, budget_, [&](auto row) { return table.add(row); });
    if (!budget_.excess()) tables_.last = table.writer().append_to(memory_, rest.classes.size(), 0);
  }

  const Ruleset& rules_;
  bool ipv4_;
  std::uint32_t port_count_;
  std::vector<std::uint64_t>& memory_;
  RfcBudget& budget_;
  RfcEntries entries_;
  std::array<RfcNode, 3> nodes_;  // source, destination, rest
  RfcFamily tables_;
};

}  // namespace

Result<RfcTables> build_rfc(const Ruleset& rules, const RfcLimits& limits) {
  RfcTables tables;
  tables.port_count = count_ports(rules);
  RfcBudget budget(std::min<std::size_t>(limits.memory_bytes, 0xfffffff0), limits.steps);
  tables.ipv4 = FamilyBuilder(rules, NetworkLayer::ipv4, tables.port_count, tables.memory, budget).build();
  if (!budget.excess())
    tables.ipv6 = FamilyBuilder(rules, NetworkLayer::ipv6, tables.port_count, tables.memory, budget).build();
  if (!budget.excess()) return tables;
  return failure({{rules.file, 0, 0},
                  "too many rules for RFC",
                  fmt::format("{}: {}", format_count(rules.entries.size(), "rule"), *budget.excess()),
                  "fewer rules, or `engine: bitvector`"});
}

}  // namespace penstock::classify
