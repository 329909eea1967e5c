// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/transfer_waits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace penstock::ring {
namespace {

const std::vector<Timeline::Stream> kStreams{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 2, 0}};

Span span_of(Work work, std::uint32_t stream, std::int64_t ready_ns, std::int64_t end_ns) {
  return {.work = work, .stream = stream, .ready_ns = ready_ns, .end_ns = end_ns};
}

TEST(TransferWaits, LastFromReadinessToTheEndOfThePreviousTransfer) {
  const std::vector<Span> spans{span_of(Work::to_device, 0, 0, 100), span_of(Work::to_device, 1, 40, 200),
                                span_of(Work::to_device, 2, 90, 300), span_of(Work::to_device, 0, 300, 400)};
  EXPECT_EQ(transfer_waits(spans, kStreams), (std::vector<std::int64_t>{0, 60, 110, 0}));
}

TEST(TransferWaits, AreTheWholeTimeOfATransferThatOvertakes) {
  const std::vector<Span> spans{span_of(Work::to_device, 0, 0, 1000), span_of(Work::to_device, 1, 100, 150)};
  EXPECT_EQ(transfer_waits(spans, kStreams), (std::vector<std::int64_t>{0, 50}));
}

TEST(TransferWaits, AreForTransfersOfTheSameDirectionAndDevice) {
  const std::vector<Span> spans{span_of(Work::to_device, 0, 0, 100), span_of(Work::kernels, 1, 10, 90),
                                span_of(Work::to_host, 1, 20, 90), span_of(Work::to_device, 3, 30, 90),
                                span_of(Work::to_host, 2, 80, 120)};
  EXPECT_EQ(transfer_waits(spans, kStreams), (std::vector<std::int64_t>{0, 0, 0, 0, 10}));
}

/// Directly by the definition, comparing all pairs.
std::vector<std::int64_t> naive_waits(const std::vector<Span>& spans) {
  std::vector<std::int64_t> waits;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    std::int64_t wait = 0;
    for (std::int64_t now = span.ready_ns; span.work != Work::kernels && now < span.end_ns; ++now) {
      bool another = false;
      for (std::size_t j = 0; j < spans.size(); ++j) {
        const Span& other = spans[j];
        const bool before = other.ready_ns < span.ready_ns || (other.ready_ns == span.ready_ns && j < i);
        another |= before && other.work == span.work && now < other.end_ns &&
                   kStreams[other.stream].device == kStreams[span.stream].device;
      }
      wait += another ? 1 : 0;
    }
    waits.push_back(wait);
  }
  return waits;
}

TEST(TransferWaits, MatchTheDefinition) {
  std::mt19937 random(1);  // NOLINT: the same spans each time
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Span> spans;
    const int count = below(30);
    for (int i = 0; i < count; ++i) {
      const int ready = below(100);
      spans.push_back(span_of(static_cast<Work>(below(3)), static_cast<std::uint32_t>(below(4)), ready,
                              ready + below(below(2) == 0 ? 5 : 60)));
    }
    EXPECT_EQ(transfer_waits(spans, kStreams), naive_waits(spans)) << "round " << round;
  }
}

}  // namespace
}  // namespace penstock::ring
