// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the scan of batches on a device with the matchers on the host, packet by packet.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/filter_recipe.h"
#include "nf/nids/match/flow_state.h"
#include "nf/nids/match/literals_for_test.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/match/scan_range_core.h"

namespace penstock::nids {
namespace {

using testing::Bytes;
using testing::Draw;
using testing::Found;
using testing::literal;

constexpr std::uint32_t kHeaderBytes = 54;

/// Frames one after the other, at any alignment, with literals in the gaps between them.
class Batch {
 public:
  explicit Batch(std::uint64_t seed, std::span<const Literal> literals) : draw_(seed), literals_(literals) {
    fill_gap(1 + draw_.below(40));
  }

  /// Adds a TCP segment with this payload.
  PacketDescriptor& add(const Bytes& payload) {
    fill_gap(draw_.below(20));
    PacketDescriptor& packet = packets_.emplace_back();
    packet.offset = static_cast<std::uint32_t>(frames_.size());
    fill_gap(kHeaderBytes);
    frames_.insert(frames_.end(), payload.begin(), payload.end());
    const std::uint32_t end = kHeaderBytes + static_cast<std::uint32_t>(payload.size());
    const std::uint32_t padding = draw_.one_in(3) ? 1 + draw_.below(9) : 0;
    fill_gap(padding);
    packet.length = packet.wire_length = end + padding;
    packet.layout.network_offset = 14;
    packet.layout.transport_offset = 34;
    packet.layout.payload_offset = kHeaderBytes;
    packet.layout.end = end;
    packet.layout.flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader | PacketLayout::kPorts;
    packet.layout.network = NetworkLayer::ipv4;
    packet.layout.transport = ip_protocol::kTcp;
    return packet;
  }
  PacketDescriptor& last() { return packets_.back(); }
  /// Sets the state of the packet that was added last. Afterwards all packets have one.
  void set_state(const FlowState& state) {
    states_.resize(packets_.size());
    states_.back() = state;
  }
  [[nodiscard]] const std::vector<FlowState>& states() const { return states_; }
  [[nodiscard]] std::size_t size() const { return packets_.size(); }

  [[nodiscard]] std::span<const std::uint8_t> scanned(const PacketDescriptor& packet) const {
    const ScanRange range = scan_range(packet.layout, packet.length);
    return std::span(frames_).subspan(packet.offset + range.begin, range.end - range.begin);
  }

  /// `misaligned`: by how many bytes the start of the frames is off a multiple of 16.
  [[nodiscard]] std::vector<PacketLiterals> scan(gpu::GpuStage& stage, std::size_t misaligned) {
    fill_gap(misaligned == 0 ? 0 : 16);
    // Kernels read whole blocks of 16 bytes, thus some that no packet has.
    std::vector<std::uint8_t> memory(frames_.size() + 32, 0xa5);
    std::ranges::copy(frames_, memory.begin() + static_cast<std::ptrdiff_t>(misaligned));
    gpu::DeviceBuffer<std::uint8_t> frames{std::span<const std::uint8_t>(memory)};
    gpu::DeviceBuffer<PacketDescriptor> packets{std::span<const PacketDescriptor>(packets_)};
    const std::vector<PacketLiterals> poison(packets_.size(), {77, 77, {1, 2, 3, 4, 5, 6, 7}});
    gpu::DeviceBuffer<PacketLiterals> findings{std::span<const PacketLiterals>(poison)};
    gpu::DeviceBuffer<FlowState> states{std::span<const FlowState>(states_)};
    const gpu::Stream stream;
    const gpu::DevicePackets batch{frames.data() + misaligned,
                                   packets.data(),
                                   static_cast<std::uint32_t>(size()),
                                   0,
                                   reinterpret_cast<std::byte*>(findings.data()),
                                   states_.empty() ? nullptr : reinterpret_cast<const std::byte*>(states.data())};
    EXPECT_TRUE(stage.enqueue(batch, stream));
    stream.wait();
    return findings.to_host();
  }

