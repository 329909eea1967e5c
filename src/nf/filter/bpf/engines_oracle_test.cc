// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines against libpcap's bpf_filter() and bpf_validate().

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <memory>

#include "base/testing/rounds.h"
#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/libpcap_instructions.h"
#include "nf/filter/bpf/matcher.h"
#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/bpf/random_program_for_test.h"

namespace penstock::filter {
namespace {

/// Packets in memory of exactly their size, so that a sanitizer sees what lies outside.
class Packets {
 public:
  void add(const std::vector<std::uint8_t>& bytes, std::uint32_t wire_length) {
    auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    views_.push_back({copy.get(), static_cast<std::uint32_t>(bytes.size()), wire_length});
    bytes_.push_back(std::move(copy));
  }
  [[nodiscard]] const std::vector<PacketBytes>& views() const noexcept { return views_; }

 private:
  std::vector<std::unique_ptr<std::uint8_t[]>> bytes_;
  std::vector<PacketBytes> views_;
};

Packets random_packets(std::mt19937& random, int count) {
  Packets packets;
  for (int i = 0; i < count; ++i) {
    const auto bytes = random_packet(random);
    packets.add(bytes, static_cast<std::uint32_t>(bytes.size() + random() % 3 * 7));
  }
  return packets;
}

std::vector<std::uint32_t> returns_of(const Matcher& matcher, std::size_t program,
                                      std::span<const PacketBytes> packets) {
  std::vector<std::uint32_t> returns(packets.size());
  matcher.run(program, packets, returns.data());
  return returns;
}

/// Engines that this build has, apart from libpcap.
std::vector<std::unique_ptr<Matcher>> matchers_of(const std::vector<Program>& programs) {
  std::vector<std::unique_ptr<Matcher>> matchers;
  for (const Engine engine : {Engine::interpreter, Engine::jit})
    if (auto matcher = make_matcher(engine, programs)) matchers.push_back(std::move(*matcher));
  return matchers;
}

TEST(Engines, AgreeWithLibpcapOnRandomPrograms) {
  std::mt19937 random(20261);
  std::vector<Program> programs;
  for (std::uint32_t i = 0; i < testing::rounds(20000); ++i) {
    auto program = Program::verify(random_program(random), {});
    ASSERT_TRUE(program) << to_string(program.error());
    programs.push_back(std::move(*program));
  }
  const Packets packets = random_packets(random, 40);
  const auto libpcap = make_matcher(Engine::libpcap, programs);
  ASSERT_TRUE(libpcap);
  for (const auto& matcher : matchers_of(programs)) {
    std::size_t matches = 0;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const auto expected = returns_of(**libpcap, i, packets.views());
      ASSERT_EQ(returns_of(*matcher, i, packets.views()), expected) << matcher->name() << "\n"
                                                                    << dump(programs[i].source(), DumpForm::listing);
      for (const std::uint32_t value : expected) matches += value != 0 ? 1 : 0;
    }
    EXPECT_GT(matches, programs.size());
  }
}

}  // namespace
}  // namespace penstock::filter
