// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The devices that route and neighbour files name, as port numbers. Two kinds: the ports of a chain, with other names
// for them, or whatever the files name, numbered as they come.

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
  /// Takes every name that is asked for.
  Devices() = default;
  /// Knows the ports, and no other names but those that `add_alias` adds.
  explicit Devices(std::span<const std::string> ports);

  /// In `add_alias`: no port at all.
  static constexpr std::string_view kNone = "none";
  /// "eth*" and "eth+" are all devices that begin with eth and have no closer name. False where the port is not known,
  /// or the name is that of another port.
  bool add_alias(std::string_view name, std::string_view port);
  /// All that were asked for.
  [[nodiscard]] const std::set<std::string, std::less<>>& asked_for() const noexcept { return asked_for_; }

  /// Nothing for an unknown name, kNoPort for one that is no port. A name that is new is added where any name is taken.
  [[nodiscard]] std::optional<PortIndex> find(std::string_view name);
  [[nodiscard]] const std::string& name(PortIndex device) const { return names_[device]; }
  [[nodiscard]] bool takes_any() const noexcept { return any_; }
  /// "lan, wan", for messages.
  [[nodiscard]] std::string list() const;

 private:
  bool any_ = true;
  std::vector<std::string> names_;
  std::map<std::string, PortIndex, std::less<>> index_;
  std::map<std::string, PortIndex, std::less<>> prefixes_;  // of aliases with a wildcard, without it
  std::set<std::string, std::less<>> asked_for_;
};

}  // namespace penstock::router
