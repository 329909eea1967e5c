// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/fork.h"

#include <limits>

namespace penstock::plan {

bool ArmCondition::covers(const ArmCondition& other) const noexcept {
  const auto all_in = [](const std::vector<PortIndex>& those, const std::vector<PortIndex>& ports) {
    return ports.empty() || (!those.empty() && std::ranges::all_of(those, [&](PortIndex p) { return has(ports, p); }));
  };
  return all_in(other.in_ports, in_ports) && all_in(other.out_ports, out_ports);
}

bool Fork::covers(const Arm& later) const noexcept {
  const auto covered = [&](const ArmCondition& condition) {
    return std::ranges::any_of(arms, [&](const Arm& arm) {
      return std::ranges::any_of(arm.conditions, [&](const ArmCondition& c) { return c.covers(condition); });
    });
  };
  return exhaustive() || (!later.conditions.empty() && std::ranges::all_of(later.conditions, covered));
}

std::optional<ArmPlace> arm_of(std::span<const Fork> forks, std::size_t function) noexcept {
  for (std::size_t f = 0; f < forks.size(); ++f) {
    for (std::size_t a = 0; a < forks[f].arms.size(); ++a) {
      const Arm& arm = forks[f].arms[a];
      if (arm.first <= function && function < arm.last) return ArmPlace{f, static_cast<std::uint8_t>(a)};
    }
  }
  return std::nullopt;
}

std::size_t section_of(std::span<const Fork> forks, std::size_t function) noexcept {
  std::size_t bounds = 0;
  for (const Fork& fork : forks) {
    if (fork.first <= function) ++bounds;
    for (const Arm& arm : fork.arms) {
      if (arm.last <= function) ++bounds;
    }
  }
  return bounds;
}

std::vector<Path> paths_of(std::span<const Fork> forks, std::size_t most) {
  std::vector<Path> paths{Path{}};
  for (const Fork& fork : forks) {
    std::vector<Path> longer;
    for (const Path& path : paths) {
      for (std::size_t arm = 0; arm < fork.paths() && longer.size() < most; ++arm) {
        longer.push_back(path);
        longer.back().push_back(arm < fork.arms.size() ? static_cast<std::uint8_t>(arm) : Fork::kNoArm);
      }
    }
    paths = std::move(longer);
  }
  return paths;
}

std::size_t count_paths(std::span<const Fork> forks) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  std::size_t count = 1;
  for (const Fork& fork : forks) count = count > kMost / fork.paths() ? kMost : count * fork.paths();
  return count;
}

}  // namespace penstock::plan
