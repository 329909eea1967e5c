// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Synthetic input files of any size, in the formats of the user's own. They are the same in every run and on every
// machine: random numbers are seeded, and no distributions of the standard library are used.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/ip_address.h"

namespace penstock::experiments {

/// A temporary folder, deleted by the destructor.
class Workplace {
 public:
  /// Throws std::system_error if it cannot be created.
  Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace();

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Writes or replaces a file, and returns its path. Throws std::runtime_error.
  std::string put(const std::string& name, const std::string& text) const;

 private:
  std::string folder_;
};

/// The prefixes of a routing table, without duplicates, in random order: the default route, then prefixes of 8 to 24
/// bits in unicast space (1.0.0.0 to 223.255.255.255 without 10/8 and 127/8), with the length distribution of a full
/// BGP table of 2025: /24 60 %, /23 11 %, /22 12 %, … Longer prefixes lie in blocks of at most 16 bits, as registries
/// assign them. Full tables have about 1,000,000 prefixes; `count` must not exceed 4,000,000.
[[nodiscard]] std::vector<Ipv4Prefix> route_prefixes(std::size_t count);

/// `count` routes as `ip route` prints them, `PREFIX via 192.0.2.N dev DEVICE`, with 250 next hops in turn.
[[nodiscard]] std::string routes_text(std::size_t count, const std::string& device = "wan");

/// `count` rules in ClassBench's format: services on hosts and networks of 198.18.0.0/15, for all kinds of sources,
/// with the distribution of protocols in real rule sets (75 % TCP, 14 % UDP, 4 % ICMP; Rovniagin & Wool 2011, in
/// Alonistioti §II.B). The last rule accepts everything, so packets to other networks are compared with every rule and
/// pass.
[[nodiscard]] std::string rules_text(std::size_t count);

/// The same rules as iptables-save prints them, after two that drop invalid packets and accept those of known
/// connections.
[[nodiscard]] std::string stateful_rules_text(std::size_t count);

/// As iptables-save prints it: gives each address of 10.0.0.0/8, the source of the generator's flows, one of
/// 100.0.0.0/8, so that no two of them can get the same one.
[[nodiscard]] std::string translations_text();

/// `count` intrusion detection rules for the payloads of TCP and UDP packets (three quarters TCP, as in public rule
/// sets): a content of 4 to 20 bytes, 60 % of them text, the others any bytes; every fourth rule has a second content
/// after it. The generator's packets match none, or hardly any. With `of_packets`, rules match packets separately,
/// without streams.
[[nodiscard]] std::string detection_rules_text(std::size_t count, bool of_packets);

}  // namespace penstock::experiments
