// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Resolves the addresses and ports of a rule's header: lists, negations, variables that contain variables. Results are
// cached, since most rules use the same few.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nf/nids/rules/address_set.h"
#include "nf/nids/rules/port_set.h"
#include "nf/nids/rules/rule_reader.h"
#include "nf/nids/rules/rule_text.h"

namespace penstock::nids {

class VariableResolver {
 public:
  /// The most bytes of ranges that all lists together may produce: a short list can name a long variable many times.
  static constexpr std::size_t kMostListBytes = std::size_t{512} << 20;

  /// Borrows the variables.
  explicit VariableResolver(const Variables& variables) noexcept : variables_(variables) {}

  /// an address is negated, in the text or in a variable.
  struct Addresses : AddressSet {
    bool negates = false;
    [[nodiscard]] static Addresses any() { return {AddressSet::any()}; }
  };

  /// Null on error, which `why` describes. The resolver owns the result.
  [[nodiscard]] const Addresses* addresses(std::string_view text, Complaint& why);
  [[nodiscard]] const PortSet* ports(std::string_view text, Complaint& why);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <typename Set>
  using Kept = std::unordered_map<std::string, Set, Hash, std::equal_to<>>;
  static constexpr std::size_t kMostKept = 100'000;

  template <typename Set>
  const Set* kept_or_read(Kept<Set>& kept, std::string_view text, Complaint& why);
  template <typename Set>
  std::optional<Set> read(std::string_view text, int depth, Complaint& why);
  template <typename Set>
  std::optional<Set> read_list(std::string_view text, int depth, Complaint& why);

  const Variables& variables_;
  Kept<Addresses> addresses_;
  Kept<PortSet> ports_;
  Kept<Addresses> address_variables_;
  Kept<PortSet> port_variables_;
  std::vector<std::string_view> open_;  // variables being resolved, to detect cycles
  std::size_t list_bytes_ = 0;
};

}  // namespace penstock::nids
