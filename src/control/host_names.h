// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of hosts and networks in expressions of libpcap (pcap-filter(7)). libpcap looks them up while it compiles an
// expression, which can take as long as a name server likes.

#pragma once

#include <string>
#include <string_view>

namespace penstock::control {

/// The first word that libpcap would look up as a host or network; "": there is none. An expression that libpcap does
/// not understand may have any result.
[[nodiscard]] std::string host_name_in(std::string_view expression);

}  // namespace penstock::control
