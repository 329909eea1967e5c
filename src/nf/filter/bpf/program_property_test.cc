// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/testing/rounds.h"
#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/bpf/libpcap_instructions.h"
#include "nf/filter/bpf/lower.h"
#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/bpf/packets_for_test.h"
#include "nf/filter/bpf/random_program_for_test.h"

namespace penstock::filter {
namespace {

bool is_jump(const Instruction& at) { return (at.code & kClassMask) == kClassJump; }

/// Whether each instruction returns, or continues at a later one: then a program takes at most as many steps as it has
/// instructions.
bool goes_forwards(std::span<const Instruction> program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Instruction& at = program[i];
    if ((at.code & kClassMask) == kClassReturn) continue;
    const std::uint64_t farthest = !is_jump(at) ? 0 : at.code == kJump ? at.k : std::max(at.jump_true, at.jump_false);
    if (i + 1 + farthest >= program.size()) return false;
  }
  return true;
}

/// Random programs with jumps to anywhere, Linux's loads, and branches over hundreds of instructions.
std::vector<Instruction> any_program(std::mt19937& random) {
  std::vector<Instruction> program;
  for (std::size_t parts = 1 + random() % 20; parts > 0; --parts) {
    const auto part = random_program(random);
    program.insert(program.end(), part.begin(), part.end());
  }
  for (std::size_t i = 0; i < program.size(); ++i) {
    Instruction& at = program[i];
    const std::size_t left = program.size() - 1 - i;
    if (is_jump(at) && at.code != kJump && random() % 4 == 0)
      at.jump_true = static_cast<std::uint8_t>(random() % std::min<std::size_t>(left, 256));
    if (random() % 64 == 0 && left > 0) {
      at = {kJump, 0, 0, static_cast<std::uint32_t>(random() % program.size() - i - 1)};
    }
    if (at.code == kLoadHalfAbs && random() % 4 == 0) at.k = 0xfffff000;  // protocol
    if (at.code == kLoadByteAbs && random() % 4 == 0) at.k = 0xfffff02c;  // vlan_tci
    if (at.code == kLoadWordAbs && random() % 4 == 0) at.k = 0xffe00000 + static_cast<std::uint32_t>(random() % 64);
  }
  return program;
}

TEST(AcceptedPrograms, TakeAtMostAsManyStepsAsTheyHaveInstructions) {
  std::mt19937 random(20263);
  std::size_t unrolled = 0;
  for (std::uint32_t i = 0; i < testing::rounds(3000); ++i) {
    const auto program = Program::verify(any_program(random), {}, false, i % 2 == 0 ? 1 : 12);
    if (!program) continue;
    ASSERT_TRUE(goes_forwards(program->instructions())) << dump(program->source(), DumpForm::listing);
    ASSERT_LE(program->instructions().size(), kMostUnrolled);
    unrolled += program->instructions().size() != program->source().size() ? 1 : 0;
  }
  EXPECT_GT(unrolled, testing::rounds(3000) / 4);
}

TEST(AcceptedPrograms, ReadNothingOutsideThePacket) {
  // Loads outside the packets end the test: in guarded memory always, in allocated memory under a sanitizer.
  std::mt19937 random(20264);
  std::size_t run = 0;
  for (std::uint32_t i = 0; i < testing::rounds(2000); ++i) {
    const auto program = Program::verify(any_program(random), {});
    if (!program) continue;
    Packets packets = random_packets(random, 20);
    if (i % 8 == 0)
      for (const PacketBytes packet : std::vector(packets.views()))
        packets.add_guarded({packet.data, packet.length}, packet.wire_length);
    const auto matchers = all_matchers({*program});
    const auto expected = returns_of(*matchers[0], 0, packets.views());
    for (const auto& matcher : matchers)
      ASSERT_EQ(returns_of(*matcher, 0, packets.views()), expected) << matcher->name();
    ++run;
  }
  EXPECT_GT(run, testing::rounds(2000) / 4);
}

/// What `lower` replaces, in an Ethernet frame with an EtherType, by other means; and with cleared scratch memory, for
/// libpcap.
std::vector<Instruction> without_extensions(std::vector<Instruction> program) {
  for (Instruction& at : program) {
    if ((at.code & 0xe7) != 0x20) continue;
    if (at.k == 0xfffff000) at = {kLoadHalfAbs, 0, 0, 12};
    if (at.k == 0xfffff02c) at = {kLoadImmediate, 0, 0, 0};
    if (at.k >= 0xffe00000 && at.k < 0xfff00000) at.k -= 0xffe00000;
  }
  for (std::uint32_t k = 0; k < kScratchWords; ++k) program.insert(program.begin(), {kStore, 0, 0, k});
  return program;
}

TEST(LoweredPrograms, ComputeWhatTheirSourceDoes) {
  std::mt19937 random(20265);
  std::size_t run = 0;
  for (std::uint32_t i = 0; i < testing::rounds(3000); ++i) {
    auto source = any_program(random);
    for (std::size_t at = 0; at < source.size(); ++at)
      if (source[at].code == kJump) source[at].k %= static_cast<std::uint32_t>(source.size() - 1 - at);
    const auto program = Program::verify(source, {});
    ASSERT_TRUE(program) << to_string(program.error());
    const auto plain = to_libpcap(without_extensions(source));
    Packets packets;
    for (int count = 0; count < 20; ++count) {
      std::vector<std::uint8_t> bytes(14 + random() % 80);
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & (random() % 2 == 0 ? 15 : 255));
      bytes[12] |= 0x08;  // no length
      packets.add(bytes, static_cast<std::uint32_t>(bytes.size()));
    }
    std::vector<std::uint32_t> expected;
    for (const PacketBytes& packet : packets.views())
      expected.push_back(bpf_filter(plain.data(), packet.data, packet.wire_length, packet.length));
    const auto matchers = all_matchers({*program});
    for (const auto& matcher : matchers)
      ASSERT_EQ(returns_of(*matcher, 0, packets.views()), expected) << matcher->name() << '\n'
                                                                    << dump(source, DumpForm::listing);
    run += program->instructions().size() > source.size() ? 1 : 0;
  }
  EXPECT_GT(run, testing::rounds(3000) / 4);
}

