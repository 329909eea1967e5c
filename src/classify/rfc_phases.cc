// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rfc_phases.h"

#include <algorithm>
#include <array>

namespace penstock::classify {

namespace {

/// For each number below `count`, the positions where it occurs.
class Inverse {
 public:
  Inverse(std::span<const std::uint32_t> numbers, std::uint32_t count) : starts_(count + 1, 0) {
    for (const std::uint32_t n : numbers) ++starts_[n + 1];
    for (std::uint32_t n = 0; n < count; ++n) starts_[n + 1] += starts_[n];
    positions_.resize(numbers.size());
    std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) positions_[next[numbers[i]]++] = i;
  }
  /// The classes that contain each group.
  explicit Inverse(const RfcNode& node) : starts_(node.groups + 1, 0) {
    for (std::uint32_t c = 0; c < node.classes.size(); ++c) {
      for (const std::uint32_t group : node.classes[c]) ++starts_[group + 1];
    }
    for (std::uint32_t g = 0; g < node.groups; ++g) starts_[g + 1] += starts_[g];
    positions_.resize(starts_.back());
    std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
    for (std::uint32_t c = 0; c < node.classes.size(); ++c) {
      for (const std::uint32_t group : node.classes[c]) positions_[next[group]++] = c;
    }
  }
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t n) const noexcept {
    return std::span(positions_).subspan(starts_[n], starts_[n + 1] - starts_[n]);
  }

 private:
  std::vector<std::size_t> starts_;
  std::vector<std::uint32_t> positions_;
};

/// The items that match in a class of `x`, divided by their group in `y`, row after row.
class RowItems {
 public:
  RowItems(const RfcNode& x, std::uint32_t y_groups, std::span<const std::uint32_t> x_of,
           std::span<const std::uint32_t> y_of)
      : x_(x), y_of_(y_of), items_of_(x_of, x.groups), of_group_(y_groups) {}

  /// Returns the number of items.
  std::size_t gather(std::uint32_t x_class) {
    for (const std::uint32_t group : groups_) of_group_[group].clear();
    groups_.clear();
    std::size_t count = 0;
    for (const std::uint32_t group : x_.classes[x_class]) {
      count += items_of_[group].size();
      for (const std::uint32_t item : items_of_[group]) {
        std::vector<std::uint32_t>& list = of_group_[y_of_[item]];
        if (list.empty()) groups_.push_back(y_of_[item]);
        list.push_back(item);
      }
    }
    std::ranges::sort(groups_);
    return count;
  }
  /// The groups of `y` that have items.
  [[nodiscard]] std::span<const std::uint32_t> groups() const noexcept { return groups_; }
  /// In ascending order.
  [[nodiscard]] std::vector<std::uint32_t>& items_of(std::uint32_t group) {
    std::vector<std::uint32_t>& list = of_group_[group];
    if (!std::ranges::is_sorted(list)) std::ranges::sort(list);
    return list;
  }

 private:
  const RfcNode& x_;
  std::span<const std::uint32_t> y_of_;
  Inverse items_of_;
  std::vector<std::vector<std::uint32_t>> of_group_;
  std::vector<std::uint32_t> groups_;
};

/// The class of a cell, which is the union of some lists. Cells with the same lists are looked up, not computed.
class Cells {
 public:
  explicit Cells(RfcPruner* pruner) : pruner_(pruner) {}

  std::uint32_t list(std::span<const std::uint32_t> items) { return lists_.intern(items); }

  std::uint32_t class_of(std::span<const std::uint32_t> lists) {
    const std::uint32_t cell = unions_.intern(lists);
    if (cell < class_of_.size()) return class_of_[cell];
    items_.clear();
    for (const std::uint32_t l : lists) items_.insert(items_.end(), lists_[l].begin(), lists_[l].end());
    std::ranges::sort(items_);
    if (pruner_ != nullptr) pruner_->prune(items_);
    class_of_.push_back(classes_.intern(items_));
    return class_of_.back();
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return lists_.memory_bytes() + unions_.memory_bytes() + classes_.memory_bytes();
  }
  [[nodiscard]] const ListPool& classes() const noexcept { return classes_; }
  [[nodiscard]] ListPool take_classes() noexcept { return std::move(classes_); }

