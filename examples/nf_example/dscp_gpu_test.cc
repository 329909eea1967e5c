// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU stage with the CPU twin for every way in which batches cross PCIe.

#include <gtest/gtest.h>

#include "dscp.h"
#include "gpu/devices.h"
#include "nf/stage_twins_for_test.h"

namespace dscp {
namespace {

using penstock::testing::Way;

class DscpOnDevice : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const penstock::gpu::DeviceList list = penstock::gpu::list_devices();
    if (list.availability != penstock::gpu::Availability::kUsable) GTEST_SKIP() << list.reason;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, DscpOnDevice, ::testing::ValuesIn(penstock::testing::kWays),
                         [](const auto& way) { return way.param.name; });

TEST_P(DscpOnDevice, SendsWhatItsTwinSendsInBatchesOfEverySize) {
  const auto on_device = make_dscp(46);
  const auto on_host = make_dscp(46);
  penstock::testing::StageTwins twins(*on_device, *on_host, GetParam());
  penstock::testing::RandomFrames draw(1);
  for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 4000U}) {
    while (twins.lane().batch().size() < size) ASSERT_TRUE(twins.lane().append(draw.frame()));
    ASSERT_NO_FATAL_FAILURE(twins.run()) << size << " packets";
  }
  EXPECT_EQ(twins.forwarded(), twins.packets()) << "drops nothing";
}

}  // namespace
}  // namespace dscp
