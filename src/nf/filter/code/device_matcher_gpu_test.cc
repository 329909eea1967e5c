// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the device engines with the interpreter on the host. Under compute-sanitizer, the tests "of every size" show
// that no program reads outside the packets' memory.

#include "nf/filter/code/device_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/memory.h"
#include "gpu/nvrtc.h"
#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/code/host_batches.h"
#include "nf/filter/code/random_programs_for_test.h"
#include "packet/packet.h"

namespace penstock::filter {
namespace {

using testing::RandomPrograms;
using Packet = std::vector<std::uint8_t>;

std::vector<PacketBytes> views_of(const std::vector<Packet>& packets) {
  std::vector<PacketBytes> views;
  for (const Packet& packet : packets) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    views.push_back({packet.data(), length, length + length % 3});
  }
  return views;
}

std::uint32_t result_of(const Program& program, const PacketBytes& packet) {
  return interpret(program.instructions().data(), packet);
}

std::vector<std::uint32_t> expected_row(std::span<const Program> programs, const PacketBytes& packet,
                                        MatchOutput output) {
  std::vector<std::uint32_t> row(output == MatchOutput::bitmap ? words_for(programs.size()) : programs.size());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::uint32_t result = result_of(programs[i], packet);
    if (output == MatchOutput::returns) {
      row[i] = result;
    } else if (result != 0) {
      row[i / 32] |= 1U << (i % 32);
    }
  }
  return row;
}

class DeviceMatchers : public ::testing::TestWithParam<DeviceEngine> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceEngine::generated && !gpu::nvrtc_status().available) {
      GTEST_SKIP() << gpu::nvrtc_status().reason;
    }
  }

  static std::unique_ptr<DeviceMatcher> matcher(std::span<const Program> programs,
                                                const GenerateOptions& options = {}) {
    auto made = make_device_matcher(GetParam(), programs, options);
    if (!made) {
      ADD_FAILURE() << to_string(made.error());
      std::abort();
    }
    return std::move(*made);
  }

  /// All the packets, in as many batches as they need; also the return values, if `returns` is set.
  static void expect_as_interpreted(const DeviceMatcher& engine, std::span<const Program> programs,
                                    const std::vector<Packet>& packets, bool returns,
                                    const HostBatchLimits& limits = {1 << 20, 4096, 3}) {
    const std::vector<PacketBytes> views = views_of(packets);
    for (const MatchOutput output : {MatchOutput::bitmap, MatchOutput::returns}) {
      if (output == MatchOutput::returns && !returns) continue;
      HostBatches batches(engine, output, limits);
      std::size_t submitted = 0;
      std::size_t compared = 0;
      const auto compare = [&] {
        const HostBatches::Results results = batches.take();
        for (std::size_t i = 0; i < results.packets; ++i, ++compared) {
          const auto expected = expected_row(programs, views[compared], output);
          const auto found = results.row(i);
          for (std::size_t word = 0; word < found.size(); ++word) {
            ASSERT_EQ(found[word], expected[word]) << "packet " << compared << ", word " << word;
          }
        }
      };
      while (submitted < views.size()) {
        if (batches.full()) {
          ASSERT_NO_FATAL_FAILURE(compare());
        }
        const std::size_t taken = batches.submit(std::span(views).subspan(submitted));
        ASSERT_GT(taken, 0U);
        submitted += taken;
      }
      while (!batches.empty()) ASSERT_NO_FATAL_FAILURE(compare());
      ASSERT_EQ(compared, packets.size());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, DeviceMatchers, ::testing::Values(DeviceEngine::interpreter, DeviceEngine::generated),
                         [](const auto& engine) {
                           return engine.param == DeviceEngine::interpreter ? "Interpreter" : "Generated";
                         });

TEST_P(DeviceMatchers, MatchAndReturnAsTheInterpreterInBatchesOfEverySize) {
  for (const std::size_t count : {1U, 31U, 32U, 33U}) {
    RandomPrograms draw(static_cast<std::uint32_t>(count));
    const auto programs = draw.programs(count, 40);
    const auto engine = matcher(programs, {kUnbounded, true});
    for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 127U, 128U, 129U, 1000U}) {
      std::vector<Packet> packets;
      while (packets.size() < size) packets.push_back(draw.packet(70));
      ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(*engine, programs, packets, true))
          << count << " programs, " << size;
    }
  }
}

