// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares generated code, compiled for the host, with the interpreter. Packets end where memory cannot be read.

#include "nf/filter/code/generate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/code/host_code_for_test.h"
#include "nf/filter/code/random_programs_for_test.h"

namespace penstock::filter {
namespace {

using testing::compiled;
using testing::GuardedPacket;
using testing::HostCode;
using testing::RandomPrograms;
using testing::verified;

using Packet = std::vector<std::uint8_t>;

/// How often programs matched and did not, so that tests show that both happen.
struct Seen {
  std::size_t matches = 0;
  std::size_t others = 0;
};

/// Compares bitmaps and, if the code has them, return values.
void expect_as_interpreted(const HostCode& code, std::span<const Program> programs, const Packet& packet,
                           std::uint32_t wire_length, Seen& seen) {
  const PacketBytes whole{packet.data(), static_cast<std::uint32_t>(packet.size()), wire_length};
  std::vector<std::uint32_t> expected(words_for(programs.size()));
  std::vector<std::uint32_t> returns;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    returns.push_back(interpret(programs[i].instructions().data(), whole));
    if (returns.back() != 0) expected[i / 32] |= 1U << (i % 32);
    (returns.back() != 0 ? seen.matches : seen.others) += 1;
  }
  GuardedPacket guarded;
  for (const std::uint32_t misalignment : {0U, 1U, 2U, 3U}) {
    PacketBytes there = whole;
    there.data = guarded.put(packet, misalignment, packet.size());
    ASSERT_EQ(code.match(there, there.length), expected) << packet.size() << " bytes, misaligned by " << misalignment;
    if (code.code().text.find("penstock_returns") != std::string::npos) {
      ASSERT_EQ(code.returns(there, there.length), returns) << packet.size() << " bytes";
    }
  }
}

TEST(GeneratedCode, MatchesAndReturnsAsTheInterpreterByRandomPrograms) {
  for (const std::uint32_t length : {12U, 60U}) {
    RandomPrograms draw(length);
    const auto programs = draw.programs(200, length);
    const HostCode code(programs, {kUnbounded, true});
    Seen seen;
    for (int i = 0; i < 300; ++i) {
      const Packet packet = draw.packet(64);
      const auto wire_length = static_cast<std::uint32_t>(packet.size()) + draw.below(5);
      ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(code, programs, packet, wire_length, seen));
    }
    EXPECT_GT(seen.matches, 1000U);
    EXPECT_GT(seen.others, 1000U);
    EXPECT_GT(code.code().straight, 100U);
  }
}

TEST(GeneratedCode, HasABitForEachProgramInSetsOfEverySize) {
  for (const std::size_t size : {1U, 2U, 31U, 32U, 33U, 64U, 65U, 1024U}) {
    for (const bool mixed : {false, true}) {
      const auto programs = mixed ? testing::mixed_filters(size) : testing::port_filters(size);
      const HostCode code(programs, {});
      EXPECT_EQ(code.code().direct, 0U) << size;
      if (!mixed && size >= 31) {
        EXPECT_EQ(code.code().loops, 1U) << size;
        EXPECT_EQ(code.code().looped, size);
      }
      RandomPrograms draw(3);
      Seen seen;
      for (int i = 0; i < 200; ++i) {
        const Packet packet = testing::random_frame(draw);
        const auto wire_length = static_cast<std::uint32_t>(packet.size());
        ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(code, programs, packet, wire_length, seen)) << size;
      }
      EXPECT_TRUE(size < 31 || seen.matches > 10) << size << " programs, " << seen.matches << " matches";
    }
  }
}

