// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chains of the experiment `chain`, and their functions' tables. A chain is written as in Gaviss's figure 2, one
// letter for each function in packet order:
//
//   F  firewall    S  stateful firewall    s  the same, where the NIC has checked checksums    N  intrusion detection
//   R  router    I  IPsec gateway    P, O  firewalls that translate addresses, before and after the router    p, o  the
//   same, where the NIC has checked checksums
//
// B is a router whose routes lead to the ports wan and dmz in turn, and B(N|) a fork after it: one arm for packets to
// dmz, one for the others.

#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "experiments/experiment.h"
#include "experiments/measured_chain.h"
#include "experiments/workload.h"

namespace penstock::experiments {

struct NamedChain {
  std::string_view name;       // as in points
  std::string_view functions;  // letters
};

/// The four of Gaviss §5.1; firewall-router, which was measured before the others existed; one from which no packets
/// come back; single functions; the chains between these and C4 that figure 2 has; those with a firewall that tracks
/// connections, as the paper's CPU functions do (§5.3); a gateway that also translates addresses; and one with a
/// branch, in which every second packet is inspected (§4.1).
inline constexpr NamedChain kChains[] = {
    {"firewall-router", "FR"},
    {"C1", "NI"},
    {"C2", "NRI"},
    {"C3", "FNI"},
    {"C4", "FNRI"},
    {"inspect", "FN"},
    {"firewall", "F"},
    {"nids", "N"},
    {"ipsec", "I"},
    {"router", "R"},
    {"router-ipsec", "RI"},
    {"C3-stateful", "SNI"},
    {"C4-stateful", "SNRI"},
    {"stateful", "S"},
    {"C3-stateful-nic", "sNI"},
    {"C4-stateful-nic", "sNRI"},
    {"stateful-nic", "s"},
    {"stateful-router", "SR"},
    {"nat-router", "PRSO"},
    {"stateful-router-nic", "sR"},
    {"nat-router-nic", "pRso"},
    {"C4-branch", "FB(N|)I"},
};

/// Sizes of the functions' tables.
struct TableSizes {
  std::string_view name;           // as in points
  std::size_t firewall_rules = 0;  // packets match the last one
  std::size_t detection_rules = 0;
  std::size_t routes = 0;
  std::size_t sas = 0;  // one per tunnel; flows are assigned to SAs by source address
};

inline constexpr TableSizes kTables[] = {
    {"", 1'000, 147, 1'000'000, 1},  // for firewall-router
    {"paper", 1'000, 147, 10'000, 1},
    {"heavy", 10'000, 1'969, 1'000'000, 1'000},
};

/// `count` SAs in tunnel mode with AES-128-CTR and HMAC-SHA1, each with its own keys, as `ip xfrm state` prints them.
/// Their policies divide 10.0.0.0/8, the source of the generator's flows, into equal parts; the last policy gets the
/// remainder.
struct XfrmTexts {
  std::string state, policy;
};
[[nodiscard]] XfrmTexts tunnels_text(std::size_t count);

/// Writes the chains' files when they are first needed. Borrows the workplace.
class Chains {
 public:
  explicit Chains(const Workplace& workplace) : workplace_(workplace) {}

  /// Uses the user's files instead of synthetic ones. Routes also provide the destinations. Rules are for the firewall,
  /// or, if they are Suricata or Snort rules, for intrusion detection with heavy tables.
  [[nodiscard]] Result<void> take(const Setting& setting);

  /// The functions, the packets that they get, and what makes the output comparable. `name`, `tables`: from the lists
  /// above.
  [[nodiscard]] MeasuredChain chain(std::string_view name, std::string_view tables);

  /// Stream bytes per packet of with_connections() if all connections are followed.
  [[nodiscard]] static double stream_bytes_per_packet(const std::string& size);

  /// The same chain for `count` TCP connections from handshake to end (conversations.h), replayed repeatedly; all
  /// packets with data have the given size. `tracking` of intrusion detection: "packets", "streams", or "automaton"
  /// (streams, with the state of the search sent to the GPU).
  [[nodiscard]] MeasuredChain with_connections(std::string_view name, std::string_view tables,
                                               std::string_view tracking, const std::string& size, std::size_t count);

 private:
  std::string functions_text(std::string_view letters, const TableSizes& sizes, std::string_view tracking);
  std::string function_text(char letter, const TableSizes& sizes, std::string_view tracking);
  void undo_encryption(MeasuredChain& chain, std::string_view letters, const TableSizes& sizes,
                       std::string_view tracking);
  const std::string& connections(const TableSizes& sizes, const std::string& size, std::size_t count);
  const std::string& routes(const TableSizes& sizes);
  const std::string& routes_to_both(const TableSizes& sizes);
  template <typename Make>
  const std::string& file(const std::string& name, Make make);

  const Workplace& workplace_;
  std::string own_firewall_rules_, own_detection_rules_, own_routes_;  // paths
  std::map<std::string, std::string> files_;                           // paths by name
};

}  // namespace penstock::experiments
