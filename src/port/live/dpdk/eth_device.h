// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A device of DPDK's, opened.

#pragma once

#include "port/live/dpdk/module.h"

namespace penstock::port::dpdk {

/// Requires that DPDK has been started. The error is DPDK's.
[[nodiscard]] tl::expected<std::unique_ptr<Device>, std::string> open_device(const DeviceSettings& settings);

}  // namespace penstock::port::dpdk
