// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Error, SaysWhereWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(to_string(Error{{"rules", 3, 7}, "unknown protocol", "'tpc'", "tcp or udp"}),
            "rules:3:7: unknown protocol: found 'tpc', expected tcp or udp");
  EXPECT_EQ(to_string(Error{{"rules", 3, 0}, "no address", "", "a prefix"}), "rules:3: no address: expected a prefix");
  EXPECT_EQ(to_string(Error{{"rules", 0, 0}, "cannot open", "", ""}), "rules: cannot open");
  EXPECT_EQ(to_string(Error{{}, "no port", "", ""}), "no port");
}

TEST(Error, IsOneLineThatSteersNoTerminal) {
  EXPECT_EQ(to_string(Error{{"ru\x1b[2Jles", 3, 0}, "no\nrule", "\x7f\xc2\x9b", "é"}),
            "ru\\x1b[2Jles:3: no\\x0arule: found \\x7f\\xc2\\x9b, expected é");
}

TEST(Error, LeavesPrintableTextAsItIs) {
  EXPECT_EQ(printable("-A FORWARD -m comment --comment \"é → ok\""), "-A FORWARD -m comment --comment \"é → ok\"");
  EXPECT_EQ(printable("\x1b[31m\xc2"), "\\x1b[31m\xc2");
}

TEST(Error, QuotesControlBytesAndCutsLongText) {
  EXPECT_EQ(in_quotes("a\tb\x80"), "'a\\x09b\\x80'");
  EXPECT_EQ(in_quotes("abcdef", 3), "'abc…'");
}

}  // namespace
}  // namespace penstock