 private:
  RfcPruner* pruner_;
  ListPool lists_, unions_, classes_;
  std::vector<std::uint32_t> class_of_;  // by union
  std::vector<std::uint32_t> items_;
};

/// By group: whether all classes contain it.
std::vector<bool> groups_in_all(const RfcNode& node, const Inverse& classes_with) {
  std::vector<bool> in_all(node.groups);
  for (std::uint32_t g = 0; g < node.groups; ++g) in_all[g] = classes_with[g].size() == node.classes.size();
  return in_all;
}

}  // namespace

RfcEntries entries_of(const Ruleset& rules, std::vector<std::uint32_t> indices) {
  RfcEntries entries;
  entries.index = std::move(indices);
  for (const std::uint32_t index : entries.index) {
    const Entry& entry = rules.entries[index];
    std::uint32_t to = 0;
    if (entry.action == Action::skip) {
      to = static_cast<std::uint32_t>(std::ranges::lower_bound(entries.index, entry.skip_to) - entries.index.begin());
      entries.has_skips = true;
    }
    entries.skip_to.push_back(to);
  }
  return entries;
}

RfcPruner::RfcPruner(const RfcEntries& entries, const RfcNode& rest, RfcBudget& budget)
    : entries_(entries), rest_(rest) {
  constexpr std::uint32_t kMostGroups = 1 << 13;  // their bits take 8 MiB
  const Inverse classes_with(rest);
  matches_all_ = groups_in_all(rest, classes_with);
  if (rest.groups > kMostGroups) return;
  words_ = (rest.groups + 63) / 64;
  covered_by_.assign(words_ * rest.groups, ~std::uint64_t{0});
  std::vector<std::uint64_t> bits(words_);
  for (std::uint32_t c = 0; c < rest.classes.size(); ++c) {
    if (!budget.spend(rest.classes[c].size() * words_ / 8)) return;
    std::ranges::fill(bits, 0);
    for (const std::uint32_t g : rest.classes[c]) bits[g / 64] |= std::uint64_t{1} << (g % 64);
    for (const std::uint32_t g : rest.classes[c]) {
      for (std::size_t w = 0; w < words_; ++w) covered_by_[g * words_ + w] &= bits[w];
    }
  }
}

bool RfcPruner::covers(std::uint32_t group, std::uint32_t other) const noexcept {
  if (group == other) return true;
  return words_ != 0 && (covered_by_[other * words_ + group / 64] >> (group % 64) & 1) != 0;
}

void RfcPruner::prune(std::vector<std::uint32_t>& positions) {
  deciding_.clear();  // groups of the entries that are tested in any case
  std::size_t kept = 0;
  std::uint32_t furthest_skip = 0;
  for (const std::uint32_t position : positions) {
    const std::uint32_t group = rest_.group_of[position];
    if (std::ranges::any_of(deciding_, [&](std::uint32_t earlier) { return covers(earlier, group); })) continue;
    positions[kept++] = position;
    if (entries_.skip_to[position] != 0) {
      furthest_skip = std::max(furthest_skip, entries_.skip_to[position]);
    } else if (position >= furthest_skip) {
      deciding_.push_back(group);
      if (matches_all_[group]) break;
    }
  }
  positions.resize(kept);
}

