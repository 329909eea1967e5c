// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/external_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace penstock {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<ProgramOutput> shell(const std::string& script, std::string_view input = "", const ProgramLimits& limits = {}) {
  return run_external_program({"sh", "-c", script}, input, limits);
}

TEST(ExternalProgram, GivesItsInputAndReturnsWhatItPrints) {
  const std::string large(1'000'000, 'x');  // more than a pipe holds
  const auto output = shell("cat; echo of-stderr >&2; exit 3", large);
  ASSERT_TRUE(output) << to_string(output.error());
  EXPECT_EQ(output->text, large);
  EXPECT_EQ(output->messages, "of-stderr\n");
  EXPECT_EQ(output->exit_code, 3);
}

TEST(ExternalProgram, SaysWhichSignalEndedIt) { EXPECT_EQ(shell("kill -9 $$").value().exit_code, 128 + 9); }

TEST(ExternalProgram, IsFoundWhateverThePathSays) {
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(shell("echo $LC_ALL").value().text, "C\n");
  const auto missing = run_external_program({"no-such-program"}, "", {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(to_string(missing.error()), StartsWith("no-such-program: is not installed"));
}

TEST(ExternalProgram, IsKilledWithItsChildrenWhenItsTimeIsOver) {
  const auto begun = std::chrono::steady_clock::now();
  // The child keeps the output open.
  const auto output = shell("sleep 20 & sleep 20", "", {.time = 100ms});
  ASSERT_FALSE(output);
  EXPECT_THAT(to_string(output.error()), HasSubstr("sh: has not ended: found 100 ms"));
  const auto closed = shell("exec >&- 2>&-; sleep 20", "", {.time = 100ms});
  EXPECT_FALSE(closed);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST(ExternalProgram, MayNotPrintOrTakeMoreThanItsLimits) {
  const auto endless = shell("yes", "", {.output_bytes = 100'000});
  ASSERT_FALSE(endless);
  EXPECT_THAT(to_string(endless.error()), HasSubstr("prints too much"));
  EXPECT_EQ(shell("printf 12345", "", {.output_bytes = 5}).value().text, "12345");
  EXPECT_FALSE(shell("printf 123456", "", {.output_bytes = 5}));
  const auto messages = shell("head -c 1000000 /dev/zero >&2; echo done");
  ASSERT_TRUE(messages) << to_string(messages.error());
  EXPECT_EQ(messages->text, "done\n");
  EXPECT_EQ(messages->messages.size(), 64U << 10);
  // Its first line is printed once the limit is set.
  const auto hungry = shell("sleep 0.2; x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}", "",
                            {.memory_bytes = std::size_t{100} << 20});
  ASSERT_TRUE(hungry) << to_string(hungry.error());
  EXPECT_NE(hungry->exit_code, 0);
}

}  // namespace
}  // namespace penstock