  [[nodiscard]] const std::vector<PacketDescriptor>& packets() const { return packets_; }

 private:
  void fill_gap(std::size_t bytes) {
    Bytes gap = draw_.bytes(bytes);
    if (!literals_.empty()) {
      draw_.plant(literals_[draw_.below(static_cast<std::uint32_t>(literals_.size()))], gap);
      const Literal& at_end = literals_[draw_.below(static_cast<std::uint32_t>(literals_.size()))];
      if (at_end.bytes.size() <= gap.size()) draw_.plant_at(at_end, gap, gap.size() - at_end.bytes.size());
    }
    frames_.insert(frames_.end(), gap.begin(), gap.end());
  }

  Draw draw_;
  std::span<const Literal> literals_;
  Bytes frames_;
  std::vector<PacketDescriptor> packets_;
  std::vector<FlowState> states_;
};

struct Way {
  const char* name;
  ScanEngine engine;
};

class ScanOnDevice : public ::testing::TestWithParam<Way> {
 protected:
  void use(std::vector<Literal> literals) {
    literals_ = std::move(literals);
    const auto tables = build_scan_tables(literals_, GetParam().engine);
    ASSERT_TRUE(tables) << to_string(tables.error());
    on_device_ = std::make_unique<DeviceLiterals>(*tables);
    stage_ = make_scan_stage(*on_device_);
    auto matcher = make_pattern_matcher(MatcherKind::aho_corasick, literals_);
    ASSERT_TRUE(matcher);
    matcher_ = std::move(*matcher);
  }

  [[nodiscard]] Found on_host(std::span<const std::uint8_t> text) {
    LiteralSet found(literals_.size());
    matcher_->scan(text, nullptr, found);
    return {found.list().begin(), found.list().end()};
  }

  void expect_equal(Batch& batch, std::size_t misaligned = 0) {
    const auto findings = batch.scan(*stage_, misaligned);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const PacketDescriptor& packet = batch.packets()[i];
      const PacketLiterals& finding = findings[i];
      if (!packet.verdict.alive()) {
        ASSERT_EQ(finding.flags, 0) << "packet " << i;
        continue;
      }
      const Found expected = on_host(batch.scanned(packet));
      ASSERT_LE(finding.count, PacketLiterals::kMost);
      const Found found(finding.list().begin(), finding.list().end());
      ASSERT_EQ(found.size(), finding.count) << "packet " << i << " has one twice";
      ASSERT_TRUE(std::includes(expected.begin(), expected.end(), found.begin(), found.end())) << "packet " << i;
      ASSERT_EQ(found.size(), std::min<std::size_t>(expected.size(), PacketLiterals::kMost))
          << "packet " << i << " of " << batch.scanned(packet).size() << " bytes";
      ASSERT_EQ(finding.complete(), expected.size() <= PacketLiterals::kMost) << "packet " << i;
      ASSERT_NE(finding.flags & PacketLiterals::kScanned, 0);
      const ScanRange range = scan_range(packet.layout, packet.length);
      ASSERT_EQ((finding.flags & PacketLiterals::kPayload) != 0, range.is_payload) << "packet " << i;
      found_ += found.size();
    }
  }

