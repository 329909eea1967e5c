// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NVRTC compiles the generated code, which needs no GPU. Skipped if NVRTC is not installed.

#include "nf/filter/code/machine_code.h"

#include <gtest/gtest.h>

#include "gpu/nvrtc.h"
#include "nf/filter/code/random_programs_for_test.h"

namespace penstock::filter {
namespace {

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

TEST_F(Compiled, IsASetOfAThousandFiltersWhoseConstantsExceedConstantMemory) {
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
  EXPECT_NE(code.generated().text.find("PENSTOCK_MORE_CONSTANTS u32 constants"), std::string::npos);
  EXPECT_TRUE(code.for_devices(9, 0));
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
