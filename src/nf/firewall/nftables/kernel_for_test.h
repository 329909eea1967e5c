// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel as an oracle: a network namespace that forwards the packets of a tunnel interface d0 to d1 or d2, by their
// destination, through the rules of nftables. What it forwards comes out of these tunnels.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::firewall::nftables {

using Packet = std::vector<std::uint8_t>;  // from the IP header on

class ForwardingKernel {
 public:
  static constexpr std::array<const char*, 3> kInterfaces{"d0", "d1", "d2"};

  /// Moves this process into a new network namespace. Null if it may not; `why` says what is missing.
  static std::unique_ptr<ForwardingKernel> start(std::string& why);

  ForwardingKernel(const ForwardingKernel&) = delete;
  ForwardingKernel& operator=(const ForwardingKernel&) = delete;
  ~ForwardingKernel();

  /// From now on, the kernel tracks packets with wrong checksums like others. False if it cannot track.
  static bool trust_checksums();
  /// Replaces all rules. False if nft refuses them, and its answer is in `answer`.
  static bool load(const std::string& rules, std::string& answer);
  /// The same for rules of iptables-save, which the nf_tables variant of iptables makes into rules of nftables.
  static bool load_iptables(const std::string& rules, std::string& answer);
  /// The output of `nft -j list ruleset`, or another option of it.
  static std::string rules(const std::string& option = "-j");

  /// For each packet the interface on which it left, if it did. The last four bytes of each are overwritten with its
  /// number.
  std::vector<std::optional<unsigned>> forward(std::vector<Packet> packets);
  /// For each packet what left, which rules may have translated; empty if nothing did. The last four bytes are
  /// overwritten, too.
  std::vector<Packet> translate(std::vector<Packet> packets);

 private:
  explicit ForwardingKernel(std::array<int, 3> tunnels) : tunnels_(tunnels) {}
  /// Calls `take(number, interface, packet)` for all that leaves.
  template <typename Take>
  void send(std::vector<Packet>& packets, const Take& take);

  std::array<int, 3> tunnels_;
};

}  // namespace penstock::firewall::nftables
