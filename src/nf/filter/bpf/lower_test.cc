// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/lower.h"

#include <gtest/gtest.h>

#include "nf/filter/bpf/ancillary.h"
#include "nf/filter/bpf/interpreter_core.h"

namespace penstock::filter {
namespace {

std::string refusal(std::uint32_t offset, int link_type = 1) {
  const auto program = Program::verify({{kLoadHalfAbs, 0, 0, offset}, {kReturnA, 0, 0, 0}}, {}, false, link_type);
  return program ? "accepted" : to_string(program.error());
}

std::uint32_t value_of(std::uint32_t offset, const std::vector<std::uint8_t>& frame, int link_type = 1) {
  const auto program = Program::verify({{kLoadHalfAbs, 0, 0, offset}, {kReturnA, 0, 0, 0}}, {}, false, link_type);
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return 0;
  }
  const auto length = static_cast<std::uint32_t>(frame.size());
  return interpret(program->instructions().data(), {frame.data(), length, length});
}

std::vector<std::uint8_t> ethernet(std::uint8_t high, std::uint8_t low, std::uint8_t next = 0) {
  std::vector<std::uint8_t> frame(64);
  frame[12] = high;
  frame[13] = low;
  frame[14] = frame[15] = next;
  return frame;
}

TEST(LinuxExtensions, ProtocolIsTheEtherType) {
  EXPECT_EQ(value_of(kAncillaryProtocol, ethernet(0x08, 0x00)), 0x0800u);
  EXPECT_EQ(value_of(kAncillaryProtocol, ethernet(0x81, 0x00)), 0x8100u);
  EXPECT_EQ(value_of(kAncillaryProtocol, ethernet(0x06, 0x00)), 0x0600u);
}

TEST(LinuxExtensions, ProtocolOfALengthIsLlcOrRaw) {
  EXPECT_EQ(value_of(kAncillaryProtocol, ethernet(0x05, 0xff, 0xaa)), 4u);
  EXPECT_EQ(value_of(kAncillaryProtocol, ethernet(0x05, 0xff, 0xff)), 1u);
}

TEST(LinuxExtensions, ProtocolDependsOnTheLinkType) {
  EXPECT_EQ(value_of(kAncillaryProtocol, {0x45, 0}, 12), 0x0800u);
  EXPECT_EQ(value_of(kAncillaryProtocol, {0x60, 0}, 101), 0x86ddu);
  EXPECT_EQ(value_of(kAncillaryProtocol, {0x10, 0}, 12), 0u);
  EXPECT_EQ(value_of(kAncillaryProtocol, {0x10}, 228), 0x0800u);
  EXPECT_EQ(value_of(kAncillaryProtocol, {0x10}, 229), 0x86ddu);
  EXPECT_EQ(value_of(kAncillaryProtocol, std::vector<std::uint8_t>(16, 7), 276), 0x0707u);
  EXPECT_EQ(
      refusal(kAncillaryProtocol, 105),
      "instruction 0 (ldh [0xfffff000]): 'protocol' is not defined for this link type: found link type 105, expected "
      "Ethernet, raw IP or Linux cooked capture");
}

TEST(LinuxExtensions, NoVlanTagIsOutsideTheFrame) {
  const auto frame = ethernet(0x81, 0x00, 5);
  for (const std::uint32_t offset : {kAncillaryVlanTci, kAncillaryVlanPresent, kAncillaryVlanTpid})
    EXPECT_EQ(value_of(offset, frame), 0u);
}

TEST(LinuxExtensions, OffsetsOfTheLinkLayerAreThoseOfTheFrame) {
  EXPECT_EQ(value_of(kLinkHeader + 12, ethernet(0x12, 0x34)), 0x1234u);
  EXPECT_EQ(value_of(kLinkHeader + 63, ethernet(0x12, 0x34)), 0u);
}

TEST(LinuxExtensions, RefuseWhatOnlyAKernelKnows) {
  for (std::uint32_t offset = kAncillary; offset < kAncillary + 64; offset += 4) {
    const bool known = offset == kAncillaryProtocol || offset == kAncillaryVlanTci || offset == kAncillaryVlanPresent ||
                       offset == kAncillaryVlanTpid;
    EXPECT_EQ(refusal(offset) == "accepted", known) << ancillary_name(offset);
    EXPECT_EQ(refusal(offset).find("'" + std::string(ancillary_name(offset)) + "'") != std::string::npos, !known);
  }
  EXPECT_EQ(refusal(kAncillary + 64), "accepted") << "a load outside of the packet, as in libpcap";
  EXPECT_EQ(refusal(kAncillary + 1), "accepted");
  EXPECT_EQ(refusal(0xffffffff), "accepted");
}

TEST(LinuxExtensions, EndProgramsThatLoadWhatHasNoName) {
  const std::vector<std::uint8_t> frame(100, 1);
  for (const std::uint32_t offset : {kAncillary + 1, kAncillary + 64, 0xfffffffeU, 0xffffffffU}) {
    for (const std::uint16_t load : {kLoadWordAbs, kLoadHalfAbs, kLoadByteAbs}) {
      const auto program = Program::verify({{load, 0, 0, offset}, {kReturnK, 0, 0, 1}}, {});
      ASSERT_TRUE(program);
      EXPECT_EQ(interpret(program->instructions().data(), {frame.data(), 100, 100}), 0U) << offset;
    }
  }
}

TEST(LinuxExtensions, RefuseOffsetsOfTheNetworkLayer) {
  EXPECT_EQ(refusal(kNetworkHeader),
            "instruction 0 (ldh [-1048576]): the offset is relative to the network header, which is known only to the "
            "kernel: found offset 0xfff00000, expected an offset from the start of the frame");
  EXPECT_EQ(refusal(kLinkHeader - 1), "accepted");  // outside any packet
}

TEST(Lower, KeepsTheSource) {
  const std::vector<Instruction> source = {{kLoadHalfAbs, 0, 0, kAncillaryProtocol}, {kReturnA, 0, 0, 0}};
  const auto program = Program::verify(source, {});
  ASSERT_TRUE(program);
  EXPECT_TRUE(std::equal(source.begin(), source.end(), program->source().begin(), program->source().end()));
  EXPECT_GT(program->instructions().size(), source.size());
}

TEST(Lower, RefusesLoopsThatAreTooLong) {
  // Eight copies of 2,000 instructions.
  std::vector<Instruction> loop(2000, {kAddK, 0, 0, 1});
  loop.push_back({kJumpGreaterK, 1, 0, 5000});
  loop.push_back({kJump, 0, 0, 0u - 2002});
  loop.push_back({kReturnA, 0, 0, 0});
  const auto program = Program::verify(loop, {"p", 0, 0});
  ASSERT_FALSE(program);
  EXPECT_EQ(
      to_string(program.error()),
      "p: the BPF program is too long once its loops are unrolled: found 2003 instructions, expected at most 8192 "
      "with 8 rounds of the loops");
}

TEST(Lower, CountsARoundForEachJumpBackwards) {
  // A = 1 + the number of rounds.
  const auto counting_to = [](std::uint32_t most) {
    const auto program = Program::verify(
        {{kAddK, 0, 0, 1}, {kJumpGreaterEqualK, 1, 0, most}, {kJump, 0, 0, 0u - 3}, {kReturnA, 0, 0, 0}}, {});
    return program ? interpret(program->instructions().data(), {}) : 0;
  };
  EXPECT_EQ(counting_to(1), 1u);
  EXPECT_EQ(counting_to(2), 2u);
  EXPECT_EQ(counting_to(kMostRounds + 1), kMostRounds + 1);
  EXPECT_EQ(counting_to(kMostRounds + 2), 0u);
}

}  // namespace
}  // namespace penstock::filter
