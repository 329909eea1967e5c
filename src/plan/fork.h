// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Forks of a chain. At a fork, each packet takes the first arm whose condition it meets. If it meets none, it bypasses
// the fork. All packets join again after the fork.
//
//     functions   0 ─▶ ┬ 1 ─▶ 2 ┬ ─▶ 4      Fork{1, 4, {Arm{1, 3}, Arm{3, 4}}}
//                      ├ 3 ─────┤
//                      └────────┘
//
// The functions of a chain remain a single list, in which the arms of a fork are consecutive. A packet's arm is chosen
// at the start of the fork, before any function of its arms runs.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "packet/packet.h"

namespace penstock::plan {

/// A condition on ports. At least one of the two lists is given; both must match.
struct ArmCondition {
  std::vector<PortIndex> in_ports;   // the packet arrived on one of these; empty: any
  std::vector<PortIndex> out_ports;  // an earlier function has chosen one of these; empty: any or none

  /// Whether packets from this port can meet the condition.
  [[nodiscard]] bool admits(PortIndex in_port) const noexcept { return in_ports.empty() || has(in_ports, in_port); }
  [[nodiscard]] bool holds(const PacketDescriptor& packet) const noexcept {
    return admits(packet.in_port) && (out_ports.empty() || has(out_ports, packet.verdict.value));
  }
  /// Whether all packets that meet `other` also meet this condition.
  [[nodiscard]] bool covers(const ArmCondition& other) const noexcept;

 private:
  static bool has(const std::vector<PortIndex>& ports, PortIndex port) noexcept {
    return std::find(ports.begin(), ports.end(), port) != ports.end();
  }
};

struct Arm {
  std::size_t first = 0;  // functions [first, last); empty: packets skip the fork
  std::size_t last = 0;
  std::vector<ArmCondition> conditions;  // at least one must be met; empty: the arm takes all packets
  std::string text;  // the conditions as shown to the user: "in_port lan or out_port lan", "otherwise"

  [[nodiscard]] bool takes(const PacketDescriptor& packet) const noexcept {
    return conditions.empty() ||
           std::ranges::any_of(conditions, [&](const ArmCondition& c) { return c.holds(packet); });
  }
  /// Whether the arm can take packets from this port.
  [[nodiscard]] bool admits(PortIndex in_port) const noexcept {
    return conditions.empty() || std::ranges::any_of(conditions, [&](const auto& c) { return c.admits(in_port); });
  }
};

struct Fork {
  /// For packets that take no arm.
  static constexpr std::uint8_t kNoArm = 0xff;
  static constexpr std::size_t kMostArms = kNoArm;

  std::size_t first = 0;  // functions [first, last) of all arms
  std::size_t last = 0;
  std::vector<Arm> arms;

  /// The arm of a forwarded packet at the start of the fork.
  [[nodiscard]] std::uint8_t arm_of(const PacketDescriptor& packet) const noexcept {
    for (std::size_t a = 0; a < arms.size(); ++a) {
      if (arms[a].takes(packet)) return static_cast<std::uint8_t>(a);
    }
    return kNoArm;
  }
  /// Whether every packet takes an arm.
  [[nodiscard]] bool exhaustive() const noexcept { return !arms.empty() && arms.back().conditions.empty(); }
  /// Whether earlier arms take all packets that `later` would take, as far as single conditions show.
  [[nodiscard]] bool covers(const Arm& later) const noexcept;
  /// The number of paths through the fork.
  [[nodiscard]] std::size_t paths() const noexcept { return arms.size() + (exhaustive() ? 0 : 1); }
};

/// Identifies an arm.
struct ArmPlace {
  std::size_t fork = 0;
  std::uint8_t arm = 0;
  friend bool operator==(const ArmPlace&, const ArmPlace&) = default;
};

/// The arm that contains the function; empty if all packets reach it.
[[nodiscard]] std::optional<ArmPlace> arm_of(std::span<const Fork> forks, std::size_t function) noexcept;

/// How many forks and arms begin or end before the function. Consecutive functions with the same number have the same
/// packets.
[[nodiscard]] std::size_t section_of(std::span<const Fork> forks, std::size_t function) noexcept;

/// A path through the chain (one of the k branches in Gaviss's equation 1): the arm at each fork, or kNoArm.
using Path = std::vector<std::uint8_t>;
/// All paths, but at most `most`. A chain without forks has one.
[[nodiscard]] std::vector<Path> paths_of(std::span<const Fork> forks, std::size_t most);
/// The number of paths; SIZE_MAX if it does not fit.
[[nodiscard]] std::size_t count_paths(std::span<const Fork> forks) noexcept;

}  // namespace penstock::plan
