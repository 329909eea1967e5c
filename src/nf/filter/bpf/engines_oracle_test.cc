// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The verifier and the engines against libpcap's bpf_validate() and bpf_filter().

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <iterator>

#include "base/testing/rounds.h"
#include "nf/filter/bpf/ancillary.h"
#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/libpcap_instructions.h"
#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/bpf/packets_for_test.h"
#include "nf/filter/bpf/random_program_for_test.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::filter {
namespace {

TEST(Engines, AgreeWithLibpcapOnRandomPrograms) {
  std::mt19937 random(20261);
  std::vector<Program> programs;
  for (std::uint32_t i = 0; i < testing::rounds(20000); ++i) {
    auto program = Program::verify(random_program(random), {});
    ASSERT_TRUE(program) << to_string(program.error());
    programs.push_back(std::move(*program));
  }
  const Packets packets = random_packets(random, 40);
  const auto matchers = all_matchers(programs);
  std::size_t matches = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto expected = returns_of(*matchers[0], i, packets.views());
    for (const auto& matcher : matchers)
      ASSERT_EQ(returns_of(*matcher, i, packets.views()), expected) << matcher->name() << "\n"
                                                                    << dump(programs[i].source(), DumpForm::listing);
    for (const std::uint32_t value : expected) matches += value != 0 ? 1 : 0;
  }
  EXPECT_GT(matches, programs.size());
}

TEST(Engines, ReadFramesOver64KiB) {
  // ldx #69998; ldh [x + 0]; ret
  const auto program =
      Program::verify({{kLoadXImmediate, 0, 0, 69998}, {kLoadHalfInd, 0, 0, 0}, {kReturnA, 0, 0, 0}}, {});
  ASSERT_TRUE(program);
  std::vector<std::uint8_t> bytes(70000);
  bytes[69998] = 0x12;
  bytes[69999] = 0x34;
  Packets packets;
  packets.add(bytes, 70000);
  bytes.pop_back();
  packets.add(bytes, 70000);
  for (const auto& matcher : all_matchers({*program}))
    EXPECT_EQ(returns_of(*matcher, 0, packets.views()), (std::vector<std::uint32_t>{0x1234, 0})) << matcher->name();
}

TEST(Engines, TakeNoPackets) {
  const auto program = Program::verify({{kReturnK, 0, 0, 1}}, {});
  ASSERT_TRUE(program);
  for (const auto& matcher : all_matchers({*program})) EXPECT_TRUE(returns_of(*matcher, 0, {}).empty());
}

/// Any code, and constants near the limits of checks.
Instruction random_instruction(std::mt19937& random, std::size_t length) {
  const auto code = static_cast<std::uint16_t>(random() % 8 == 0 ? random() % 0x1000 : random() % 0x100);
  const auto skip = [&] { return static_cast<std::uint8_t>(random() % (length + 2)); };
  const std::uint32_t constants[] = {
      0,
      1,
      15,
      16,
      31,
      32,
      0xffdfffff,
      static_cast<std::uint32_t>(random()),
      static_cast<std::uint32_t>(random() % (2 * length)) - static_cast<std::uint32_t>(length)};
  return {code, skip(), skip(), constants[random() % std::size(constants)]};
}

/// Instructions that bpf_validate() accepts, and at which bpf_filter() aborts.
bool all_known(const std::vector<Instruction>& instructions) {
  return std::ranges::all_of(instructions, [](const Instruction& at) { return is_known(at.code); });
}

bool loads_linux_extension(const std::vector<Instruction>& instructions) {
  return std::ranges::any_of(instructions, [](const Instruction& at) {
    return (at.code == kLoadWordAbs || at.code == kLoadHalfAbs || at.code == kLoadByteAbs) && at.k >= kLinkHeader;
  });
}

TEST(Verifier, AcceptsWhatLibpcapAccepts) {
  std::mt19937 random(20262);
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (std::uint32_t i = 0; i < testing::rounds(300000); ++i) {
    std::vector<Instruction> instructions;
    for (std::size_t length = 1 + random() % 4, at = 0; at < length; ++at)
      instructions.push_back(random_instruction(random, length));
    if (random() % 4 != 0) instructions.back().code = kReturnK;
    if (!all_known(instructions) || loads_linux_extension(instructions)) continue;
    const auto theirs = to_libpcap(instructions);
    const bool valid = bpf_validate(theirs.data(), static_cast<int>(theirs.size())) != 0;
    ASSERT_EQ(Program::verify(instructions, {}).has_value(), valid) << dump(instructions, DumpForm::listing);
    ++(valid ? accepted : refused);
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 100u);
}

/// A chain of IPv6 extension headers before UDP.
std::vector<std::uint8_t> chain_of(int headers) {
  std::vector<std::uint8_t> frame(14 + 40);
  frame[12] = 0x86;
  frame[13] = 0xdd;
  frame[14] = 0x60;
  frame[20] = headers > 0 ? 60 : 17;
  for (int i = 0; i < headers; ++i) {
    std::vector<std::uint8_t> header(8 + 8 * (i % 3));
    header[0] = i + 1 < headers ? 60 : 17;
    header[1] = static_cast<std::uint8_t>(i % 3);
    frame.insert(frame.end(), header.begin(), header.end());
  }
  frame.resize(frame.size() + 8);
  return frame;
}

TEST(Loops, FollowChainsLikeLibpcap) {
  for (const char* expression : {"ip6 protochain 17", "protochain 17", "ip6 protochain 17 and udp", "not protochain 6",
                                 "protochain 17 or protochain 51"}) {
    const auto program = compile_expression(expression, {}, {});
    ASSERT_TRUE(program) << to_string(program.error());
    const auto source = to_libpcap(program->source());
    ASSERT_NE(program->source().size(), program->instructions().size());
    for (int headers = 0; headers <= 30; ++headers) {
      Packets packets;
      const auto whole = chain_of(headers);
      packets.add(whole, static_cast<std::uint32_t>(whole.size()));
      packets.add(std::span(whole).first(whole.size() / 2), static_cast<std::uint32_t>(whole.size()));
      for (const auto& matcher : all_matchers({*program})) {
        const auto returns = returns_of(*matcher, 0, packets.views());
        for (std::size_t i = 0; i < returns.size(); ++i) {
          const PacketBytes& packet = packets.views()[i];
          EXPECT_EQ(returns[i], bpf_filter(source.data(), packet.data, packet.wire_length, packet.length))
              << matcher->name() << ' ' << expression << ' ' << headers;
        }
      }
    }
  }
}

TEST(Loops, EndWithZeroIfTheyDoNotEnd) {
  // ld #1; ja -2; ret
  const auto program = Program::verify({{kLoadImmediate, 0, 0, 1}, {kJump, 0, 0, 0xfffffffe}, {kReturnA, 0, 0, 0}}, {});
  ASSERT_TRUE(program) << to_string(program.error());
  Packets packets;
  packets.add({}, 0);
  for (const auto& matcher : all_matchers({*program}))
    EXPECT_EQ(returns_of(*matcher, 0, packets.views()), std::vector<std::uint32_t>{0}) << matcher->name();
}

}  // namespace
}  // namespace penstock::filter