TEST_P(DeviceMatchers, MatchAsTheInterpreterByRandomPrograms) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    RandomPrograms draw(seed);
    const auto programs = draw.programs(300, 15 * seed);
    std::vector<Packet> packets;
    while (packets.size() < 20'000) packets.push_back(draw.packet(64));
    ASSERT_NO_FATAL_FAILURE(
        expect_as_interpreted(*matcher(programs, {kUnbounded, seed == 1}), programs, packets, seed == 1));
  }
}

TEST_P(DeviceMatchers, MatchAsTheInterpreterByRandomProgramsThatDifferInConstants) {
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
    RandomPrograms draw(seed);
    const auto programs = draw.programs_of_kinds(1000, 5 * seed);
    std::vector<Packet> packets;
    while (packets.size() < 5000) packets.push_back(draw.packet(40));
    ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(*matcher(programs), programs, packets, false)) << seed;
  }
}

TEST_P(DeviceMatchers, MatchAsTheInterpreterByAThousandFilters) {
  RandomPrograms draw(4);
  std::vector<Packet> packets;
  while (packets.size() < 3000) packets.push_back(testing::random_frame(draw));
  const auto expect = [&](const char* kind, const std::vector<Program>& programs) {
    SCOPED_TRACE(kind);
    ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(*matcher(programs), programs, packets, false));
  };
  expect("ports", testing::port_filters(1024));
  expect("mixed", testing::mixed_filters(1024));
  expect("distinct", testing::distinct_filters(1000));
}

TEST_P(DeviceMatchers, ReadNothingOutsidePacketsOfEverySize) {
  RandomPrograms draw(6);
  const auto programs = draw.programs(64, 40);
  const auto engine = matcher(programs);
  const gpu::Stream stream;
  for (std::uint32_t size = 1; size < 40; ++size) {
    // The packet ends with the allocation, or at most 3 bytes before.
    const std::uint32_t misalignment = size % 4;
    std::vector<std::uint8_t> memory((misalignment + size + 3) / 4 * 4);
    for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(draw.below(5));
    const gpu::DeviceBuffer<std::uint8_t> frames{std::span<const std::uint8_t>(memory)};
    const std::vector<std::uint32_t> record{misalignment, size, size};
    const gpu::DeviceBuffer<std::uint32_t> records{std::span<const std::uint32_t>(record)};
    gpu::DeviceBuffer<std::uint32_t> words(2);
    MatchBatch batch{};
    batch.packets = {frames.data(), reinterpret_cast<const std::uint8_t*>(records.data()), 1, 12, 0, 4, 8, kAllAlive,
                     kUnbounded};
    batch.words = words.data();
    batch.row_words = 2;
    ASSERT_TRUE(engine->match(batch, stream));
    stream.wait();
    const PacketBytes packet{memory.data() + misalignment, size, size};
    ASSERT_EQ(words.to_host(), expected_row(programs, packet, MatchOutput::bitmap)) << size << " bytes";
  }
}

