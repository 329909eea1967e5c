// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/device_filters.h"

#include <fmt/format.h>

namespace penstock::experiments {

Result<const KeyFilter*> DeviceFilters::get(const Wish& wish) {
  table_bytes_ = 0;
  if (wish.method == "bpf+constant") {
    if (wish.rules.size() > kMostConstantRules) {
      return failure({{}, fmt::format("{} rules do not fit into constant memory", wish.rules.size()), "", ""});
    }
    if (wish.reading == Reading::text) {
      const std::vector<WordRule<2>> rules = without_ports(wish.rules);
      constant_ = make_constant_filter<2>(rules, wish.deciding, wish.unroll);
      table_bytes_ = std::span(rules).size_bytes();
    } else {
      constant_ = make_constant_filter<kKeyWords>(wish.rules, wish.deciding, wish.unroll);
      table_bytes_ = std::span(wish.rules).size_bytes();
    }
    return constant_.get();
  }
  if (wish.method != "bpf+code") return rfc(wish);
  std::unique_ptr<KeyFilter>& there = code_[wish.deciding];
  if (there == nullptr) {
    auto made = make_code_filter(wish.rules, wish.deciding);
    if (!made) return tl::unexpected(std::move(made.error()));
    there = std::move(*made);
  }
  return there.get();
}

Result<const KeyFilter*> DeviceFilters::rfc(const Wish& wish) {
  auto tables = tables_.find(wish.deciding);
  if (tables == tables_.end()) {
    auto built = classify::build_rfc(ruleset_of(wish.rules, wish.deciding));
    if (!built) return tl::unexpected(std::move(built.error()));
    tables = tables_.emplace(wish.deciding, std::move(*built)).first;
  }
  table_bytes_ = tables->second.memory_bytes();
  const auto rules = static_cast<std::uint32_t>(wish.rules.size());
  if (wish.method == "rfc+constant") {
    constant_ = make_constant_rfc_filter(tables->second, rules, wish.deciding);
    return constant_.get();
  }
  std::unique_ptr<KeyFilter>& there = rfc_[wish.deciding];
  if (there == nullptr) there = make_rfc_filter(tables->second, rules, wish.deciding);
  return there.get();
}

void DeviceFilters::forget() {
  constant_.reset();
  code_.clear();
  rfc_.clear();
  tables_.clear();
}

}  // namespace penstock::experiments
