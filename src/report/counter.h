// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counters that one thread writes and any thread may read.

#pragma once

#include <cstdint>

#include "base/counter.h"

namespace penstock::report {

using penstock::Counter;

/// Packets and the bytes of their frames.
struct Traffic {
  Counter packets;
  Counter bytes;

  void add(std::uint64_t n, std::uint64_t length) noexcept {
    packets.add(n);
    bytes.add(length);
  }
};

/// A sum over workers, in plain numbers.
struct TrafficSum {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;

  TrafficSum& operator+=(const Traffic& traffic) noexcept {
    packets += traffic.packets.get();
    bytes += traffic.bytes.get();
    return *this;
  }
  TrafficSum& operator+=(const TrafficSum& other) noexcept {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
  TrafficSum& operator-=(const TrafficSum& other) noexcept {
    packets -= other.packets;
    bytes -= other.bytes;
    return *this;
  }
};

}  // namespace penstock::report
