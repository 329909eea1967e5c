// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NVRTC compiles the generated code, which needs no GPU. Skipped if NVRTC is not installed.

#include "nf/filter/code/machine_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gpu/nvrtc.h"
#include "nf/filter/code/random_programs_for_test.h"

namespace penstock::filter {
namespace {

/// P2R instructions that write a higher byte of a register. An instruction has 16 bytes; the opcode is in the lowest 12
/// bits, the mask of predicates from bit 32 on, and the number of the byte from bit 76 on. Of compute capability 7.0 to
/// 9.0.
std::size_t predicates_into_higher_bytes(std::span<const char> machine_code) {
  std::size_t found = 0;
  for (std::size_t at = 0; at + 16 <= machine_code.size(); at += 16) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::memcpy(&low, machine_code.data() + at, 8);
    std::memcpy(&high, machine_code.data() + at + 8, 8);
    if ((low & 0xfff) == 0x803 && low >> 40 == 0 && (high >> 12 & 3) != 0) ++found;
  }
  return found;
}

class Compiled : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::nvrtc_status().available) GTEST_SKIP() << gpu::nvrtc_status().reason;
  }

  static std::string mistakes(std::span<const Program> programs, const GenerateOptions& options) {
    MachineCode code(programs, options);
    const auto compiled = code.for_devices(9, 0);
    return compiled ? std::string() : to_string(compiled.error());
  }
};

TEST_F(Compiled, IsEachKindOfCode) {
  testing::RandomPrograms draw(1);
  EXPECT_EQ(mistakes(draw.programs(40, 60), {24, true}), "");
  EXPECT_EQ(mistakes(testing::mixed_filters(40), {96, false}), "");
  EXPECT_EQ(mistakes(testing::port_filters(100), {}), "");
}

TEST_F(Compiled, IsASetOfAThousandFiltersWithLargeTables) {
  std::vector<Program> programs;
  for (std::size_t i = 0; i < kMostPrograms; ++i) {
    std::string expression = "ip[0] = 0";
    for (std::size_t column = 1; column < 16; ++column) {
      const std::size_t number = 1 + (i * column * column + column) % 60000;
      expression += " or ip[" + std::to_string(2 * column) + ":2] = " + std::to_string(number);
    }
    programs.push_back(testing::compiled(expression));
  }
  MachineCode code(programs, {});
  EXPECT_EQ(code.generated().looped, kMostPrograms);
  EXPECT_TRUE(code.for_devices(9, 0));
}

/// ptxas 13.0 makes such instructions of ORs of bits at their positions, and some of them are wrong: they also take
/// predicates of the lowest byte. Then a match of program 0 becomes one of program 8, too.
TEST_F(Compiled, TakesNoPredicatesOfOneByteOfTheBitmapForAnother) {
  for (const auto& programs :
       {testing::distinct_filters(1000), testing::mixed_filters(1024), testing::port_filters(1024)}) {
    MachineCode code(programs, {});
    const auto compiled = code.for_devices(9, 0);
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    EXPECT_EQ(predicates_into_higher_bytes(*compiled), 0U);
  }
}

TEST(MachineCode, RefusesProgramsThatTakeTooLongToCompile) {
  std::vector<Program> programs;
  for (std::uint32_t i = 0; programs.size() < 20; ++i) {
    testing::RandomPrograms draw(i);
    Program program = draw.program(kMostInstructions);
    if (program.instructions().size() > 3000) programs.push_back(std::move(program));
  }
  MachineCode code(programs, {kUnbounded, true});
  const auto compiled = code.for_devices(9, 0);
  ASSERT_FALSE(compiled);
  EXPECT_NE(to_string(compiled.error()).find("too long"), std::string::npos) << to_string(compiled.error());
}

TEST_F(Compiled, IsDoneOnceForEachKindOfDevice) {
  MachineCode code(testing::port_filters(2), {});
  const auto first = code.for_devices(9, 0);
  const auto again = code.for_devices(9, 0);
  const auto other = code.for_devices(8, 0);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(first->data(), again->data());
  EXPECT_NE(first->data(), other->data());
}

}  // namespace
}  // namespace penstock::filter