  std::vector<Literal> literals_;
  std::unique_ptr<DeviceLiterals> on_device_;
  std::unique_ptr<gpu::GpuStage> stage_;
  std::unique_ptr<PatternMatcher> matcher_;
  std::size_t found_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Engines, ScanOnDevice,
                         ::testing::Values(Way{"AhoCorasickInStrips", ScanEngine::aho_corasick_strips},
                                           Way{"AhoCorasick", ScanEngine::aho_corasick_packets},
                                           Way{"HashedFilter", ScanEngine::hashed_filter}),
                         [](const auto& way) { return way.param.name; });

class ScanOfFlowsOnDevice : public ScanOnDevice {};

INSTANTIATE_TEST_SUITE_P(Engines, ScanOfFlowsOnDevice,
                         ::testing::Values(Way{"AhoCorasickInStrips", ScanEngine::aho_corasick_strips},
                                           Way{"HashedFilter", ScanEngine::hashed_filter}),
                         [](const auto& way) { return way.param.name; });

std::vector<Literal> rule_literals(std::uint32_t count, Draw& draw) {
  std::vector<Literal> literals;
  for (std::uint32_t i = 0; i < count; ++i) literals.push_back(draw.rule_literal());
  return cut_literals(literals);
}

TEST_P(ScanOnDevice, FindsWhatTheHostFindsInPayloadsOfEverySizeAndAlignment) {
  Draw draw(1);
  use(rule_literals(150, draw));
  for (const std::size_t misaligned : {0U, 1U, 7U, 15U}) {
    Batch batch(misaligned, literals_);
    for (int round = 0; round < 4; ++round) {
      for (const std::uint32_t size : {0U,  1U,   7U,   8U,   9U,   15U,  16U,  17U,  31U,   32U,   33U,
                                       64U, 127U, 128U, 129U, 255U, 256U, 257U, 500U, 1446U, 1500U, 9000U}) {
        Bytes payload = draw.traffic(size);
        for (std::uint32_t n = draw.below(4); n > 0; --n) draw.plant(literals_[draw.below(150)], payload);
        batch.add(payload);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(batch, misaligned));
  }
  EXPECT_GT(found_, 200U);
}

TEST_P(ScanOnDevice, FindsALiteralAtEveryPlaceAndNoneThatReachesOverThePayload) {
  use({literal("needle"), literal("ab"), literal("\x01"), literal("eight by"), literal("Seven b", true),
       literal("abc")});
  Draw draw(2);
  for (const std::size_t size : {8U, 16U, 31U, 40U, 300U}) {
    Batch batch(size, literals_);
    for (const Literal& each : literals_) {
      for (std::size_t at = 0; at + each.bytes.size() <= size; ++at) {
        Bytes payload(size, std::uint8_t{'.'});
        draw.plant_at(each, payload, at);
        batch.add(payload);
        payload.pop_back();
        batch.add(payload);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(batch));
  }
  EXPECT_GT(found_, 1'000U);
}

TEST(ScanOnDeviceByItsRecipe, FindsWhatTheStageItselfFinds) {
  Draw draw(11);
  const std::vector<Literal> literals = rule_literals(150, draw);
  const auto tables = build_scan_tables(literals, ScanEngine::aho_corasick_packets);
  ASSERT_TRUE(tables) << to_string(tables.error());
  const DeviceLiterals on_device(*tables);
  const auto own = make_scan_stage(on_device);
  const auto recipe = recipe_of(spans_of(std::get<PacketAutomaton>(tables->engine).tables));
  const auto checked = check_recipe(recipe);
  ASSERT_TRUE(checked) << to_string(checked.error());
  const auto loaded = remote_kernel().load(recipe);
  const auto made = loaded->make_stage({});
  Batch batch(11, literals);
  for (int i = 0; i < 3000; ++i) {
    Bytes payload = draw.traffic(draw.below(1461));
    if (draw.one_in(3)) draw.plant(literals[draw.below(150)], payload);
    batch.add(payload);
  }
  const auto expected = batch.scan(*own, 0);
  const auto found = batch.scan(static_cast<gpu::GpuStage&>(*made), 0);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].flags, expected[i].flags) << i;
    EXPECT_TRUE(std::ranges::equal(found[i].list(), expected[i].list())) << i;
  }
}

TEST(ScanOnDeviceByItsRecipe, FindsWhatTheHashedFilterFindsWithAndWithoutStates) {
  for (const bool with_states : {false, true}) {
    Draw draw(12);
    const std::vector<Literal> literals = cut_literals(rule_literals(150, draw));
    const auto tables = build_scan_tables(literals, ScanEngine::hashed_filter);
    ASSERT_TRUE(tables) << to_string(tables.error());
    const DeviceLiterals on_device(*tables);
    const auto own = make_scan_stage(on_device);
    const auto recipe = recipe_of(std::get<HashedFilterTables>(tables->engine).spans(), with_states);
    const auto checked = check_filter_recipe(recipe);
    ASSERT_TRUE(checked) << to_string(checked.error());
    const auto loaded = remote_filter_kernel().load(recipe);
    const auto made = loaded->make_stage({});
    Batch batch(12, literals);
    FlowState state;
    for (int i = 0; i < 3000; ++i) {
      Bytes payload = draw.traffic(draw.below(1461));
      if (draw.one_in(3)) draw.plant(literals[draw.below(150)], payload);
      batch.add(payload);
      if (with_states) batch.set_state(state);
      state.append(payload);
    }
    const auto expected = batch.scan(*own, 0);
    const auto found = batch.scan(static_cast<gpu::GpuStage&>(*made), 0);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].flags, expected[i].flags) << i;
      if (!found[i].complete()) continue;
      EXPECT_EQ(Found(found[i].list().begin(), found[i].list().end()),
                Found(expected[i].list().begin(), expected[i].list().end()))
          << i;
    }
  }
}

