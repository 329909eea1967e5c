// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/packets_for_test.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::filter {

void Packets::add(std::span<const std::uint8_t> bytes, std::uint32_t wire_length) {
  auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
  std::ranges::copy(bytes, copy.get());
  views_.push_back({copy.get(), static_cast<std::uint32_t>(bytes.size()), wire_length});
  bytes_.push_back(std::move(copy));
}

Packets random_packets(std::mt19937& random, int count) {
  Packets packets;
  for (int i = 0; i < count; ++i) {
    std::vector<std::uint8_t> bytes(random() % 100);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & (random() % 2 == 0 ? 15 : 255));
    packets.add(bytes, static_cast<std::uint32_t>(bytes.size() + random() % 3 * 7));
  }
  return packets;
}

std::vector<std::unique_ptr<Matcher>> all_matchers(const std::vector<Program>& programs) {
  std::vector<std::unique_ptr<Matcher>> matchers;
  for (const Engine engine : {Engine::libpcap, Engine::interpreter, Engine::jit}) {
    if (!has_engine(engine)) continue;
    auto matcher = make_matcher(engine, programs);
    EXPECT_TRUE(matcher) << to_string(matcher.error());
    if (matcher) matchers.push_back(std::move(*matcher));
  }
  return matchers;
}

std::vector<std::uint32_t> returns_of(const Matcher& matcher, std::size_t program,
                                      std::span<const PacketBytes> packets) {
  std::vector<std::uint32_t> returns(packets.size());
  matcher.run(program, packets, returns.data());
  return returns;
}

}  // namespace penstock::filter
