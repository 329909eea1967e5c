// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a BPF program sees of a packet. For host and device.

#pragma once

#include <cstdint>

namespace penstock::filter {

/// Borrows the bytes.
struct PacketBytes {
  const std::uint8_t* data = nullptr;
  std::uint32_t length = 0;       // captured bytes: those that a program can load
  std::uint32_t wire_length = 0;  // the value of `len`
};

}  // namespace penstock::filter
