// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/program.h"

#include <gtest/gtest.h>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {
namespace {

constexpr Instruction kReturn{kReturnK, 0, 0, 1};

std::string refusal(std::vector<Instruction> instructions) {
  const auto program = Program::verify(std::move(instructions), {"prog.bpf", 2, 0}, true);
  return program ? "accepted" : to_string(program.error());
}

TEST(Program, NamesTheInstructionAndTheReason) {
  EXPECT_EQ(
      refusal({{kLoadByteAbs, 0, 0, 12}, {kLoadByteAbs, 0, 0, 0xfffff004}, kReturn}),
      "prog.bpf:3: instruction 1 (ldb [0xfffff004]): 'pkttype' is known only to the kernel that received the packet: "
      "found offset 0xfffff004, expected protocol, vlan_tci, vlan_tpid or vlan_tag_present");
  EXPECT_EQ(
      refusal({{kStore, 0, 0, 16}, kReturn}),
      "prog.bpf:2: instruction 0 (st M[16]): no such word of scratch memory: found M[16], expected M[0] to M[15]");
}

TEST(Program, RefusesJumpsBeyondItsEnd) {
  EXPECT_NE(refusal({{kJump, 0, 0, 1}, kReturn}), "accepted");
  EXPECT_EQ(refusal({{kJump, 0, 0, 0}, kReturn}), "accepted");
  EXPECT_NE(refusal({{kJumpEqualK, 1, 0, 0}, kReturn}), "accepted");
  EXPECT_NE(refusal({{kJumpEqualK, 0, 1, 0}, kReturn}), "accepted");
  EXPECT_EQ(refusal({{kJumpEqualK, 0, 0, 0}, kReturn}), "accepted");
}

TEST(Program, RefusesDivisionByZero) {
  EXPECT_NE(refusal({{kDivideK, 0, 0, 0}, kReturn}), "accepted");
  EXPECT_NE(refusal({{kModuloK, 0, 0, 0}, kReturn}), "accepted");
  EXPECT_EQ(refusal({{kDivideX, 0, 0, 0}, {kModuloX, 0, 0, 0}, kReturn}), "accepted");
}

TEST(Program, MustEndWithAReturn) {
  EXPECT_NE(refusal({}), "accepted");
  EXPECT_NE(refusal({kReturn, {kLoadImmediate, 0, 0, 0}}), "accepted");
}

TEST(Program, HasAtMost4096Instructions) {
  EXPECT_EQ(refusal(std::vector<Instruction>(4096, kReturn)), "accepted");
  EXPECT_NE(refusal(std::vector<Instruction>(4097, kReturn)), "accepted");
}

}  // namespace
}  // namespace penstock::filter
