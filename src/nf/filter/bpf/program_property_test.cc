// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/rounds.h"
#include "nf/filter/bpf/dump.h"
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
  // Under a sanitizer, loads outside the packets' memory end the test.
  std::mt19937 random(20264);
  std::size_t run = 0;
  for (std::uint32_t i = 0; i < testing::rounds(2000); ++i) {
    const auto program = Program::verify(any_program(random), {});
    if (!program) continue;
    const Packets packets = random_packets(random, 20);
    const auto matchers = all_matchers({*program});
    const auto expected = returns_of(*matchers[0], 0, packets.views());
    for (const auto& matcher : matchers)
      ASSERT_EQ(returns_of(*matcher, 0, packets.views()), expected) << matcher->name();
    ++run;
  }
  EXPECT_GT(run, testing::rounds(2000) / 4);
}

}  // namespace
}  // namespace penstock::filter