/// Steps through a program of arithmetic, loads and jumps as it was given. Nothing if it jumps backwards more than
/// `rounds` times.
std::optional<std::uint32_t> step(std::span<const Instruction> program, std::span<const std::uint8_t> packet,
                                  int rounds) {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  for (std::uint32_t at = 0;; ++at) {
    const Instruction& now = program[at];
    switch (now.code) {
      case kLoadByteInd:
        if (std::uint64_t{x} + now.k >= packet.size()) return 0;
        a = packet[x + now.k];
        break;
      case kAddK: a += now.k; break;
      case kAddX: a += x; break;
      case kCopyAToX: x = a; break;
      case kCopyXToA: a = x; break;
      case kJumpGreaterK: at += a > now.k ? now.jump_true : now.jump_false; break;
      case kJump:
        if (at + 1 + now.k <= at && rounds-- == 0) return std::nullopt;
        at += now.k;
        break;
      default: return a;
    }
  }
}

TEST(Loops, ComputeWhatTheirSourceDoes) {
  static constexpr std::uint16_t kCodes[] = {kLoadByteInd, kAddK, kAddX, kCopyAToX, kCopyXToA, kJumpGreaterK, kJump};
  std::mt19937 random(20266);
  std::size_t looped = 0;
  for (std::uint32_t i = 0; i < testing::rounds(20000); ++i) {
    std::vector<Instruction> source;
    const std::size_t length = 2 + random() % 20;
    for (std::size_t at = 0; at + 1 < length; ++at) {
      Instruction now{kCodes[random() % std::size(kCodes)], 0, 0, static_cast<std::uint32_t>(random() % 8)};
      const auto skip = [&] { return static_cast<std::uint8_t>(random() % (length - 1 - at)); };
      if (now.code == kJumpGreaterK) now = {now.code, skip(), skip(), now.k * 4};
      if (now.code == kJump) now.k = static_cast<std::uint32_t>(random() % length - at - 1);
      source.push_back(now);
    }
    source.push_back({kReturnA, 0, 0, 0});
    const auto program = Program::verify(source, {});
    ASSERT_TRUE(program) << to_string(program.error());
    const Packets packets = random_packets(random, 10);
    for (const PacketBytes& packet : packets.views()) {
      const auto expected = step(source, {packet.data, packet.length}, kMostRounds);
      if (!expected) continue;
      ASSERT_EQ(interpret(program->instructions().data(), packet), *expected) << dump(source, DumpForm::listing);
      looped += step(source, {packet.data, packet.length}, 0) ? 0 : 1;
    }
  }
  EXPECT_GT(looped, testing::rounds(20000) / 4);
}

}  // namespace
}  // namespace penstock::filter
