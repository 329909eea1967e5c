// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "nf/firewall/nftables/steps.h"
#include "nf/firewall/nftables/translation.h"

namespace penstock::firewall::nftables {

namespace {

using classify::IntervalSet;
using Jump = ChainRule::Jump;

/// An element without its statements, or null if they are not supported.
const Json* without_statements(const Json& element) {
  if (!element.is_object() || !element.contains("elem")) return &element;
  const Json& inner = element["elem"];
  if (element.size() != 1 || !inner.is_object() || !inner.contains("val")) return nullptr;
  for (const auto& [key, value] : inner.items()) {
    if (key != "val" && key != "comment" && key != "counter") return nullptr;
  }
  return &inner["val"];
}

bool overlap(const Tuple& a, const Tuple& b) {
  return std::ranges::equal(a, b, [](const IntervalSet& one, const IntervalSet& other) {
    return std::ranges::any_of(one, [&](const classify::Interval& i) {
      return std::ranges::any_of(other,
                                 [&](const classify::Interval& j) { return i.low <= j.high && j.low <= i.high; });
    });
  });
}

class ElementsReader {
 public:
  ElementsReader(const std::vector<Type>& types, bool is_map, bool to_values, Names names, Budget& budget)
      : types_(types), names_(names), budget_(budget) {
    set_.types = types;
    set_.is_map = is_map;
    set_.to_values = to_values;
  }

  Checked<Set> read(const Json& elements) {
    if (!elements.is_array()) return mistake("wrong elements of a set", "", "a list");
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (auto added = read_element(elements[i]); !added) {
        return within(fmt::format("[{}]", i), std::move(added.error()));
      }
    }
    if (auto finished = finish(); !finished) return tl::unexpected(std::move(finished.error()));
    set_.unknown_interfaces = names_.unknown;
    return std::move(set_);
  }

 private:
  Checked<void> read_element(const Json& element) {
    Verdict verdict;
    const Json* key = &element;
    if (set_.is_map) {
      if (!element.is_array() || element.size() != 2) {
        return mistake("wrong element of a map", "",
                       fmt::format("a list of a key and a {}", set_.to_values ? "value" : "verdict"));
      }
      key = &element[0];
      auto read = set_.to_values ? read_given(element[1]) : read_verdict(element[1]);
      if (!read) return within("[1]", std::move(read.error()));
      verdict = std::move(*read);
    }
    key = without_statements(*key);
    if (key == nullptr) {
      return unsupported("an element with a timeout or a statement is not supported", "", "an element that stays");
    }
    if (*key == "*") {
      if (rest_) return mistake("second element *", "", "one");
      rest_ = std::move(verdict);
      return {};
    }
    auto tuple = read_tuple(*key);
    if (!tuple) return tl::unexpected(std::move(tuple.error()));
    std::size_t size = 0;
    for (const IntervalSet& values : *tuple) size += values.size();
    if (!budget_.take(size + 1)) return budget_.problem();
    add(std::move(verdict), std::move(*tuple));
    return {};
  }

  Checked<Tuple> read_tuple(const Json& key) {
    Tuple tuple;
    if (types_.size() == 1) {
      auto values = read_value(types_.front(), key, names_);
      if (!values) return tl::unexpected(std::move(values.error()));
      tuple.push_back(std::move(*values));
      return tuple;
    }
    const auto parts = key.is_object() ? key.find("concat") : key.end();
    if (!key.is_object() || parts == key.end() || !parts->is_array() || parts->size() != types_.size()) {
      return mistake("wrong element of a set", "", fmt::format("a concatenation of {} values", types_.size()));
    }
    for (std::size_t i = 0; i < types_.size(); ++i) {
      auto values = read_value(types_[i], (*parts)[i], names_);
      if (!values) return within(fmt::format(".concat[{}]", i), std::move(values.error()));
      tuple.push_back(std::move(*values));
    }
    return tuple;
  }

  void add(Verdict verdict, Tuple tuple) {
    const auto [known, is_new] = group_of_.try_emplace({verdict.jump, verdict.target}, set_.groups.size());
    if (is_new) set_.groups.push_back({std::move(verdict), {}});
    Group& group = set_.groups[known->second];
    if (types_.size() == 1 && !group.tuples.empty()) {
      IntervalSet& values = group.tuples.front().front();
      values.insert(values.end(), tuple.front().begin(), tuple.front().end());
    } else {
      group.tuples.push_back(std::move(tuple));
    }
  }

  Checked<void> finish() {
    if (types_.size() != 1) return finish_tuples();
    unite();
    std::vector<classify::Interval> all;
    for (const Group& group : set_.groups) {
      const IntervalSet& values = group.tuples.front().front();
      all.insert(all.end(), values.begin(), values.end());
    }
    if (overlapping(all)) return overlapping_elements();
    if (!rest_) return {};
    add(std::move(*rest_), {classify::complement(classify::united(std::move(all)), domain_of(types_.front()))});
    unite();
    return {};
  }

  void unite() {
    for (Group& group : set_.groups) {
      IntervalSet& values = group.tuples.front().front();
      values = classify::united(std::move(values));
    }
  }

  static bool overlapping(std::vector<classify::Interval> all) {
    std::ranges::sort(all, {}, &classify::Interval::low);
    return std::ranges::adjacent_find(all, [](const auto& a, const auto& b) { return b.low <= a.high; }) != all.end();
  }

  static tl::unexpected<Problem> overlapping_elements() {
    return unsupported("elements that overlap and have different verdicts or values are not supported");
  }

