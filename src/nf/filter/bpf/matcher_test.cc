// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/matcher.h"

#include <gtest/gtest.h>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {
namespace {

constexpr std::uint8_t kPacket[] = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(Matcher, HasEnginesThatAgree) {
  const auto program = Program::verify({{kLoadWordAbs, 0, 0, 4}, {kReturnA, 0, 0, 0}}, {});
  const auto other = Program::verify({{kLoadLength, 0, 0, 0}, {kReturnA, 0, 0, 0}}, {});
  ASSERT_TRUE(program && other);
  for (const char* name : {"interpreter", "libpcap", "jit"}) {
    const auto matcher = make_matcher(engine_of(name), {*program, *other});
#ifndef PENSTOCK_HAS_JIT
    EXPECT_EQ(has_engine(engine_of(name)), engine_of(name) != Engine::jit);
    if (engine_of(name) == Engine::jit) {
      ASSERT_FALSE(matcher);
      EXPECT_EQ(to_string(matcher.error()),
                "this build has no JIT for BPF programs: it needs AsmJit and x86-64: found engine 'jit', expected "
                "interpreter or libpcap");
      continue;
    }
#endif
    EXPECT_TRUE(has_engine(engine_of(name)));
    ASSERT_TRUE(matcher) << to_string(matcher.error());
    EXPECT_EQ((*matcher)->name(), name);
    EXPECT_EQ((*matcher)->programs(), 2u);
    const PacketBytes packets[] = {{kPacket, 8, 9}, {kPacket, 7, 9}};
    std::uint32_t returns[2] = {9, 9};
    (*matcher)->run(0, packets, returns);
    EXPECT_EQ(returns[0], 0x04050607u) << name;
    EXPECT_EQ(returns[1], 0u) << name;
    (*matcher)->run(1, packets, returns);
    EXPECT_EQ(returns[1], 9u) << name;
  }
}

}  // namespace
}  // namespace penstock::filter