// Of another process, which may say anything.
TEST(ScanOnDeviceByItsRecipe, LeavesOutStatesThatNoFlowCanHave) {
  const std::vector<Literal> literals{testing::literal("ab"), testing::literal("abcdefgh")};
  const auto tables = build_scan_tables(literals, ScanEngine::hashed_filter);
  ASSERT_TRUE(tables) << to_string(tables.error());
  const auto recipe = recipe_of(std::get<HashedFilterTables>(tables->engine).spans(), true);
  const auto loaded = remote_filter_kernel().load(recipe);
  const auto made = loaded->make_stage({});
  Batch batch(13, {});
  for (std::uint64_t count = 8; count < 256; ++count) {
    batch.add(testing::bytes_of("bcd"));
    const std::uint64_t word = count << 56 | 0x61'6161'6161'6161;
    FlowState state;
    std::memcpy(static_cast<void*>(&state), &word, sizeof(state));
    batch.set_state(state);
  }
  for (const PacketLiterals& finding : batch.scan(static_cast<gpu::GpuStage&>(*made), 0)) {
    EXPECT_EQ(finding.flags, PacketLiterals::kScanned | PacketLiterals::kPayload);
    EXPECT_EQ(finding.count, 0);
  }
}

// As after a reload whose rules have no literals.
TEST(ScanOnDeviceWithoutLiterals, SaysThatPayloadsWereSearchedAndNothingFound) {
  const auto tables = build_scan_tables({});
  ASSERT_TRUE(tables);
  const DeviceLiterals on_device(*tables);
  const auto stage = make_scan_stage(on_device);
  Draw draw(5);
  Batch batch(5, {});
  FlowState state;
  state.append(draw.bytes(7));
  for (const std::size_t size : {0U, 1U, 7U, 100U, 1400U}) {
    batch.add(draw.bytes(size));
    batch.set_state(state);
  }
  for (const PacketLiterals& finding : batch.scan(*stage, 3)) {
    EXPECT_NE(finding.flags & PacketLiterals::kScanned, 0);
    EXPECT_TRUE(finding.complete());
    EXPECT_EQ(finding.count, 0);
  }
}

