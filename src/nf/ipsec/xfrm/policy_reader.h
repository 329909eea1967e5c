// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `ip xfrm policy`, with and without -s, -o and -d, of one family or both:
//
//     src PREFIX dst PREFIX [proto PROTOCOL [sport PORT] [dport PORT] …] [dev DEVICE]
//             dir out|in|fwd [action block] [index INDEX] priority PRIORITY [ptype main] [flag …]
//             [tmpl src ADDRESS dst ADDRESS
//                     proto esp [spi SPI] reqid REQID mode transport|tunnel
//                     [level use]] …
//
// The kernel prints the most recently added policy first, but tries policies of equal priority in the order in which
// they were added (net/xfrm/xfrm_policy.c), that is from the end of the file to its start.

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

/// Reads a whole file of at most `most` policies; "-" is the standard input. Socket policies, and policies for packets
/// with a mark or of an xfrm interface, are skipped: no packet here can match them. Anything else unsupported makes the
/// policy a blocking one. A file without policies, such as the output of a failed `ip`, is an error: everything would
/// pass in the clear.
[[nodiscard]] Result<Read<Policies>> read_policies(const std::string& path, std::size_t most = kMostEntries);
/// Parses a text, which may be empty. `file` is its name in messages.
[[nodiscard]] Result<Read<Policies>> parse_policies(std::string_view text, const std::string& file,
                                                    std::size_t most = kMostEntries);

}  // namespace penstock::ipsec
