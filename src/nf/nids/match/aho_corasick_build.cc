// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/aho_corasick_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "nf/nids/match/text_core.h"

namespace penstock::nids {

namespace {

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kNobody = 0xffff'ffff;

class Builder {
 public:
  explicit Builder(std::span<const Literal> literals) : literals_(literals) {
    folds_ = std::any_of(literals.begin(), literals.end(), [](const Literal& l) { return l.nocase; });
  }

  Result<AhoCorasickTables> build() {
    classify();
    if (!grow_trie()) {
      return failure(Error{{},
                           "the Aho-Corasick automaton needs too much memory",
                           fmt::format("{} literals", literals_.size()),
                           fmt::format("at most {} MiB", kMostAhoCorasickBytes >> 20)});
    }
    complete();
    renumber();
    return std::move(tables_);
  }

 private:
  [[nodiscard]] std::uint8_t seen(std::uint8_t byte) const { return folds_ ? folded(byte) : byte; }

  /// One class for each byte that occurs in a literal; class 0 for all others.
  void classify() {
    std::array<bool, 256> used{};
    for (const Literal& literal : literals_) {
      for (const std::uint8_t byte : literal.bytes) used[seen(byte)] = true;
    }
    std::uint32_t classes = std::all_of(used.begin(), used.end(), [](bool u) { return u; }) ? 0 : 1;
    std::array<std::uint8_t, 256> own{};
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (used[byte]) own[byte] = static_cast<std::uint8_t>(classes++);
    }
    tables_.class_of.resize(256);
    for (unsigned byte = 0; byte < 256; ++byte) tables_.class_of[byte] = own[seen(static_cast<std::uint8_t>(byte))];
    tables_.classes = std::max(classes, 1U);
  }

  [[nodiscard]] std::uint32_t& next(std::uint32_t state, std::uint32_t byte_class) {
    return rows_[std::size_t{state} * tables_.classes + byte_class];
  }

  [[nodiscard]] bool add_state() {
    if ((rows_.size() + tables_.classes) * sizeof(std::uint32_t) > kMostAhoCorasickBytes) return false;
    rows_.resize(rows_.size() + tables_.classes, kNobody);
    ends_.emplace_back();
    return true;
  }

  [[nodiscard]] bool grow_trie() {
    if (!add_state()) return false;
    for (std::uint32_t i = 0; i < literals_.size(); ++i) {
      std::uint32_t state = kRoot;
      for (const std::uint8_t byte : literals_[i].bytes) {
        const std::uint32_t byte_class = tables_.class_of[byte];
        if (next(state, byte_class) == kNobody) {
          const auto fresh = static_cast<std::uint32_t>(ends_.size());
          if (!add_state()) return false;
          next(state, byte_class) = fresh;
        }
        state = next(state, byte_class);
      }
      ends_[state].push_back(i);
      tables_.longest = std::max(tables_.longest, static_cast<std::uint32_t>(literals_[i].bytes.size()));
    }
    return true;
  }

  /// Breadth first, so that a state's longest proper suffix is complete before the state.
  void complete() {
    suffix_.assign(ends_.size(), kRoot);
    accepting_suffix_.assign(ends_.size(), kNobody);
    order_.push_back(kRoot);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint32_t state = order_[i];
      const std::uint32_t suffix = suffix_[state];
      if (state != kRoot) accepting_suffix_[state] = ends_[suffix].empty() ? accepting_suffix_[suffix] : suffix;
      for (std::uint32_t c = 0; c < tables_.classes; ++c) {
        std::uint32_t& to = next(state, c);
        const std::uint32_t otherwise = state == kRoot ? kRoot : next(suffix, c);
        if (to == kNobody) {
          to = otherwise;
        } else {
          suffix_[to] = otherwise;
          order_.push_back(to);
        }
      }
    }
  }

