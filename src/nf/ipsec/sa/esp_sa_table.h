// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The `esp_sa` file of a Wireshark profile, with which Wireshark decrypts ESP and checks ICVs. Uses the names of
// Wireshark 4.0. With ESN, Wireshark decrypts but reports a wrong ICV, because packets do not carry the upper half of
// the number.

#pragma once

#include <span>
#include <string>

#include "nf/ipsec/sa/sa.h"

namespace penstock::ipsec {

/// One line per SA: `"IPv4","SOURCE","DESTINATION","0xSPI","CIPHER","0xKEY","INTEGRITY","0xKEY"`. The salt of CTR and
/// GCM is appended to the key. The result holds the keys; the caller must wipe it.
[[nodiscard]] std::string esp_sa_table(std::span<const SecurityAssociation> states);

}  // namespace penstock::ipsec
