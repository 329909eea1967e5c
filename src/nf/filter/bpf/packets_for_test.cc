// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/packets_for_test.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace penstock::filter {

void Packets::add(std::span<const std::uint8_t> bytes, std::uint32_t wire_length) {
  auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
  std::ranges::copy(bytes, copy.get());
  views_.push_back({copy.get(), static_cast<std::uint32_t>(bytes.size()), wire_length});
  bytes_.push_back(std::move(copy));
}

void Packets::Unmap::operator()(std::uint8_t* pages) const noexcept { munmap(pages, bytes); }

void Packets::add_guarded(std::span<const std::uint8_t> bytes, std::uint32_t wire_length) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  ASSERT_LE(bytes.size(), page);
  void* memory = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* first = static_cast<std::uint8_t*>(memory);
  pages_.emplace_back(first, Unmap{3 * page});
  ASSERT_EQ(mprotect(first + page, page, PROT_NONE), 0);
  for (std::uint8_t* at : {first + page - bytes.size(), first + 2 * page}) {
    std::ranges::copy(bytes, at);
    views_.push_back({at, static_cast<std::uint32_t>(bytes.size()), wire_length});
  }
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
