// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of a rule's header that stand for addresses and ports, resolved: lists, negations, variables of variables.
// What was resolved once is kept, since rules say the same few things.

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
  /// Most bytes of ranges that lists are made of, in all: a list of a few bytes can name a long variable many times.
  static constexpr std::size_t kMostListBytes = std::size_t{512} << 20;

  /// Borrows the variables.
  explicit VariableResolver(const Variables& variables) noexcept : variables_(variables) {}

  /// `negates`: some address is negated, by the text or in a variable.
  struct Addresses : AddressSet {
    bool negates = false;
    [[nodiscard]] static Addresses any() { return {AddressSet::any()}; }
  };

  /// Null where `why` says what is wrong. Held by the resolver.
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
  std::vector<std::string_view> open_;  // variables that are being read
  std::size_t list_bytes_ = 0;
};

}  // namespace penstock::nids
