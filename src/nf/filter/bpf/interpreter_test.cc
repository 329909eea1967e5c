// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <array>

#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {
namespace {

constexpr std::array<std::uint8_t, 8> kPacket = {0x45, 0xff, 0x80, 0x03, 0x04, 0x05, 0x06, 0x07};

std::uint32_t value_of(std::vector<Instruction> instructions) {
  instructions.push_back({kReturnA, 0, 0, 0});
  const auto program = Program::verify(std::move(instructions), {});
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return 0;
  }
  return interpret(program->instructions().data(), {kPacket.data(), kPacket.size(), 99});
}

TEST(Interpreter, LoadsInNetworkByteOrder) {
  EXPECT_EQ(value_of({{kLoadWordAbs, 0, 0, 1}}), 0xff800304u);
  EXPECT_EQ(value_of({{kLoadHalfAbs, 0, 0, 1}}), 0xff80u);
  EXPECT_EQ(value_of({{kLoadByteAbs, 0, 0, 1}}), 0xffu);
  EXPECT_EQ(value_of({{kLoadXImmediate, 0, 0, 2}, {kLoadHalfInd, 0, 0, 1}}), 0x0304u);
  EXPECT_EQ(value_of({{kLoadXHeaderLength, 0, 0, 0}, {kCopyXToA, 0, 0, 0}}), 20u);
}

TEST(Interpreter, LoadsTheLastBytesAndNoneAfterThem) {
  EXPECT_EQ(value_of({{kLoadWordAbs, 0, 0, 4}}), 0x04050607u);
  EXPECT_EQ(value_of({{kLoadWordAbs, 0, 0, 5}, {kLoadImmediate, 0, 0, 7}}), 0u);
  EXPECT_EQ(value_of({{kLoadHalfAbs, 0, 0, 7}, {kLoadImmediate, 0, 0, 7}}), 0u);
  EXPECT_EQ(value_of({{kLoadByteAbs, 0, 0, 8}, {kLoadImmediate, 0, 0, 7}}), 0u);
  EXPECT_EQ(value_of({{kLoadXImmediate, 0, 0, 0xffffffff}, {kLoadByteInd, 0, 0, 1}, {kLoadImmediate, 0, 0, 7}}), 0u);
}

TEST(Interpreter, ReturnsZeroOnDivisionByX) {
  EXPECT_EQ(value_of({{kLoadImmediate, 0, 0, 7}, {kDivideX, 0, 0, 0}, {kLoadImmediate, 0, 0, 7}}), 0u);
  EXPECT_EQ(value_of({{kLoadImmediate, 0, 0, 7}, {kModuloX, 0, 0, 0}, {kLoadImmediate, 0, 0, 7}}), 0u);
}

TEST(Interpreter, ShiftsLikeLibpcap) {
  EXPECT_EQ(value_of({{kLoadImmediate, 0, 0, 1}, {kShiftLeftK, 0, 0, 33}}), 2u);
  EXPECT_EQ(value_of({{kLoadImmediate, 0, 0, 1}, {kLoadXImmediate, 0, 0, 33}, {kShiftLeftX, 0, 0, 0}}), 0u);
}

TEST(Interpreter, LenIsTheWireLength) { EXPECT_EQ(value_of({{kLoadLength, 0, 0, 0}}), 99u); }

TEST(Interpreter, ScratchMemoryStartsAtZero) { EXPECT_EQ(value_of({{kLoadScratch, 0, 0, 15}}), 0u); }

}  // namespace
}  // namespace penstock::filter
