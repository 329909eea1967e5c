// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a function says about its decision on one packet, for an operator who asks (NetworkFunction::explain). Texts
// never contain secrets such as keys.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace penstock::function {

struct Explanation {
  /// The most entries of a list, so that the answer stays readable with any tables.
  static constexpr std::size_t kMostListed = 64;

  /// Something that was considered and did not decide: a rule, or a route.
  struct PassedOver {
    std::string what;  // "rule 3 (line 12): -A FORWARD -p udp …"
    std::string why;   // "the protocol is 6"
  };

  std::string decided_by;               // "rule 4 (line 13): …", "no route to 192.0.2.1"
  std::vector<PassedOver> passed_over;  // in the order in which they were considered
  std::size_t not_listed = 0;           // more that were passed over
  std::vector<std::string> notes;       // further facts: the neighbour, the SA
  /// What decides besides the packet's headers and the tables, such as its payload. The verdict then is that for a
  /// packet to which none of that applies. Empty: nothing does.
  std::string depends_on;
  /// Why later functions cannot be explained, although the packet goes on: it is encrypted. Empty: they can be.
  std::string ends;
};

}  // namespace penstock::function
