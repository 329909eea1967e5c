// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/read_program.h"

#include <gtest/gtest.h>

#include "nf/filter/bpf/dump.h"

namespace penstock::filter {
namespace {

std::string reading(std::string_view text) {
  const auto program = read_program(text, "p");
  return program ? dump(program->instructions(), DumpForm::decimal) : to_string(program.error());
}

TEST(ReadProgram, ReadsWhatTcpdumpPrints) {
  const std::string text = "4\n40 0 0 12\n21 0 1 34915\n6 0 0 262144\n6 0 0 0\n";
  EXPECT_EQ(reading(text), text);
}

TEST(ReadProgram, NamesTheLineOfAMistake) {
  EXPECT_EQ(reading("ip"),
            "p:1: not a BPF program: found 'ip', expected the number of instructions, as tcpdump -ddd prints it");
  EXPECT_EQ(reading("1\n6 0 0\n"), "p:2: not an instruction: found 3 numbers, expected 4: code jt jf k");
  EXPECT_EQ(reading("1\n6 0 256 0\n"), "p:2:5: bad jf of an instruction: found '256', expected a number up to 255");
  EXPECT_EQ(reading("2\n6 0 0 0\n"),
            "p: the BPF program is truncated: found 1 instructions, expected 2, as the first line says");
  EXPECT_EQ(reading("1\n6 0 0 0\n6 0 0 0\n"),
            "p:3: more instructions than the first line says: found '6 0 0 0', expected 1 instructions");
  EXPECT_EQ(reading("2\n0 0 0 0\n255 0 0 0\n"),
            "p:3: instruction 1 (unimp 0xff): unknown instruction: found code 0xff, expected a code of the classic BPF "
            "machine");
}

TEST(CompileExpression, CompilesLikeTcpdump) {
  const auto program = compile_expression("ip", {}, {});
  ASSERT_TRUE(program);
  EXPECT_EQ(
      dump(program->instructions(), DumpForm::listing),
      "(000) ldh      [12]\n(001) jeq      #0x800           jt 2\tjf 3\n(002) ret      #262144\n(003) ret      #0\n");
}

TEST(CompileExpression, MatchesAllPacketsIfEmpty) {
  const auto program = compile_expression("", {}, {});
  ASSERT_TRUE(program);
  EXPECT_EQ(dump(program->instructions(), DumpForm::c), "{ 0x6, 0, 0, 0x00040000 },\n");
}

TEST(CompileExpression, GivesLibpcapsReason) {
  const auto program = compile_expression("port 70000", {}, {"chain.yaml", 3, 5});
  ASSERT_FALSE(program);
  EXPECT_EQ(
      to_string(program.error()),
      "chain.yaml:3:5: cannot compile the filter expression: illegal port number 70000 > 65535: found 'port 70000'");
}

}  // namespace
}  // namespace penstock::filter
