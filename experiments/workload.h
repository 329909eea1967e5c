// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Synthetic inputs of any size, as files that Penstock reads like the user's own. They are the same in every run and on
// every machine: all randomness is seeded, and no distribution of the standard library is in it.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/ip_address.h"

namespace penstock::experiments {

/// A temporary folder, gone with this.
class Workplace {
 public:
  /// Throws std::system_error where none can be made.
  Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace();

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Writes a file, or writes it anew, and returns its path. Throws std::runtime_error.
  std::string put(const std::string& name, const std::string& text) const;

 private:
  std::string folder_;
};

/// The prefixes of a routing table, each once and in no order: the default route, then prefixes of 8 to 24 bits in
/// unicast space (1.0.0.0 to 223.255.255.255 without 10/8 and 127/8), with the lengths' shares of a full BGP table of
/// 2025: /24 60 %, /23 11 %, /22 12 %, … A longer one lies in a block of at most 16 bits, as registries give them out.
/// Full tables have c. 1,000,000; more than 4,000,000 is a programming error.
[[nodiscard]] std::vector<Ipv4Prefix> route_prefixes(std::size_t count);

/// `count` of them as `ip route` prints them, `PREFIX via 192.0.2.N dev DEVICE`, with 250 next hops in turn.
[[nodiscard]] std::string routes_text(std::size_t count, const std::string& device = "wan");

/// `count` rules in ClassBench's format: services on the hosts and networks of 198.18.0.0/15, for sources of all kinds,
/// with the share of protocols that rule sets have (75 % TCP, 14 % UDP, 4 % ICMP; Rovniagin & Wool 2011, in
/// Alonistioti §II.B). The last rule lets all through, so that packets to other networks are held against every rule
/// and go on.
[[nodiscard]] std::string rules_text(std::size_t count);

/// `count` rules for intrusion detection, on the payloads of all TCP and UDP packets (three quarters of them TCP, as in
/// public sets): a content of 4 to 20 bytes, of which 60 % are text and the others any bytes, and in every fourth rule
/// a second one behind it. Nothing that the generator sends holds one, or hardly ever. Packets are judged alone,
/// without streams, where `of_packets`.
[[nodiscard]] std::string detection_rules_text(std::size_t count, bool of_packets);

}  // namespace penstock::experiments