TEST_P(ScanOnDevice, SaysWhereThereAreMoreThanItCanName) {
  std::vector<Literal> literals;
  for (char c = 'a'; c <= 'z'; ++c) literals.push_back(literal(std::string(1, c), true));
  use(std::move(literals));
  Draw draw(3);
  Batch batch(3, literals_);
  for (std::uint32_t letters = 0; letters <= 26; ++letters) {
    for (const std::size_t size : {30U, 300U, 1500U}) {
      Bytes payload(size, std::uint8_t{'.'});
      for (std::uint32_t i = 0; i < letters; ++i) payload[i * size / 27] = static_cast<std::uint8_t>('A' + i);
      batch.add(payload);
    }
  }
  for (int i = 0; i < 50; ++i) batch.add(draw.bytes(1500, "abcdefg"));
  ASSERT_NO_FATAL_FAILURE(expect_equal(batch));
}

TEST_P(ScanOnDevice, FindsRunsOfOneByteInPacketsOfThem) {
  std::vector<Literal> literals;
  for (std::size_t length = 1; length <= 8; ++length) literals.push_back(literal(std::string(length, '\0')));
  literals.erase(literals.begin());
  use(std::move(literals));
  Batch batch(4, {});
  for (std::size_t size = 0; size < 40; ++size) batch.add(Bytes(size, std::uint8_t{0}));
  for (int i = 0; i < 100; ++i) batch.add(Bytes(1460, std::uint8_t{0}));
  ASSERT_NO_FATAL_FAILURE(expect_equal(batch));
}

