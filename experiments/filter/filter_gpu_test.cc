// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every combination of memories and transfers gives the results of the CPU, for every result form, and wrong results
// end a measurement.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "classify/rfc_build.h"
#include "experiments/filter/device_filters.h"
#include "experiments/filter/device_matches.h"
#include "experiments/filter/device_passes.h"
#include "experiments/filter/many_filters.h"
#include "experiments/filter/random_packets.h"
#include "experiments/filter/template_rules.h"
#include "gpu/devices.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Rules = std::vector<WordRule<kKeyWords>>;

const std::atomic<bool> kNeverStop{false};
constexpr Timing kShort{1, milliseconds{1}, &kNeverStop};
constexpr std::size_t kPackets = 300'000;  // not a multiple of a chunk
constexpr std::size_t kChunk = 32'768;

/// Rules with packets on the device, half of which match.
class Passes {
 public:
  Passes(Reading from, std::size_t count)
      : reading(from), rules(template_rules(from, count)), passes(gpu::current_device(), kPackets) {
    draw_packets(passes.keys(), rules, 50, 4);
    passes.send_keys();
    for (const Deciding deciding : {Deciding::first, Deciding::last}) {
      for (std::size_t i = 0; i < kPackets; i += kCheckedStep) {
        expected[deciding == Deciding::last].push_back(deciding_rule(
            rules.data(), static_cast<std::uint32_t>(rules.size()), deciding, words_of(passes.keys()[i])));
      }
    }
  }

  void expect_right(const KeyFilter& filter, Deciding deciding, const PassOptions& options, const std::string& what) {
    const auto rates = passes.rates(&filter, options, expected[deciding == Deciding::last], kShort);
    ASSERT_TRUE(rates) << what << ": " << to_string(rates.error());
    EXPECT_GT(rates->front(), 1e4) << what;
  }

  /// All storages, transfers and result forms.
  void expect_all_right(const KeyFilter& filter, Deciding deciding, const std::string& what) {
    for (const bool texture : {false, true}) {
      for (const Transfer transfer : {Transfer::none, Transfer::direct, Transfer::zero_copy, Transfer::streamed}) {
        for (const unsigned bits : {1U, 8U, 16U, 32U}) {
          const PassOptions options{
              .texture = texture, .transfer = transfer, .result_bits = bits, .chunk = kChunk, .streams = 3};
          expect_right(
              filter, deciding, options,
              fmt::format("{}, texture {}, transfer {}, {} bits", what, texture, static_cast<int>(transfer), bits));
        }
      }
    }
  }

  Reading reading;
  Rules rules;
  DevicePasses passes;
  std::vector<std::uint32_t> expected[2];
};

TEST(FilterPasses, GiveTheResultsOfTheCpuForEveryCombination) {
  Passes small(Reading::text, 20);     // RFC's tables fit into constant memory
  Passes large(Reading::table, 1000);  // they do not
  for (Passes* const passes : {&small, &large}) {
    DeviceFilters filters;
    for (const Deciding deciding : {Deciding::first, Deciding::last}) {
      for (const char* method : {"bpf+constant", "bpf+code", "rfc+constant", "rfc+global"}) {
        const auto filter = filters.get({passes->rules, passes->reading, deciding, method, 16});
        ASSERT_TRUE(filter) << to_string(filter.error());
        passes->expect_all_right(**filter, deciding,
                                 fmt::format("{} {} {}", method, passes->rules.size(), static_cast<int>(deciding)));
      }
    }
  }
}

TEST(FilterPasses, GiveTheResultsOfTheCpuForEachUnrollingBlockAndReading) {
  for (const Reading reading : {Reading::table, Reading::text}) {
    Passes passes(reading, 77);
    DeviceFilters filters;
    for (const Deciding deciding : {Deciding::first, Deciding::last}) {
      for (const unsigned unroll : {1U, 4U, 16U}) {
        const auto filter = filters.get({passes.rules, reading, deciding, "bpf+constant", unroll});
        ASSERT_TRUE(filter);
        for (const unsigned block : {64U, 1024U}) {
          passes.expect_right(**filter, deciding, {.transfer = Transfer::none, .block = block},
                              fmt::format("unroll {} block {}", unroll, block));
        }
      }
    }
  }
}

