// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

namespace penstock::filter {

/// The text of packet_window.h, from the build.
[[nodiscard]] std::string_view prelude() noexcept;

}  // namespace penstock::filter
