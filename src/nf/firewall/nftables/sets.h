// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets and maps, named and anonymous. The elements of a map are grouped by their verdict, or by what they give to a
// translation. Elements do not overlap where it matters: in a map, each value has at most one verdict.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "classify/interval_set.h"
#include "classify/step.h"
#include "nf/firewall/filter_chains.h"
#include "nf/firewall/nftables/values.h"

namespace penstock::firewall::nftables {

struct Verdict {
  ChainRule::Jump jump = ChainRule::Jump::none;  // none: continue
  std::string target{};       // for `call` and `go`: the name of the chain; in maps to values: theirs
  classify::Answer answer{};  // for `reject`
  std::optional<classify::Translation> translation{};
  NetworkLayer family = NetworkLayer::none;  // of the addresses of `translation`; none: it has none
  /// Of verdicts in maps, which do not reject.
  friend bool operator==(const Verdict& a, const Verdict& b) { return a.jump == b.jump && a.target == b.target; }
};

/// Reads {"drop": null}, {"jump": {"target": "c"}} and so on, but no reject, which can be in no map.
[[nodiscard]] Checked<Verdict> read_verdict(const Json& value);

/// Reads what an element of a map to addresses and ports gives, as a verdict that translates.
[[nodiscard]] Checked<Verdict> read_given(const Json& value);

/// The values of the fields of an element, one set for each. If there is only one field, one tuple has all elements.
using Tuple = std::vector<classify::IntervalSet>;

struct Group {
  Verdict verdict;  // of a map
  std::vector<Tuple> tuples;
};

struct Set {
  std::vector<Type> types;  // of the fields
  bool is_map = false;
  bool to_values = false;     // a map, whose verdicts are `translate`, with what they give
  std::vector<Group> groups;  // of a set: at most one
  /// Its elements come and go: index in StepObjects::sets; it has no groups.
  std::optional<std::uint32_t> changing{};
  /// Interfaces that the chain does not know. No element has them.
  std::set<std::string, std::less<>> unknown_interfaces;
};

/// How many more values may be read and written; bounds memory and time.
class Budget {
 public:
  explicit Budget(std::size_t most) : most_(most), left_(most) {}
  [[nodiscard]] bool take(std::size_t count) noexcept {
    exceeded_ |= count > left_;
    left_ -= exceeded_ ? left_ : count;
    return !exceeded_;
  }
  [[nodiscard]] bool is_exceeded() const noexcept { return exceeded_; }
  /// The problem of what exceeds it.
  [[nodiscard]] tl::unexpected<Problem> problem() const;

 private:
  std::size_t most_;
  std::size_t left_;
  bool exceeded_ = false;
};

/// The elements of a set that changes, each a single value: {"elem": {"val": …, "timeout": 30, "expires": 29}}.
[[nodiscard]] Checked<std::vector<classify::ChangingSet::Element>> read_changing_elements(
    const std::vector<Type>& types, const Json& elements, Names names, Budget& budget);

/// A set with the elements of a JSON array. `to_values`: of a map to addresses and ports, instead of verdicts.
[[nodiscard]] Checked<Set> read_elements(const std::vector<Type>& types, bool is_map, const Json& elements,
                                         const classify::Interfaces& interfaces,
                                         std::set<std::string, std::less<>>& names_used, Budget& budget,
                                         bool to_values = false);

}  // namespace penstock::firewall::nftables