TEST(FilterPasses, AreRefusedIfAResultIsWrong) {
  Passes passes(Reading::table, 30);
  DeviceFilters filters;
  const auto filter = filters.get({passes.rules, Reading::table, Deciding::first, "bpf+constant", 1});
  ASSERT_TRUE(filter);
  std::vector<std::uint32_t> other = passes.expected[0];
  other[5] = other[5] == 0 ? 1 : 0;
  for (const Transfer transfer : {Transfer::none, Transfer::direct, Transfer::zero_copy, Transfer::streamed}) {
    const auto rates = passes.passes.rates(*filter, {.transfer = transfer, .chunk = kChunk}, other, kShort);
    ASSERT_FALSE(rates) << static_cast<int>(transfer);
    EXPECT_THAT(to_string(rates.error()), HasSubstr("the GPU's result for packet 4985 is wrong"));
  }
}

TEST(FilterPasses, CopyWithoutAFilter) {
  Passes passes(Reading::table, 1);
  const auto rates =
      passes.passes.rates(nullptr, {.transfer = Transfer::streamed, .chunk = kChunk, .streams = 2}, {}, kShort);
  ASSERT_TRUE(rates);
  EXPECT_GT(rates->front(), 1e6);
}

TEST(FilterPasses, UseAShareOfTheMultiprocessors) {
  Passes passes(Reading::table, 100);
  const auto all = passes.passes.multiprocessors(100);
  ASSERT_TRUE(all);
  DeviceFilters filters;
  const auto filter = filters.get({passes.rules, Reading::table, Deciding::last, "bpf+constant", 16});
  ASSERT_TRUE(filter);
  for (const unsigned share : {25U, 50U, 75U}) {
    const auto some = passes.passes.multiprocessors(share);
    if (!some) GTEST_SKIP() << to_string(some.error());
    EXPECT_GE(*some * 100, *all * share);
    EXPECT_LT(*some, *all);
    for (const Transfer transfer : {Transfer::none, Transfer::streamed}) {
      passes.expect_right(**filter, Deciding::last,
                          {.transfer = transfer, .chunk = kChunk, .streams = 2, .share = share},
                          fmt::format("share {}", share));
    }
  }
}

TEST(DeviceMatches, GiveTheWordsOfLibpcap) {
  constexpr std::size_t kFrames = 65'536;
  const std::vector<std::uint8_t> bytes = filter_frames(kFrames);
  std::vector<filter::PacketBytes> frames;
  for (std::size_t f = 0; f < kFrames; ++f) {
    frames.push_back({bytes.data() + f * kFrameBytes, kFrameBytes, kFrameBytes});
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{256}}) {
    std::vector<filter::Program> programs;
    for (std::size_t f = 0; f < count; ++f) {
      programs.push_back(*filter::compile_expression(filter_expression(f), {}, {}));
    }
    const auto oracle = filter::make_matcher(filter::Engine::libpcap, programs);
    ASSERT_TRUE(oracle);
    std::vector<std::uint32_t> expected(kFrames * words_of_filters(count));
    match_frames(**oracle, frames, expected.data());
    for (const char* engine : {"interpreter", "code"}) {
      for (const bool only_kernel : {false, true}) {
        auto matches = DeviceMatches::make(gpu::current_device(), engine, programs, bytes);
        ASSERT_TRUE(matches) << to_string(matches.error());
        const auto rates = (*matches)->rates(only_kernel, kShort);
        ASSERT_TRUE(rates) << to_string(rates.error());
        const auto words = (*matches)->words();
        ASSERT_EQ(words.size(), expected.size());
        for (std::size_t w = 0; w < expected.size(); ++w) {
          ASSERT_EQ(words[w], expected[w]) << engine << ' ' << count << " word " << w;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::experiments
