// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `pcap`: reads captures, writes a capture, or both.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind pcap_kind() noexcept;

}  // namespace penstock::port
