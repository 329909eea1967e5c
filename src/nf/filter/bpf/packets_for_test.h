// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets and engines, for tests that compare engines.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "nf/filter/bpf/matcher.h"
#include "nf/filter/bpf/packet_bytes.h"

namespace penstock::filter {

/// Packets in memory of exactly their size, so that a sanitizer sees loads that are outside.
class Packets {
 public:
  void add(std::span<const std::uint8_t> bytes, std::uint32_t wire_length);
  /// Twice: directly before and directly after a page that cannot be read, so that loads of machine code are seen too.
  void add_guarded(std::span<const std::uint8_t> bytes, std::uint32_t wire_length);
  [[nodiscard]] const std::vector<PacketBytes>& views() const noexcept { return views_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::uint8_t* pages) const noexcept;
  };
  std::vector<std::unique_ptr<std::uint8_t[]>> bytes_;
  std::vector<std::unique_ptr<std::uint8_t, Unmap>> pages_;
  std::vector<PacketBytes> views_;
};

/// Of 0 to 99 bytes, which are often small, so that header lengths and comparisons hit. Some are truncated.
[[nodiscard]] Packets random_packets(std::mt19937& random, int count);

/// One of each engine that this build has: libpcap first.
[[nodiscard]] std::vector<std::unique_ptr<Matcher>> all_matchers(const std::vector<Program>& programs);

[[nodiscard]] std::vector<std::uint32_t> returns_of(const Matcher& matcher, std::size_t program,
                                                    std::span<const PacketBytes> packets);

}  // namespace penstock::filter
