// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounds the memory that rules need, while they are read. A small compressed file can hold any number of rules, a rule
// any number of options, and a variable with many networks is copied into every rule that names it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "nf/nids/rules/address_set.h"
#include "nf/nids/rules/port_set.h"

namespace penstock::nids {

/// The default of the parameter `most_rules`.
inline constexpr std::size_t kMostRules = 150'000;

class RuleCosts {
 public:
  /// Bounds on the average. Rules of real sets have 24 items and, with a HOME_NET of three networks, some 100 bytes.
  static constexpr std::size_t kItemsPerRule = 32;
  static constexpr std::size_t kHeaderBytesPerRule = 4096;

  explicit RuleCosts(std::size_t most_rules) noexcept : most_rules_(most_rules) {}

  /// Call it before a rule is read. `text`: the whole rule.
  void add_rule(std::string_view text);
  /// Adds the ranges of a rule's header.
  void add_header(const AddressSet& addresses, const PortSet& ports);

  /// An error without a place for the first bound that was exceeded; empty if none was.
  [[nodiscard]] const std::optional<Error>& passed_bound() const noexcept { return passed_; }

 private:
  void check(std::size_t cost, std::size_t most, const char* message, std::string (*format)(std::uint64_t));

  std::size_t most_rules_;
  std::size_t rules_ = 0;
  std::size_t items_ = 0;  // options and comma-separated values
  std::size_t header_bytes_ = 0;
  std::optional<Error> passed_;
};

/// The size of a set's ranges in bytes.
[[nodiscard]] std::size_t bytes_of(const AddressSet& set) noexcept;
[[nodiscard]] std::size_t bytes_of(const PortSet& set) noexcept;

}  // namespace penstock::nids
