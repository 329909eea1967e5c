// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/batch_time.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

TEST(BatchTimeFit, FindsFixedAndSpreadTime) {
  BatchTimeFit fit;
  for (std::uint64_t i = 1; i <= 20; ++i) fit.add(i * 1000, 5000 + 0.25 * static_cast<double>(i * 1000));
  fit.refit();
  EXPECT_NEAR(fit.time().fixed_ns, 5000, 1);
  EXPECT_NEAR(fit.time().ns_per_byte, 0.25, 1e-4);
  EXPECT_NEAR(fit.time().ns(8000), 7000, 1);
  EXPECT_NEAR(fit.time().spread_ns(8000), 2000, 1);
}

TEST(BatchTimeFit, TakesAllTimeAsSpreadIfBatchesHaveOneSize) {
  BatchTimeFit fit;
  for (int i = 0; i < 10; ++i) fit.add(1000, i % 2 == 0 ? 900 : 1100);
  fit.refit();
  EXPECT_EQ(fit.time().fixed_ns, 0);
  EXPECT_NEAR(fit.time().ns_per_byte, 1, 1e-9);
}

TEST(BatchTimeFit, HasNoNegativeTerms) {
  BatchTimeFit falling, steep;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    falling.add(i * 1000, 10000 - 100 * static_cast<double>(i));
    steep.add(i * 1000, 2 * static_cast<double>(i * 1000) - 1500);
  }
  falling.refit();
  steep.refit();
  EXPECT_EQ(falling.time().ns_per_byte, 0);
  EXPECT_NEAR(falling.time().fixed_ns, 9450, 1);
  EXPECT_EQ(steep.time().fixed_ns, 0);
  EXPECT_GT(steep.time().ns_per_byte, 1.5);
}

TEST(BatchTimeFit, KeepsWhatItKnowsUntilThereAreMeasurements) {
  BatchTimeFit fit(0.5);
  EXPECT_EQ(fit.time().ns(1000), 500);
  fit.refit();
  fit.add(1000, 5000);
  fit.refit();
  EXPECT_EQ(fit.time().ns(1000), 500) << "one measurement is none";
}

TEST(BatchTimeFit, ForgetsOldMeasurements) {
  BatchTimeFit fit;
  for (const double ns : {1000.0, 4000.0}) {
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < 10; ++i) fit.add(1000, ns);
      fit.refit();
    }
    EXPECT_NEAR(fit.time().ns(1000), ns, 0.01 * ns);
  }
}

}  // namespace
}  // namespace penstock::proxy
