// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel as an oracle for rules about Ethernet: a network namespace that routes the frames of an Ethernet interface
// d0 to d1 or d2, or bridges them to d1, through the rules of nftables. What it sends comes out of these interfaces. A
// router knows the hosts 10.1.2.3, 10.3.2.1, 2001:db8::1 and 2001:db9::1.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packet/ethernet.h"

namespace penstock::firewall::nftables {

using Frame = std::vector<std::uint8_t>;

class EthernetKernel {
 public:
  static constexpr std::array<const char*, 3> kInterfaces{"d0", "d1", "d2"};
  /// Of d0, where a router expects frames.
  static constexpr MacAddress kOwn{{2, 0, 0, 0, 0, 0x10}};
  /// A host on the link of d1.
  static constexpr MacAddress kNeighbour{{2, 0, 0, 0, 1, 1}};

  enum class Way : std::uint8_t { route, bridge };
  /// Moves this process into a new network namespace. Null if it may not; `why` says what is missing.
  static std::unique_ptr<EthernetKernel> start(Way way, std::string& why);

  EthernetKernel(const EthernetKernel&) = delete;
  EthernetKernel& operator=(const EthernetKernel&) = delete;
  ~EthernetKernel();

  /// Replaces all rules. False if nft refuses them, and its answer is in `answer`.
  static bool load(const std::string& rules, std::string& answer);
  /// The output of `nft -j list ruleset`.
  static std::string rules();

  /// For each frame that arrives at d0, whether it left, by which of the interfaces: bits. The last four bytes of each
  /// are overwritten with its number.
  std::vector<unsigned> pass(std::vector<Frame> frames);

 private:
  explicit EthernetKernel(std::array<int, 3> taps) : taps_(taps) {}
  std::array<int, 3> taps_;
};

}  // namespace penstock::firewall::nftables
