// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The table by which Wireshark decrypts ESP and checks its ICVs: the file `esp_sa` of a profile. Names as Wireshark 4.0
// has them. With ESN it decrypts and finds the ICV wrong, since a packet does not say its number's upper half.

#pragma once

#include <span>
#include <string>

#include "nf/ipsec/sa/sa.h"

namespace penstock::ipsec {

/// A line for each SA: `"IPv4","SOURCE","DESTINATION","0xSPI","CIPHER","0xKEY","INTEGRITY","0xKEY"`; the salt of CTR
/// and GCM is at the key's end. Holds the keys: the caller wipes it.
[[nodiscard]] std::string esp_sa_table(std::span<const SecurityAssociation> states);

}  // namespace penstock::ipsec