/// Packets as lanes have them: descriptors, frames at any offset, some dropped, some there only in part.
TEST_P(DeviceMatchers, DecidePacketsOfALaneOrReportThemInBatchesOfEverySize) {
  constexpr std::uint32_t kThere = 24;
  constexpr std::uint32_t kUntouched = 0xdeadbeef;
  RandomPrograms draw(7);
  auto programs = draw.programs(20, 30);
  for (Program& filter : testing::port_filters(20)) programs.push_back(std::move(filter));
  // Packets whose third byte is over 1 are decided by a byte that is not there.
  programs.push_back(testing::verified({{kLoadByteAbs, 0, 0, 2},
                                        {kJumpGreaterK, 1, 0, 1},
                                        {kReturnK, 0, 0, 1},
                                        {kLoadByteAbs, 0, 0, 30},
                                        {kReturnA, 0, 0, 0}}));
  const auto engine = matcher(programs, {kThere, false});
  const gpu::Stream stream;
  std::size_t undecided = 0;
  std::size_t decided_although_cut = 0;
  for (const std::uint32_t count : {0U, 1U, 31U, 32U, 33U, 2000U}) {
    std::vector<std::uint8_t> memory(std::size_t{count} * 32 + 64);
    std::vector<PacketDescriptor> descriptors(count + 1);
    std::vector<Packet> packets;
    for (std::uint32_t i = 0; i < count; ++i) {
      packets.push_back(draw.packet(i % 3 == 0 ? kThere : 48));
      PacketDescriptor& descriptor = descriptors[i];
      descriptor.offset = i * 32 + draw.below(4);
      descriptor.length = static_cast<std::uint32_t>(packets.back().size());
      descriptor.wire_length = descriptor.length + 3;
      if (draw.below(8) == 0) descriptor.verdict.kind = VerdictKind::drop;
      std::copy_n(packets.back().begin(), std::min<std::size_t>(kThere, packets.back().size()),
                  memory.begin() + descriptor.offset);
    }
    gpu::DeviceBuffer<std::uint8_t> frames{std::span<const std::uint8_t>(memory)};
    gpu::DeviceBuffer<PacketDescriptor> records{std::span<const PacketDescriptor>(descriptors)};
    const std::vector<std::uint32_t> untouched(3 * count + 3, kUntouched);
    gpu::DeviceBuffer<std::uint32_t> words{std::span<const std::uint32_t>(untouched)};
    const std::vector<std::uint8_t> poison(count + 1, 0xee);
    gpu::DeviceBuffer<std::uint8_t> unknown{std::span<const std::uint8_t>(poison)};
    gpu::DevicePackets lane;
    lane.frames = frames.data();
    lane.packets = records.data();
    lane.count = count;
    ASSERT_TRUE(engine->match({records_of(lane, kThere), words.data(), 3, unknown.data()}, stream));
    stream.wait();
    const auto rows = words.to_host();
    const auto reports = unknown.to_host();
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::span<const std::uint32_t> row = std::span(rows).subspan(std::size_t{3} * i, 3);
      EXPECT_EQ(row[2], kUntouched);
      if (!descriptors[i].verdict.alive()) {
        ASSERT_EQ(row[0], kUntouched);
        continue;
      }
      if (reports[i] != 0) {
        ASSERT_GT(packets[i].size(), kThere);
        ++undecided;
        continue;
      }
      const PacketBytes packet{packets[i].data(), descriptors[i].length, descriptors[i].wire_length};
      ASSERT_TRUE(std::ranges::equal(row.first(2), expected_row(programs, packet, MatchOutput::bitmap))) << i;
      decided_although_cut += packets[i].size() > kThere ? 1 : 0;
    }
  }
  EXPECT_GT(undecided, 50U);
  EXPECT_GT(decided_although_cut, 50U);
}

TEST_P(DeviceMatchers, KeepTheOrderOfPacketsWhereManyBatchesAreInFlight) {
  const auto programs = testing::port_filters(64);
  RandomPrograms draw(9);
  std::vector<Packet> packets;
  while (packets.size() < 5000) packets.push_back(testing::random_frame(draw));
  ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(*matcher(programs), programs, packets, false, {8192, 100, 8}));
  ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(*matcher(programs), programs, packets, false, {512, 4096, 2}));
}

TEST_P(DeviceMatchers, CopyOnlyTheBytesThatProgramsCanLoad) {
  const std::vector<Program> programs{testing::compiled("ip host 10.0.0.1")};
  const auto engine = matcher(programs);
  EXPECT_EQ(engine->reach(), 34U);
  const std::vector<Packet> packets(100, Packet(1500));
  const auto views = views_of(packets);
  HostBatches batches(*engine, MatchOutput::bitmap);
  EXPECT_EQ(batches.submit(views), 100U);
  static_cast<void>(batches.take());
  EXPECT_EQ(batches.bytes_up(), 100U * (36 + 12));
  EXPECT_EQ(batches.bytes_down(), 400U);
}

TEST_P(DeviceMatchers, RefuseMoreProgramsThanFitIntoARow) {
  EXPECT_FALSE(make_device_matcher(GetParam(), testing::port_filters(1025)));
}

}  // namespace
}  // namespace penstock::filter