  [[nodiscard]] bool accepts(std::uint32_t state) const {
    return !ends_[state].empty() || accepting_suffix_[state] != kNobody;
  }

  /// Keeps the breadth-first order, because rows near the root are read most, but moves accepting states to the end.
  void renumber() {
    std::stable_partition(order_.begin(), order_.end(), [&](std::uint32_t state) { return !accepts(state); });
    std::vector<std::uint32_t> number(order_.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) number[order_[i]] = i;
    tables_.states = static_cast<std::uint32_t>(order_.size());
    tables_.literals = static_cast<std::uint32_t>(literals_.size());
    const auto first = static_cast<std::uint32_t>(
        std::find_if(order_.begin(), order_.end(), [&](std::uint32_t state) { return accepts(state); }) -
        order_.begin());
    const auto fill = [&](auto& rows) {
      rows.reserve(rows_.size());
      for (const std::uint32_t state : order_) {
        for (std::uint32_t c = 0; c < tables_.classes; ++c) {
          rows.push_back(
              static_cast<typename std::remove_reference_t<decltype(rows)>::value_type>(number[next(state, c)]));
        }
      }
    };
    if (tables_.states <= std::numeric_limits<std::uint16_t>::max()) {
      fill(tables_.narrow);
    } else {
      fill(tables_.wide);
    }
    for (std::size_t i = first; i < order_.size(); ++i) {
      const std::uint32_t state = order_[i];
      AcAccepting accepting{static_cast<std::uint32_t>(tables_.outputs.size()),
                            static_cast<std::uint32_t>(ends_[state].size()), AcAccepting::kNone};
      if (accepting_suffix_[state] != kNobody) accepting.suffix = number[accepting_suffix_[state]] - first;
      for (const std::uint32_t literal : ends_[state]) tables_.outputs.push_back(output(literal));
      tables_.accepting.push_back(accepting);
    }
  }

  [[nodiscard]] AcOutput output(std::uint32_t index) {
    const Literal& literal = literals_[index];
    AcOutput output{index, static_cast<std::uint32_t>(literal.bytes.size()), AcOutput::kExact};
    if (folds_ && !literal.nocase && std::any_of(literal.bytes.begin(), literal.bytes.end(), is_letter)) {
      output.bytes = static_cast<std::uint32_t>(tables_.texts.size());
      tables_.texts.insert(tables_.texts.end(), literal.bytes.begin(), literal.bytes.end());
    }
    return output;
  }

  std::span<const Literal> literals_;
  bool folds_ = false;
  std::vector<std::uint32_t> rows_;
  std::vector<std::vector<std::uint32_t>> ends_;  // the literals that end at a state
  std::vector<std::uint32_t> suffix_, accepting_suffix_;
  std::vector<std::uint32_t> order_;
  AhoCorasickTables tables_;
};

}  // namespace

std::size_t AhoCorasickTables::bytes() const noexcept {
  return class_of.size() + narrow.size() * sizeof(std::uint16_t) + wide.size() * sizeof(std::uint32_t) +
         accepting.size() * sizeof(AcAccepting) + outputs.size() * sizeof(AcOutput) + texts.size();
}

template <typename Entry>
AhoCorasickView<Entry> AhoCorasickTables::view() const noexcept {
  const Entry* rows = nullptr;
  if constexpr (sizeof(Entry) == sizeof(std::uint16_t)) {
    rows = narrow.data();
  } else {
    rows = wide.data();
  }
  return {class_of.data(), rows,    accepting.data(), outputs.data(),
          texts.data(),    classes, states,           states - static_cast<std::uint32_t>(accepting.size()),
          longest};
}

template AhoCorasickView<std::uint16_t> AhoCorasickTables::view() const noexcept;
template AhoCorasickView<std::uint32_t> AhoCorasickTables::view() const noexcept;

Result<AhoCorasickTables> build_aho_corasick(std::span<const Literal> literals) { return Builder(literals).build(); }

}  // namespace penstock::nids