  /// In the kernel, one of several elements that match decides, depending on the order in which they were added.
  Checked<void> finish_tuples() {
    if (rest_) return unsupported("the element * beside concatenations is not supported");
    if (set_.groups.size() < 2) return {};
    std::size_t count = 0;
    for (const Group& group : set_.groups) count += group.tuples.size();
    constexpr std::size_t kMostCompared = 4096;
    if (count > kMostCompared) {
      return unsupported("a map of concatenations with so many elements is not supported", format_count(count),
                         fmt::format("at most {}", format_count(kMostCompared)));
    }
    // A comparison is cheap, but there are many.
    constexpr std::size_t kComparedPerValue = 16;
    if (!budget_.take(count * count / 2 / kComparedPerValue)) return budget_.problem();
    for (auto a = set_.groups.begin(); a != set_.groups.end(); ++a) {
      for (auto b = a + 1; b != set_.groups.end(); ++b) {
        for (const Tuple& one : a->tuples) {
          if (std::ranges::any_of(b->tuples, [&](const Tuple& other) { return overlap(one, other); })) {
            return overlapping_elements();
          }
        }
      }
    }
    return {};
  }

  const std::vector<Type>& types_;
  Names names_;
  Budget& budget_;
  Set set_;
  std::map<std::pair<Jump, std::string>, std::size_t> group_of_;
  std::optional<Verdict> rest_;  // of the element *
};

}  // namespace

Checked<Verdict> read_verdict(const Json& value) {
  if (!value.is_object() || value.size() != 1) return mistake("wrong verdict", "", "an object of one member");
  const std::string& kind = value.begin().key();
  const Json& target = value.begin().value();
  if (kind == "accept") return Verdict{Jump::accept};
  if (kind == "drop") return Verdict{Jump::drop};
  if (kind == "return") return Verdict{Jump::give_back};
  if (kind == "continue") return Verdict{Jump::none};
  if (kind != "jump" && kind != "goto") return unsupported(fmt::format("{} is not supported", kind));
  if (!target.is_object() || !target.contains("target") || !target["target"].is_string()) {
    return mistake("jump without a target", "", "{\"target\": CHAIN}");
  }
  return Verdict{kind == "jump" ? Jump::call : Jump::go, target["target"].get<std::string>()};
}

Checked<Verdict> read_given(const Json& value) {
  const auto read = read_mapped(value);
  if (!read) return tl::unexpected(read.error());
  return Verdict{Jump::translate, text_of(read->translation.range, read->family), {}, read->translation, read->family};
}

Checked<Set> read_elements(const std::vector<Type>& types, bool is_map, const Json& elements,
                           const classify::Interfaces& interfaces, std::set<std::string, std::less<>>& names_used,
                           Budget& budget, bool to_values) {
  std::set<std::string, std::less<>> unknown;
  return ElementsReader(types, is_map, to_values, {interfaces, names_used, unknown}, budget).read(elements);
}

Checked<std::vector<classify::ChangingSet::Element>> read_changing_elements(const std::vector<Type>& types,
                                                                            const Json& elements, Names names,
                                                                            Budget& budget) {
  if (!elements.is_array()) return mistake("wrong elements of a set", "", "a list");
  std::vector<classify::ChangingSet::Element> read;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto in_element = [&](Problem problem) { return within(fmt::format("[{}]", i), std::move(problem)); };
    const Json* key = &elements[i];
    classify::ChangingSet::Element element;
    if (key->is_object() && key->contains("elem")) {
      const Json& outer = (*key)["elem"];
      if (!outer.is_object() || !outer.contains("val"))
        return in_element(Problem{false, "wrong element of a set", "", "\"val\""});
      for (const auto& [member, value] : outer.items()) {
        // What is left of the time counts.
        if (member == "expires" || (member == "timeout" && !outer.contains("expires"))) {
          const auto time = read_seconds_ns(value);
          if (!time) return in_element(time.error());
          element.timeout_ns = std::max<std::uint64_t>(*time, 1);
        } else if (member != "val" && member != "comment" && member != "counter" && member != "timeout" &&
                   member != "limit" && member != "quota" && member != "ct count") {
          return in_element(Problem{true, "an element with this statement is not supported", in_quotes(member), ""});
        }
      }
      key = &outer["val"];
    }
    const bool is_tuple = types.size() > 1;
    const auto parts = is_tuple && key->is_object() ? key->find("concat") : key->end();
    if (is_tuple && (!key->is_object() || parts == key->end() || !parts->is_array() || parts->size() != types.size()))
      return in_element(
          Problem{false, "wrong element of a set", "", fmt::format("a concatenation of {} values", types.size())});
    for (std::size_t t = 0; t < types.size(); ++t) {
      const auto values = read_value(types[t], is_tuple ? (*parts)[t] : *key, names);
      if (!values) return in_element(values.error());
      if (values->size() != 1 || values->front().low != values->front().high)
        return in_element(Problem{true, "a range in a set that changes is not supported", "", "single values"});
      element.key.push_back(values->front().low);
    }
    if (!budget.take(types.size() + 1)) return budget.problem();
    read.push_back(std::move(element));
  }
  return read;
}

tl::unexpected<Problem> Budget::problem() const {
  const std::string most = format_count(most_);
  return mistake("too many values in sets and rules", "more than " + most,
                 fmt::format("at most {} (most_rules raises it)", most));
}

}  // namespace penstock::firewall::nftables
