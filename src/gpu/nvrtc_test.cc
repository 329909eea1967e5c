// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiling needs no GPU. Skipped if the library is not installed.

#include "gpu/nvrtc.h"

#include <gtest/gtest.h>

#include <string_view>

namespace penstock::gpu {
namespace {

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const NvrtcStatus status = nvrtc_status();
    if (!status.available) GTEST_SKIP() << status.reason;
  }
};

TEST_F(Nvrtc, MakesMachineCode) {
  const auto code = compile_cuda("extern \"C\" __global__ void add(unsigned* to) { *to += 1; }", "add.cu", 9, 0);
  ASSERT_TRUE(code) << to_string(code.error());
  EXPECT_EQ(std::string_view(code->data(), 4),
            "\x7f"
            "ELF");
}

TEST_F(Nvrtc, SaysWhatIsWrongWithTheSource) {
  const auto code = compile_cuda("nonsense", "wrong.cu", 9, 0);
  ASSERT_FALSE(code);
  EXPECT_NE(to_string(code.error()).find("wrong.cu"), std::string::npos) << to_string(code.error());
  EXPECT_NE(to_string(code.error()).find("nonsense"), std::string::npos) << to_string(code.error());
}

TEST_F(Nvrtc, ReportsItsVersionAndFile) {
  EXPECT_TRUE(nvrtc_status().version.starts_with("1")) << nvrtc_status().version;
  EXPECT_NE(nvrtc_status().path.find("libnvrtc"), std::string::npos);
}

TEST(NvrtcStatus, HasAReasonIfItIsNotAvailable) {
  const NvrtcStatus status = nvrtc_status();
  EXPECT_NE(status.available, !status.reason.empty());
}

}  // namespace
}  // namespace penstock::gpu
