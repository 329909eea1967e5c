// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Forks of a chain. At a fork, each packet takes the first arm whose condition it meets, or none, and goes straight on.
// All packets join again after the fork.
//
//     functions   0 ─▶ ┬ 1 ─▶ 2 ┬ ─▶ 4      Fork{1, 4, {Arm{1, 3}, Arm{3, 4}}}
//                      ├ 3 ─────┤
//                      └────────┘
//
// The functions of a chain stay one list: the arms of a fork follow each other there. A packet's arm is decided where
// the fork begins, before any function of its arms.

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

/// Both parts must hold; one of them is given.
struct ArmCondition {
  std::vector<PortIndex> in_ports;   // the packet came by one of these; empty: by any
  std::vector<PortIndex> out_ports;  // an earlier function chose one of these; empty: any, or none

  /// Whether packets that came by this port can meet it.
  [[nodiscard]] bool admits(PortIndex in_port) const noexcept { return in_ports.empty() || has(in_ports, in_port); }
  [[nodiscard]] bool holds(const PacketDescriptor& packet) const noexcept {
    return admits(packet.in_port) && (out_ports.empty() || has(out_ports, packet.verdict.value));
  }
  /// Whether all packets that meet `other` meet this one too.
  [[nodiscard]] bool covers(const ArmCondition& other) const noexcept;

 private:
  static bool has(const std::vector<PortIndex>& ports, PortIndex port) noexcept {
    return std::find(ports.begin(), ports.end(), port) != ports.end();
  }
};

struct Arm {
  std::size_t first = 0;  // functions [first, last); none: packets skip the fork
  std::size_t last = 0;
  std::vector<ArmCondition> conditions;  // one of these must hold; none: the arm is for all packets
  std::string text;                      // the same for the user: "in_port lan or out_port lan", "otherwise"

  [[nodiscard]] bool takes(const PacketDescriptor& packet) const noexcept {
    return conditions.empty() ||
           std::ranges::any_of(conditions, [&](const ArmCondition& c) { return c.holds(packet); });
  }
  /// Whether it can take packets that came by this port.
  [[nodiscard]] bool admits(PortIndex in_port) const noexcept {
    return conditions.empty() || std::ranges::any_of(conditions, [&](const auto& c) { return c.admits(in_port); });
  }
};

struct Fork {
  /// The arm of a packet that meets no condition.
  static constexpr std::uint8_t kNoArm = 0xff;
  static constexpr std::size_t kMostArms = kNoArm;

  std::size_t first = 0;  // functions [first, last): those of all arms
  std::size_t last = 0;
  std::vector<Arm> arms;

  /// Of a forwarded packet where the fork begins.
  [[nodiscard]] std::uint8_t arm_of(const PacketDescriptor& packet) const noexcept {
    for (std::size_t a = 0; a < arms.size(); ++a) {
      if (arms[a].takes(packet)) return static_cast<std::uint8_t>(a);
    }
    return kNoArm;
  }
  /// Whether every packet takes an arm.
  [[nodiscard]] bool exhaustive() const noexcept { return !arms.empty() && arms.back().conditions.empty(); }
  /// Whether its arms take all packets that a later arm would take, as far as each condition by itself shows.
  [[nodiscard]] bool covers(const Arm& later) const noexcept;
  /// How many paths there are through the fork.
  [[nodiscard]] std::size_t paths() const noexcept { return arms.size() + (exhaustive() ? 0 : 1); }
};

/// An arm by its position.
struct ArmPlace {
  std::size_t fork = 0;
  std::uint8_t arm = 0;
  friend bool operator==(const ArmPlace&, const ArmPlace&) = default;
};

/// The arm that the function is in; none: all packets come to it.
[[nodiscard]] std::optional<ArmPlace> arm_of(std::span<const Fork> forks, std::size_t function) noexcept;

/// How many forks and arms begin or end before the function: the same for functions that follow each other for all
/// packets.
[[nodiscard]] std::size_t section_of(std::span<const Fork> forks, std::size_t function) noexcept;

/// A path through the chain (one of the k branches of Gaviss's equation 1): for each fork its arm, or kNoArm.
using Path = std::vector<std::uint8_t>;
/// All of them, at most `most`; one for a chain without forks.
[[nodiscard]] std::vector<Path> paths_of(std::span<const Fork> forks, std::size_t most);
/// How many there are; SIZE_MAX where there are more than that.
[[nodiscard]] std::size_t count_paths(std::span<const Fork> forks) noexcept;

}  // namespace penstock::plan