TEST(GeneratedCode, WritesTheBitmapInPartsOfManyFiltersThatShareNoCode) {
  auto programs = testing::distinct_filters(600);
  EXPECT_GT(generate(programs).parts, 1U);
  const auto ports = testing::port_filters(64);
  programs.insert(programs.begin() + 32, ports.begin(), ports.end());
  const HostCode code(programs, {});
  EXPECT_GE(code.code().straight, 550U);
  RandomPrograms draw(2);
  Seen seen;
  for (int i = 0; i < 200; ++i) {
    const Packet packet = testing::random_frame(draw);
    ASSERT_NO_FATAL_FAILURE(
        expect_as_interpreted(code, programs, packet, static_cast<std::uint32_t>(packet.size()), seen));
  }
  EXPECT_GT(seen.matches, 50U);
}

TEST(GeneratedCode, KeepsTheOrderOfProgramsOfGroupsThatInterleave) {
  std::vector<Program> programs;
  const auto ports = testing::port_filters(600);
  RandomPrograms draw(8);
  for (std::uint32_t i = 0; i < 600; ++i) {
    const std::string n = std::to_string(i % 256);
    if (i % 7 == 0) programs.push_back(compiled("udp src port " + n));
    if (i % 64 == 3) programs.push_back(draw.program(20));
    if (i % 5 == 0) programs.push_back(compiled("src host 10.0.0." + n + " and dst port " + n));
    programs.push_back(ports[i]);
  }
  const HostCode code(programs, {});
  EXPECT_EQ(code.code().loops, 3U);
  Seen seen;
  for (int i = 0; i < 300; ++i) {
    const Packet packet = testing::random_frame(draw);
    ASSERT_NO_FATAL_FAILURE(
        expect_as_interpreted(code, programs, packet, static_cast<std::uint32_t>(packet.size()), seen));
  }
  EXPECT_GT(seen.matches, 300U);
}

TEST(GeneratedCode, MatchesAsTheInterpreterByRandomProgramsThatDifferInConstants) {
  std::size_t looped = 0;
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
    RandomPrograms draw(seed);
    const auto programs = draw.programs_of_kinds(600, 5 * seed);
    const HostCode code(programs, {});
    looped += code.code().looped;
    Seen seen;
    for (int i = 0; i < 200; ++i) {
      const Packet packet = draw.packet(40);
      const auto wire_length = static_cast<std::uint32_t>(packet.size()) + draw.below(5);
      ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(code, programs, packet, wire_length, seen)) << seed;
    }
    EXPECT_GT(seen.matches, 1000U);
    EXPECT_GT(seen.others, 1000U);
  }
  EXPECT_GT(looped, 500U);
}

/// ptxas 13.0 passes arguments that are the same for all threads in registers that a warp has only once, and reuses
/// them where only some of its threads run. The others then find a wrong number.
TEST(GeneratedCode, GivesFunctionsNothingThatIsTheSameForAllPackets) {
  RandomPrograms draw(6);
  auto programs = draw.programs_of_kinds(300, 6);
  for (Program& program : testing::distinct_filters(300)) programs.push_back(std::move(program));
  const std::string text = generate(programs, {24, true}).text;
  std::size_t functions = 0;
  const std::string begin = "PENSTOCK_FUNCTION ";
  for (std::size_t at = text.find("\n" + begin); at != std::string::npos; at = text.find("\n" + begin, at + 1)) {
    const std::size_t open = text.find('(', at);
    const std::string arguments = text.substr(open, text.find('{', open) - open - 1);
    EXPECT_TRUE(arguments == "(const PacketWindow packet)" ||
                arguments == "(const PacketWindow packet, u32* const words)" ||
                arguments == "(const PacketWindow packet, bool& undecided)")
        << arguments;
    ++functions;
  }
  EXPECT_GT(functions, 20U);
}

