// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole gateway is reloaded while packets flow over a GPU.

#include <gtest/gtest.h>

#include "gpu/way.h"
#include "property/reloaded_gateway.h"

namespace penstock::on_gpu {
namespace {

class ReloadedGateway : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, ReloadedGateway, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return test_name(way.param); });

TEST_P(ReloadedGateway, DecidesEachPacketByOneVersionInAllFunctionsAndLosesNone) {
  std::vector<std::string> settings = settings_of(GetParam());
  settings.emplace_back("run.streams=3");
  property::ReloadedGateway gateway(overrides_of(settings));
  ASSERT_NO_FATAL_FAILURE(gateway.run(12, 1));
  gateway.expect_sound();
  expect_all_on_device(gateway.report);
}

}  // namespace
}  // namespace penstock::on_gpu