/// Repetitions are not looked up again; what begins or ends a run must be found all the same.
TEST_P(ScanOnDevice, FindsWhatIsInAndAtTheEndsOfWhatRepeatsWithHoweverManyLanes) {
  for (const std::uint32_t count : {1'000U, 1'001U, 1'002U, 1'003U, 24'000U}) {
    Draw draw(count);
    std::vector<Bytes> repeated = {draw.bytes(4), draw.bytes(4, "ab"), draw.bytes(4, "01234567")};
    const auto run = [&](std::size_t length) {
      const Bytes& each = repeated[draw.below(3)];
      const std::uint32_t phase = draw.below(4);
      Bytes bytes(length);
      for (std::size_t i = 0; i < length; ++i) bytes[i] = each[(i + phase) % 4];
      return bytes;
    };
    std::vector<Literal> literals;
    for (int i = 0; i < 16; ++i) {
      literals.push_back({run(draw.one_in(2) ? 8 : 3 + draw.below(6)), false});
      if (draw.one_in(3)) literals.back().bytes[draw.one_in(2) ? 0 : literals.back().bytes.size() - 1] = 'x';
    }
    use(std::move(literals));
    Batch batch(count, literals_);
    for (std::uint32_t i = 0; i < count; ++i) {
      Bytes payload = run(draw.below(100));
      if (!payload.empty() && draw.one_in(2)) payload[draw.below(static_cast<std::uint32_t>(payload.size()))] = 'x';
      batch.add(payload);
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(batch, count % 16));
  }
}

TEST_P(ScanOnDevice, ScansWhatMayBePayloadAndNotWhatIsNotForwarded) {
  Draw draw(5);
  use(rule_literals(100, draw));
  Batch batch(5, literals_);
  for (int i = 0; i < 400; ++i) {
    Bytes payload = draw.traffic(draw.below(300));
    for (std::uint32_t n = draw.below(3); n > 0; --n) draw.plant(literals_[draw.below(100)], payload);
    PacketDescriptor& packet = batch.add(payload);
    switch (draw.below(8)) {
      case 0: packet.verdict = Verdict::punt(); break;
      case 1: packet.layout.transport = ip_protocol::kUdp; break;
      case 2: packet.layout.flags |= PacketLayout::kFragment; break;
      case 3: packet.layout.flags |= PacketLayout::kMalformed; break;
      case 4:
        packet.layout.transport = 47;
        packet.layout.tunnel = Tunnel::gre;
        break;
      case 5: packet.layout.network = NetworkLayer::arp; break;
      default: break;
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_equal(batch));
  EXPECT_GT(found_, 50U);
}

TEST_P(ScanOnDevice, ScansBatchesOfEveryCountAndAFullOne) {
  Draw draw(6);
  use(rule_literals(150, draw));
  for (const std::uint32_t count : {0U, 1U, 2U, 3U, 4U, 5U, 31U, 32U, 33U, 1000U, 20'000U}) {
    Batch batch(count, literals_);
    for (std::uint32_t i = 0; i < count; ++i) {
      Bytes payload = draw.traffic(draw.one_in(2) ? draw.below(60) : draw.below(1461));
      if (draw.one_in(3)) draw.plant(literals_[draw.below(150)], payload);
      batch.add(payload);
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(batch));
  }
}

TEST_P(ScanOnDevice, FindsTheSameWithAnyShareOfTheDevice) {
  Draw draw(9);
  use(rule_literals(150, draw));
  for (const std::uint32_t multiprocessors : {1U, 2U, 7U, 33U, 10'000U}) {
    stage_ = make_scan_stage(*on_device_, multiprocessors);
    for (const std::uint32_t count : {1U, 33U, 2759U, 16'384U}) {
      Batch batch(count, literals_);
      for (std::uint32_t i = 0; i < count; ++i) {
        Bytes payload = draw.traffic(draw.below(400));
        if (draw.one_in(3)) draw.plant(literals_[draw.below(150)], payload);
        batch.add(payload);
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(batch, count % 16)) << multiprocessors << " multiprocessors";
    }
  }
  EXPECT_GT(found_, 1'000U);
}

// As a reload makes them, while batches still cross the stages from before.
TEST_P(ScanOnDevice, ScansOnWhenStagesForFewerLiteralsWereMade) {
  Draw draw(10);
  use(rule_literals(150, draw));
  const std::vector<Literal> few = {literal("needle")};
  const auto tables = build_scan_tables(few, GetParam().engine);
  ASSERT_TRUE(tables) << to_string(tables.error());
  const DeviceLiterals on_device(*tables);
  const auto later = make_scan_stage(on_device);
  Batch batch(10, literals_);
  for (int i = 0; i < 400; ++i) {
    Bytes payload = draw.traffic(draw.below(400));
    draw.plant(literals_[draw.below(150)], payload);
    batch.add(payload);
  }
  ASSERT_NO_FATAL_FAILURE(expect_equal(batch));
  EXPECT_GT(found_, 100U);
}

//   stream     ┄┄┄┄┄┄ n e e | d | l e ┄┄┄┄┄     in segments of 0 to 59 bytes, with the bytes before as state
TEST_P(ScanOfFlowsOnDevice, FindsWhatBeginsInTheStateOfTheFlow) {
  for (const std::uint32_t count : {1U, 33U, 2'000U}) {
    Draw draw(count);
    use(rule_literals(60, draw));
    Bytes stream = draw.traffic(std::size_t{count} * 60);
    for (std::uint32_t i = 0; i < count * 4; ++i) draw.plant(literals_[draw.below(60)], stream);
    Batch batch(count, literals_);
    std::vector<Found> expected;
    FlowState state;
    std::size_t at = 0;
    std::size_t across = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto payload = std::span(stream).subspan(at, draw.below(60));
      at += payload.size();
      PacketDescriptor& packet = batch.add({payload.begin(), payload.end()});
      if (draw.one_in(10)) packet.verdict = Verdict::punt();
      if (draw.one_in(10)) state = {};
      batch.set_state(state);
      expected.push_back(on_host(payload));
      // Literals that end in the payload and begin in the state.
      const std::uint64_t bytes = state.bytes();
      Bytes text(reinterpret_cast<const std::uint8_t*>(&bytes),
                 reinterpret_cast<const std::uint8_t*>(&bytes) + state.count());
      text.insert(text.end(), payload.begin(), payload.begin() + std::min<std::ptrdiff_t>(7, std::ssize(payload)));
      for (std::uint32_t literal = 0; literal < literals_.size(); ++literal) {
        const std::size_t size = literals_[literal].bytes.size();
        for (std::size_t begin = 0; begin < state.count() && begin + size <= text.size(); ++begin) {
          if (begin + size <= state.count()) continue;
          if (!testing::occurs(literals_[literal], std::span(text).subspan(begin, size))) continue;
          across += expected.back().insert(literal).second ? 1 : 0;
        }
      }
      state.append(payload);
    }
    const auto findings = batch.scan(*stage_, 5);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const PacketLiterals& finding = findings[i];
      if (!batch.packets()[i].verdict.alive()) {
        ASSERT_EQ(finding.flags, 0) << "packet " << i;
        continue;
      }
      const bool has_state = batch.states()[i].count() > 0 && !batch.scanned(batch.packets()[i]).empty();
      ASSERT_EQ((finding.flags & PacketLiterals::kWithState) != 0, has_state) << "packet " << i;
      ASSERT_EQ(finding.complete(), expected[i].size() <= PacketLiterals::kMost) << "packet " << i;
      if (!finding.complete()) continue;
      ASSERT_EQ(Found(finding.list().begin(), finding.list().end()), expected[i]) << "packet " << i;
    }
    if (count == 2'000) {
      EXPECT_GT(across, 100U);
    }
  }
}

/// In 2,000 payloads with some of them.
void expect_found_as_on_the_host(std::span<const Literal> literals, ScanEngine engine) {
  const auto tables = build_scan_tables(literals, engine);
  ASSERT_TRUE(tables);
  const DeviceLiterals on_device(*tables);
  const auto stage = make_scan_stage(on_device);
  const auto matcher = make_pattern_matcher(MatcherKind::hashed_filter, literals);
  ASSERT_TRUE(matcher);
  Draw draw(7);
  Batch batch(8, literals);
  for (int i = 0; i < 2'000; ++i) {
    Bytes payload = draw.traffic(draw.below(1461));
    for (std::uint32_t n = draw.below(5); n > 0; --n)
      draw.plant(literals[draw.below(static_cast<std::uint32_t>(literals.size()))], payload);
    batch.add(payload);
  }
  const auto findings = batch.scan(*stage, 3);
  std::size_t planted = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    LiteralSet found(literals.size());
    (*matcher)->scan(batch.scanned(batch.packets()[i]), nullptr, found);
    ASSERT_EQ(findings[i].complete(), found.list().size() <= PacketLiterals::kMost);
    if (!findings[i].complete()) continue;
    ASSERT_EQ(Found(findings[i].list().begin(), findings[i].list().end()),
              Found(found.list().begin(), found.list().end()));
    planted += found.list().size();
  }
  EXPECT_GT(planted, 1'000U);
}

TEST(HashedFilterOnDevice, FindsThirtyThousandLiteralsOfAnyLength) {
  Draw draw(7);
  std::vector<Literal> literals;
  for (int i = 0; i < 30'000; ++i) literals.push_back(draw.rule_literal());
  ASSERT_NO_FATAL_FAILURE(expect_found_as_on_the_host(cut_literals(literals), ScanEngine::hashed_filter));
  ASSERT_NO_FATAL_FAILURE(expect_found_as_on_the_host(literals, ScanEngine::hashed_filter));
}

// The second set has more states than 16 bits tell apart.
TEST(AhoCorasickOnDevice, FindsLiteralsOfUpTo255Bytes) {
  for (const int count : {147, 2'000}) {
    Draw draw(11);
    std::vector<Literal> literals;
    for (int i = 0; i < count; ++i) literals.push_back({draw.bytes(1 + draw.below(255)), draw.one_in(3)});
    ASSERT_NO_FATAL_FAILURE(expect_found_as_on_the_host(literals, ScanEngine::aho_corasick_packets)) << count;
  }
}

}  // namespace
}  // namespace penstock::nids
