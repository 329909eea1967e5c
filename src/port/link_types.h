// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Maps libpcap's link-layer numbers to ours. The DLT_ values of libpcap's API differ from the LINKTYPE_ values in files
// for some types (pcap-linktype(7)).

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "packet/link_type.h"

namespace penstock::port {

/// Empty if Penstock does not support the link type.
[[nodiscard]] std::optional<LinkType> link_type_of_dlt(int dlt) noexcept;

/// Like `link_type_of_dlt`, for the LINKTYPE_ value of a capture file.
[[nodiscard]] std::optional<LinkType> link_type_in_file(std::uint16_t linktype) noexcept;

/// The LINKTYPE_ value for writing frames of this type. Several DLTs map to one of our types, so DLT_IPV4 is written as
/// raw IP, and DLT_PPP_SERIAL as PPP.
[[nodiscard]] std::uint16_t linktype_in_file(LinkType type) noexcept;

/// "EN10MB (1)"
[[nodiscard]] std::string describe_dlt(int dlt);
/// "Ethernet"
[[nodiscard]] const char* name_of(LinkType type) noexcept;
/// The DLTs that `link_type_of_dlt` supports, for error messages.
[[nodiscard]] std::string supported_dlts();

}  // namespace penstock::port
