// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads output of `ip xfrm policy`, with and without -s, -o and -d, of one family or both:
//
//     src PREFIX dst PREFIX [proto PROTOCOL [sport PORT] [dport PORT] …] [dev DEVICE]
//             dir out|in|fwd [action block] [index INDEX] priority PRIORITY [ptype main] [flag …]
//             [tmpl src ADDRESS dst ADDRESS
//                     proto esp [spi SPI] reqid REQID mode transport|tunnel
//                     [level use]] …
//
// The kernel prints the policy first that was added last, and tries those of equal priority in the order in which they
// were added (net/xfrm/xfrm_policy.c): so from the file's end to its beginning.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/ipsec/selection/policy.h"
#include "nf/ipsec/xfrm/xfrm_words.h"

namespace penstock::ipsec {

using Policies = std::vector<Policy>;  // in the order in which they are tried

/// A whole file; "-" is the standard input. Policies of sockets, and those that only packets with a mark or of an xfrm
/// interface have, are left out: no packet here is of theirs. What else is not supported makes the policy block. One
/// without any, as that of an `ip` that failed, is refused: all would go in the clear.
/// At most `most` of them.
[[nodiscard]] Result<Read<Policies>> read_policies(const std::string& path, std::size_t most = kMostEntries);
/// A text, which may be empty; `file` is its name in messages.
[[nodiscard]] Result<Read<Policies>> parse_policies(std::string_view text, const std::string& file,
                                                    std::size_t most = kMostEntries);

}  // namespace penstock::ipsec
