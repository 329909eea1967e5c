// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Between libpcap's numbers for link layers and ours. libpcap's DLT_ values are those of its API; the LINKTYPE_ values
// that stand in files differ from them for some types (pcap-linktype(7)).

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "packet/link_type.h"

namespace penstock::port {

/// None for a link layer that Penstock does not read.
[[nodiscard]] std::optional<LinkType> link_type_of_dlt(int dlt) noexcept;

/// The same by the LINKTYPE_ value of a capture file.
[[nodiscard]] std::optional<LinkType> link_type_in_file(std::uint16_t linktype) noexcept;

/// The LINKTYPE_ value with which frames of this type are written. Several DLTs are one of our types: DLT_IPV4 is
/// written as raw IP, DLT_PPP_SERIAL as PPP.
[[nodiscard]] std::uint16_t linktype_in_file(LinkType type) noexcept;

/// "EN10MB (1)"
[[nodiscard]] std::string describe_dlt(int dlt);
/// "Ethernet"
[[nodiscard]] const char* name_of(LinkType type) noexcept;
/// The DLTs that `link_type_of_dlt` knows, for error messages.
[[nodiscard]] std::string supported_dlts();

}  // namespace penstock::port
