// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole gateway is reloaded while packets flow, on CPUs. tests/gpu does it on GPUs.

#include <gtest/gtest.h>

#include "property/reloaded_gateway.h"

namespace penstock::property {
namespace {

TEST(ReloadedGateway, DecidesEachPacketByOneVersionInAllFunctionsAndLosesNone) {
  for (const std::uint64_t seed : {1, 2}) {
    SCOPED_TRACE(seed);
    ReloadedGateway gateway({*config::parse_override("run.processor=cpu")});
    ASSERT_NO_FATAL_FAILURE(gateway.run(15, seed));
    gateway.expect_sound();
  }
}

}  // namespace
}  // namespace penstock::property
