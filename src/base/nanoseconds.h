// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The times of packets are in nanoseconds; those of users, files and protocols mostly in seconds.

#pragma once

#include <cstdint>

namespace penstock {

inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

/// By so much, packets of several ports or workers may come out of order. A clock that goes back further has been set.
inline constexpr std::uint64_t kMostBackNs = 60 * kNsPerSecond;

}  // namespace penstock
