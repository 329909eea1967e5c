// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fields of packets that rules can test, and the expressions of nft that name them. An expression also implies
// conditions: `tcp dport` holds for TCP packets only. nft does not print these.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "classify/interval_set.h"
#include "nf/firewall/nftables/values.h"

namespace penstock::firewall::nftables {

enum class Field : std::uint8_t {
  family,
  source4,
  destination4,
  source6,
  destination6,
  source_port,
  destination_port,
  protocol,
  tcp_flags,
  icmp_type,
  icmp_code,
  icmpv6_type,
  icmpv6_code,
  in_port,
  out_port,
  later_fragment,
  connection,
};

using Condition = std::pair<Field, classify::IntervalSet>;

struct Key {
  Field field;
  Type type;
  std::vector<Condition> implied{};
  std::uint8_t mask = 0xff;        // of TCP flags
  bool of_any_protocol = false;    // ports of whichever protocol: `th dport`
  bool of_fragments_only = false;  // only packets with a fragment header have the field
};

/// Reads the left side of a match, or the key of a map, that is no concatenation.
[[nodiscard]] Checked<Key> read_key(const Json& expression);

/// The same, also for concatenations.
[[nodiscard]] Checked<std::vector<Key>> read_keys(const Json& expression);

/// The values of the key's field for which its expression is in `values`.
[[nodiscard]] classify::IntervalSet unmasked(const Key& key, const classify::IntervalSet& values);

/// Exactly the bytes for which `holds` is true.
template <typename Holds>
[[nodiscard]] classify::IntervalSet bytes_where(const Holds& holds) {
  std::vector<classify::Interval> bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (holds(byte)) bytes.push_back({classify::number(byte), classify::number(byte)});
  }
  return classify::united(std::move(bytes));
}

}  // namespace penstock::firewall::nftables
