// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error_list.h"

namespace penstock {
namespace {

TEST(Error, SaysWhereWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(to_string(Error{{"rules", 3, 7}, "unknown protocol", "'tpc'", "tcp or udp"}),
            "rules:3:7: unknown protocol: found 'tpc', expected tcp or udp");
  EXPECT_EQ(to_string(Error{{"rules", 3, 0}, "no address", "", "a prefix"}), "rules:3: no address: expected a prefix");
  EXPECT_EQ(to_string(Error{{"rules", 0, 0}, "cannot open", "", ""}), "rules: cannot open");
  EXPECT_EQ(to_string(Error{{}, "no port", "", ""}), "no port");
}

TEST(Error, IsOneLineWithoutControlBytes) {
  EXPECT_EQ(to_string(Error{{"ru\x1b[2Jles", 3, 0}, "no\nrule", "\x7f\xc2\x9b", "é"}),
            "ru\\x1b[2Jles:3: no\\x0arule: found \\x7f\\xc2\\x9b, expected é");
}

TEST(Error, LeavesPrintableTextAsItIs) {
  EXPECT_EQ(printable("-A FORWARD -m comment --comment \"é → ok\""), "-A FORWARD -m comment --comment \"é → ok\"");
}

TEST(Error, EscapesControlBytesAndInvalidUtf8) {
  EXPECT_EQ(printable("\x1b[31m\xc2"), "\\x1b[31m\\xc2");
  EXPECT_EQ(printable("\xff"
                      "a\x80\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82"),
            "\\xffa\\x80\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xe2\\x82");
  EXPECT_EQ(printable("é€😀"), "é€😀");
}

TEST(Error, EscapesInvisibleCharacters) {
  EXPECT_EQ(printable("\xef\xbb\xbflan"), "\\xef\\xbb\\xbflan") << "a byte order mark";
  EXPECT_EQ(printable("a\xe2\x80\x8b\xe2\x80\xae\xe2\x81\xa6z"), "a\\xe2\\x80\\x8b\\xe2\\x80\\xae\\xe2\\x81\\xa6z");
  EXPECT_EQ(printable("„a“ – b…"), "„a“ – b…");
}

TEST(Error, NamesTheSystemsReasonAndQuotesAnEmptyPath) {
  EXPECT_EQ(to_string(system_error("a.txt", "cannot open", "Permission denied")),
            "a.txt: cannot open: Permission denied");
  EXPECT_EQ(to_string(system_error("", "cannot open", "No such file or directory")),
            "'': cannot open: No such file or directory");
}

TEST(Error, CountsThoseOfALongListThatAreNotShown) {
  ErrorList list(2);
  for (int i = 0; i < 5; ++i) list.add(Error{{"rules", 1, 0}, "wrong", "", ""});
  const Errors errors = std::move(list).take({"rules", 7, 1});
  EXPECT_EQ(to_string(errors), "rules:1: wrong\nrules:1: wrong\nrules: … and 3 more");
  EXPECT_EQ(count_of(errors), 5U);
}

TEST(Error, AreSortedByLinesWithinTheirFiles) {
  const auto at = [](const char* file, std::uint32_t line, std::uint32_t column) {
    return Error{{file, line, column}, "x", "", ""};
  };
  EXPECT_EQ(to_string(in_file_order({at("b", 0, 0), at("b", 7, 1), at("a", 9, 2), at("b", 3, 4), at("a", 9, 1)})),
            "b:3:4: x\nb:7:1: x\nb: x\na:9:1: x\na:9:2: x");
}

TEST(Error, EscapesControlBytesAndTruncatesLongText) {
  EXPECT_EQ(in_quotes("a\tb\x80"), "'a\\x09b\\x80'");
  EXPECT_EQ(in_quotes("abcdef", 3), "'abc…'");
}

TEST(Error, QuotesOtherAlphabetsUnchangedAndCutsNoCharacterInTwo) {
  EXPECT_EQ(in_quotes("enc cbc(aes) 0x2b64d95a1f3ce8074d9b5510c7fa63e8"), "'enc cbc(aes) 0x(hidden, may be a key)'");
  EXPECT_EQ(in_quotes("auth 0x2b64d95a1f3ce8074d9b5510c7fa63e8" + std::string(90, '0') + " 96", 10), "'auth 0x(hi…'");
  EXPECT_EQ(in_quotes(std::string(8, 'a') + "0x2b64d95a1f3ce8074d9b5510c7fa63e82b64d95a1f3ce8074d9b5510c7fa63e8", 10),
            "'aaaaaaaa0x…'");
  EXPECT_EQ(in_quotes("0x0123456789abcdef 0x"), "'0x0123456789abcdef 0x'") << "a number of 64 bits";
  EXPECT_EQ(in_quotes("Büro"), "'Büro'");
  EXPECT_EQ(in_quotes("Büro", 2), "'B…'");
  EXPECT_EQ(in_quotes("Büro", 3), "'Bü…'");
  EXPECT_EQ(in_quotes("\x80\x80\x80", 1), "'…'") << "no UTF-8, and its end is not looked for beyond what there is";
  EXPECT_EQ(in_quotes(std::string(90, '\x80'), 9), "'\\x80\\x80\\x80\\x80\\x80…'");
}

}  // namespace
}  // namespace penstock
