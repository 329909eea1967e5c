// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Maps the devices that route and neighbour files name to port numbers. Either to the ports of a chain, with aliases,
// or to numbers in the order in which names appear in the files.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packet/verdict.h"

namespace penstock::router {

class Devices {
 public:
  /// Accepts every name.
  Devices() = default;
  /// Accepts only the names of ports, and aliases.
  explicit Devices(std::span<const std::string> ports);

  /// For `add_alias`: the alias maps to no port.
  static constexpr std::string_view kNone = "none";
  /// "eth*" and "eth+" are all devices whose names begin with eth and have no more specific alias. False if the port is
  /// unknown, or the name is that of another port.
  bool add_alias(std::string_view name, std::string_view port);
  /// All names passed to find().
  [[nodiscard]] const std::set<std::string, std::less<>>& names_used() const noexcept { return names_used_; }

  /// The device's port: empty for an unknown name, kNoPort for a device that is not a port. If every name is accepted,
  /// a new name is added.
  [[nodiscard]] std::optional<PortIndex> find(std::string_view name);
  /// The same, without adding it or keeping it as used.
  [[nodiscard]] std::optional<PortIndex> known(std::string_view name) const;
  [[nodiscard]] const std::string& name(PortIndex device) const { return names_[device]; }
  [[nodiscard]] bool takes_any() const noexcept { return any_; }
  /// "lan, wan", for messages.
  [[nodiscard]] std::string list() const;

 private:
  bool any_ = true;
  std::vector<std::string> names_;
  std::map<std::string, PortIndex, std::less<>> index_;
  std::map<std::string, PortIndex, std::less<>> prefixes_;  // aliases with a wildcard, which is removed from the key
  std::set<std::string, std::less<>> names_used_;
};

}  // namespace penstock::router