ListPool combine(const RfcNode& x, const RfcNode& y, std::span<const std::uint32_t> x_of,
                 std::span<const std::uint32_t> y_of, RfcPruner* pruner, RfcBudget& budget,
                 const CombinedRowSink& sink) {
  constexpr std::uint64_t kStepsPerCell = 4;
  constexpr std::uint32_t kSample = 256;
  const Inverse y_classes_with(y);
  const std::vector<bool> in_all = groups_in_all(y, y_classes_with);
  RowItems items(x, y.groups, x_of, y_of);
  Cells cells(pruner);
  std::vector<std::uint32_t> row(y.classes.size());
  std::vector<std::vector<std::uint32_t>> lists_of(y.classes.size());  // by cell: those that not all cells have
  std::vector<std::uint32_t> touched, common, lists;
  const auto steps_of_row = [&](std::uint32_t a) {
    std::uint64_t steps = items.gather(a) + row.size() / 8;
    for (const std::uint32_t group : items.groups()) {
      if (!in_all[group]) steps += kStepsPerCell * y_classes_with[group].size();
    }
    return steps;
  };
  // Some rows show how long all of them will take.
  const std::uint32_t stride = x.classes.size() / kSample + 1;
  std::uint64_t sampled = 0;
  for (std::uint32_t a = 0; a < x.classes.size(); a += stride) sampled += steps_of_row(a);
  if (!budget.expect(sampled * stride)) return {};
  for (std::uint32_t a = 0; a < x.classes.size(); ++a) {
    if (!budget.spend(steps_of_row(a))) break;
    common.clear();
    touched.clear();
    for (const std::uint32_t group : items.groups()) {
      const std::uint32_t list = cells.list(items.items_of(group));
      if (in_all[group]) {
        common.push_back(list);
        continue;
      }
      for (const std::uint32_t b : y_classes_with[group]) {
        if (lists_of[b].empty()) touched.push_back(b);
        lists_of[b].push_back(list);
      }
    }
    std::ranges::fill(row, cells.class_of(common));
    for (const std::uint32_t b : touched) {
      lists = common;
      lists.insert(lists.end(), lists_of[b].begin(), lists_of[b].end());
      lists_of[b].clear();
      row[b] = cells.class_of(lists);
    }
    if (!budget.fits(cells.memory_bytes()) || !sink(cells.classes(), row)) break;
  }
  return cells.take_classes();
}

RfcNode combined(const RfcNode& x, const RfcNode& y, RfcBudget& budget, const RowSink& sink) {
  RfcNode node;
  ListPool pairs;
  for (std::size_t e = 0; e < x.group_of.size(); ++e) {
    node.group_of.push_back(pairs.intern(std::array{x.group_of[e], y.group_of[e]}));
  }
  node.groups = pairs.size();
  std::vector<std::uint32_t> x_of, y_of;
  for (std::uint32_t p = 0; p < pairs.size(); ++p) {
    x_of.push_back(pairs[p][0]);
    y_of.push_back(pairs[p][1]);
  }
  node.classes = combine(x, y, x_of, y_of, nullptr, budget,
                         [&](const ListPool&, std::span<const std::uint32_t> row) { return sink(row); });
  return node;
}

ListPool entry_lists(const RfcNode& node, RfcBudget& budget) {
  const Inverse entries_with(node.group_of, node.groups);
  ListPool lists;
  std::vector<std::uint32_t> list;
  for (std::uint32_t c = 0; c < node.classes.size(); ++c) {
    list.clear();
    for (const std::uint32_t group : node.classes[c]) {
      list.insert(list.end(), entries_with[group].begin(), entries_with[group].end());
    }
    std::ranges::sort(list);
    lists.intern(list);
    if (!budget.spend(list.size()) || !budget.fits(lists.memory_bytes())) break;
  }
  return lists;
}

void decide(const RfcEntries& entries, const ListPool& lists, const RfcNode& rest, RfcBudget& budget,
            const RowSink& sink) {
  const Inverse classes_with(rest);
  std::vector<std::uint32_t> row(rest.classes.size());
  // If an entry skips others: where evaluation stands, for each class.
  std::vector<std::uint32_t> at(entries.has_skips ? row.size() : 0);
  // All steps are known in advance, so that a table that takes too long is not even begun.
  std::uint64_t steps = std::uint64_t{lists.size()} * row.size() / 8;
  for (std::uint32_t l = 0; l < lists.size(); ++l) {
    for (const std::uint32_t position : lists[l]) steps += classes_with[rest.group_of[position]].size();
  }
  if (!budget.spend(steps)) return;
  for (std::uint32_t l = 0; l < lists.size(); ++l) {
    std::ranges::fill(row, 0);
    std::ranges::fill(at, 0);
    for (const std::uint32_t position : lists[l]) {
      for (const std::uint32_t c : classes_with[rest.group_of[position]]) {
        if (row[c] != 0 || (entries.has_skips && position < at[c])) continue;
        if (entries.skip_to[position] != 0) {
          at[c] = entries.skip_to[position];
        } else {
          row[c] = entries.index[position] + 1;
        }
      }
    }
    if (!sink(row)) return;
  }
}

}  // namespace penstock::classify
