// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chains of the experiment `chain`, and the tables that their functions have. A chain is written as Gaviss's figure
// 2 writes it, a letter for each function in the packets' order:
//
//   F  firewall    N  intrusion detection    R  router    I  IPsec gateway

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
  std::string_view name;       // as points have it
  std::string_view functions;  // letters
};

/// Gaviss §5.1's four; the one that was measured before there was more; one of which nothing comes back; the functions
/// by themselves, and the chains between these and C4 that figure 2 has.
inline constexpr NamedChain kChains[] = {
    {"firewall-router", "FR"}, {"C1", "NI"},      {"C2", "NRI"}, {"C3", "FNI"},  {"C4", "FNRI"},
    {"inspect", "FN"},         {"firewall", "F"}, {"nids", "N"}, {"ipsec", "I"}, {"router", "R"},
    {"router-ipsec", "RI"},
};

/// How large the functions' tables are.
struct TableSizes {
  std::string_view name;           // as points have it
  std::size_t firewall_rules = 0;  // the last of which packets meet
  std::size_t detection_rules = 0;
  std::size_t routes = 0;
  std::size_t sas = 0;  // of one tunnel each; flows are spread over them by their sources
};

inline constexpr TableSizes kTables[] = {
    {"", 1'000, 147, 1'000'000, 1},  // of firewall-router
    {"paper", 1'000, 147, 10'000, 1},
    {"heavy", 10'000, 1'969, 1'000'000, 1'000},
};

/// `count` SAs in tunnel mode with AES-128-CTR and HMAC-SHA1 as `ip xfrm state` prints them, keys of their own in each;
/// and the policies that give each an equal part of 10.0.0.0/8, where the generator's flows come from, the last one
/// what is left.
struct XfrmTexts {
  std::string state, policy;
};
[[nodiscard]] XfrmTexts tunnels_text(std::size_t count);

/// Makes the chains' files when they are first asked for. Borrows the workplace.
class Chains {
 public:
  explicit Chains(const Workplace& workplace) : workplace_(workplace) {}

  /// Takes the user's files in place of synthetic ones: routes, which serve as destinations too, and rules, the
  /// firewall's, or, where they are Suricata's or Snort's, those of intrusion detection with heavy tables.
  [[nodiscard]] Result<void> take(const Setting& setting);

  /// Functions, what packets go to them, and what makes the output comparable. `name`, `tables`: of the lists above.
  [[nodiscard]] MeasuredChain chain(std::string_view name, std::string_view tables);

  /// Bytes of streams for each packet of with_connections(), where all of them are followed.
  [[nodiscard]] static double stream_bytes_per_packet(const std::string& size);

  /// The same for TCP connections from their handshake to their end (conversations.h), `count` of them, again and
  /// again; all packets with data have the size. `tracking`: of intrusion detection, "streams" or "packets".
  [[nodiscard]] MeasuredChain with_connections(std::string_view name, std::string_view tables,
                                               std::string_view tracking, const std::string& size, std::size_t count);

 private:
  std::string functions_text(std::string_view letters, const TableSizes& sizes, std::string_view tracking);
  std::string function_text(char letter, const TableSizes& sizes, std::string_view tracking);
  void undo_encryption(MeasuredChain& chain, std::string_view letters, const TableSizes& sizes,
                       std::string_view tracking);
  const std::string& connections(const TableSizes& sizes, const std::string& size, std::size_t count);
  const std::string& routes(const TableSizes& sizes);
  template <typename Make>
  const std::string& file(const std::string& name, Make make);

  const Workplace& workplace_;
  std::string own_firewall_rules_, own_detection_rules_, own_routes_;  // paths
  std::map<std::string, std::string> files_;                           // paths by name
};

}  // namespace penstock::experiments
