// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two functions that send by one SA on a GPU count in one place there, whatever batches, workers and streams.

#include <gtest/gtest.h>

#include "gpu/way.h"
#include "property/two_senders.h"

namespace penstock::on_gpu {
namespace {

using property::TwoSenders;

TEST_F(TwoSenders, NeverSendWithOneNonceOnAGpu) {
  for (const Way& way : kWays) {
    for (const char* const workers : {"1", "3"}) {
      SCOPED_TRACE(to_string(way) + ", workers: " + workers);
      const auto packets =
          send({"run.processor=gpu", std::string("run.workers=") + workers, "run.batch.packets=500",
                "run.transfer=" + transfer_of(way), "run.frames=" + frames_of(way), "run.sharing=" + sharing_of(way)});
      for (const std::uint64_t of_function : packets) EXPECT_GT(of_function, 500U);
    }
  }
}

TEST_F(TwoSenders, GoOnWhereAnotherProcessorHasLeftOff) {
  for (const char* const processor : {"gpu", "cpu", "gpu", "cpu"}) {
    SCOPED_TRACE(processor);
    for (const std::uint64_t of_function : send({std::string("run.processor=") + processor}))
      EXPECT_GT(of_function, 500U);
  }
}

}  // namespace
}  // namespace penstock::on_gpu
