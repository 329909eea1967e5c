// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/dump.h"

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {
namespace {

TEST(Dump, ListsAllCodesLikeLibpcap) {
  for (std::uint32_t code = 0; code < 0x200; ++code)
    for (const std::uint32_t k :
         {0u, 1u, 12u, 0x800u, 0x80000000u, 0xffffffffu, 0xfffff000u, 0xfffff030u, 0xfffff040u}) {
      if (code == kLoadXLength) continue;  // libpcap runs it, and lists it as unknown
      const bpf_insn theirs{static_cast<std::uint16_t>(code), 3, 4, k};
      EXPECT_EQ(listing_line({static_cast<std::uint16_t>(code), 3, 4, k}, 7), bpf_image(&theirs, 7)) << code;
    }
}

TEST(Dump, HasTcpdumpsForms) {
  const Instruction program[] = {
      {kLoadHalfAbs, 0, 0, 12}, {kJumpEqualK, 0, 1, 0x800}, {kReturnK, 0, 0, 1}, {kReturnK, 0, 0, 0}};
  EXPECT_EQ(dump(program, DumpForm::listing),
            "(000) ldh      [12]\n(001) jeq      #0x800           jt 2\tjf 3\n(002) ret      #1\n(003) ret      #0\n");
  EXPECT_EQ(dump(program, DumpForm::c),
            "{ 0x28, 0, 0, 0x0000000c },\n{ 0x15, 0, 1, 0x00000800 },\n{ 0x6, 0, 0, 0x00000001 },\n{ 0x6, 0, 0, "
            "0x00000000 },\n");
  EXPECT_EQ(dump(program, DumpForm::decimal), "4\n40 0 0 12\n21 0 1 2048\n6 0 0 1\n6 0 0 0\n");
}

}  // namespace
}  // namespace penstock::filter
