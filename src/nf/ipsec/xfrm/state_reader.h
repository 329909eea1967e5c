// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `ip xfrm state`, with and without -s, -o and -d:
//
//     src ADDRESS dst ADDRESS
//             proto esp spi SPI reqid REQID mode transport|tunnel
//             replay-window N [flag …]
//             [auth-trunc ALGORITHM KEY BITS] [enc ALGORITHM KEY] | aead ALGORITHM KEY BITS
//             [encap type espinudp sport PORT dport PORT addr ADDRESS]
//             [anti-replay context: … | anti-replay esn context: …] [sel SELECTOR] …
//
// An SA that needs something that is not implemented is skipped with a warning that names it.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/xfrm/xfrm_words.h"

namespace penstock::ipsec {

using SecurityAssociations = std::vector<SecurityAssociation>;  // in file order

/// Reads a whole file of at most `most` SAs; "-" is the standard input. The text is wiped once the SAs are read. No
/// error contains a key.
[[nodiscard]] Result<Read<SecurityAssociations>> read_states(const std::string& path, std::size_t most = kMostEntries);
/// Parses a text. `file` is its name in messages.
[[nodiscard]] Result<Read<SecurityAssociations>> parse_states(std::string_view text, const std::string& file,
                                                              std::size_t most = kMostEntries);

}  // namespace penstock::ipsec