TEST(GeneratedCode, TakesTheLongestPrograms) {
  std::vector<Program> programs;
  // Comparisons in a row; then a program whose registers have ever more possible values, which has no small graph.
  std::vector<Instruction> chain{{kLoadWordAbs, 0, 0, 4}};
  while (chain.size() < kMostInstructions - 2)
    chain.push_back({kJumpGreaterK, 0, 1, static_cast<std::uint32_t>(chain.size())});
  chain.push_back({kReturnK, 0, 0, 0});
  chain.push_back({kReturnK, 0, 0, 1});
  programs.push_back(verified(chain));
  std::vector<Instruction> wide;
  for (std::uint32_t i = 0; i < 30; ++i) {
    wide.insert(wide.end(), {{kLoadByteAbs, 0, 0, i},
                             {kJumpGreaterK, 0, 2, 2},
                             {kStore, 0, 0, i % 16},
                             {kLoadScratch, 0, 0, (i * 7) % 16},
                             {kAddX, 0, 0, 0},
                             {kCopyAToX, 0, 0, 0}});
  }
  wide.push_back({kCopyXToA, 0, 0, 0});
  wide.push_back({kAndK, 0, 0, 7});
  wide.push_back({kReturnA, 0, 0, 0});
  programs.push_back(verified(wide));
  const HostCode code(programs, {kUnbounded, true});
  EXPECT_EQ(code.code().direct, 1U);
  RandomPrograms draw(5);
  Seen seen;
  for (int i = 0; i < 500; ++i) {
    Packet packet = draw.packet(40);
    if (packet.size() > 7 && draw.below(2) == 0) packet[4] = packet[5] = 0;
    ASSERT_NO_FATAL_FAILURE(expect_as_interpreted(code, programs, packet, 100, seen));
  }
  EXPECT_GT(seen.matches, 50U);
  EXPECT_GT(seen.others, 50U);
}

TEST(GeneratedCode, SharesLoadsAndTestsOfPrograms) {
  const std::string text = generate(testing::mixed_filters(16)).text;
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("word_at(packet, 0xcu)"), 1U);
  EXPECT_EQ(count("== 0x800u;"), 2U);  // the type of the packet, and the type after a VLAN tag
  EXPECT_EQ(count("packet.available >= 0xeu"), 1U);
}

TEST(GeneratedCode, StaysSmallForManyFiltersThatDifferInConstants) {
  const std::size_t one = generate(testing::port_filters(8)).text.size();
  EXPECT_LT(generate(testing::port_filters(1024)).text.size(), one + std::size_t{16} * 1024);
}

/// Whether the program's result can depend on bytes after the first `available`: tries several contents.
TEST(GeneratedCode, ReportsPacketsForWhichMissingBytesDecide) {
  constexpr std::uint32_t kThere = 24;
  RandomPrograms draw(77);
  std::size_t undecided = 0;
  std::size_t decided_although_cut = 0;
  for (int set = 0; set < 6; ++set) {
    const auto programs = draw.programs(10, 24);
    const HostCode code(programs, {kThere, false});
    for (int i = 0; i < 300; ++i) {
      Packet packet = draw.packet(48);
      const PacketBytes whole{packet.data(), static_cast<std::uint32_t>(packet.size()), 60};
      GuardedPacket guarded;
      PacketBytes there = whole;
      there.data = guarded.put(packet, draw.below(4), kThere);
      if (code.is_undecided(there, kThere)) {
        ASSERT_GT(packet.size(), kThere);
        ++undecided;
        continue;
      }
      const auto words = code.match(there, kThere);
      decided_although_cut += packet.size() > kThere ? 1 : 0;
      for (std::size_t p = 0; p < programs.size(); ++p) {
        const bool matches = interpret(programs[p].instructions().data(), whole) != 0;
        ASSERT_EQ((words[p / 32] >> p % 32 & 1U) != 0, matches) << "program " << p;
      }
    }
  }
  EXPECT_GT(undecided, 100U);
  EXPECT_GT(decided_although_cut, 100U);
}

TEST(GeneratedCode, DecidesPortFiltersByTheFirst96Bytes) {
  EXPECT_FALSE(generate(testing::port_filters(100), {96, false}).may_be_undecided);
  EXPECT_TRUE(generate(testing::port_filters(1), {76, false}).may_be_undecided);
  EXPECT_TRUE(generate(std::vector<Program>{compiled("ether[96] = 1")}, {96, false}).may_be_undecided);
}

}  // namespace
}  // namespace penstock::filter
