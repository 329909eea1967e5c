// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text_file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace penstock {
namespace {

TEST(TextFile, ReadsWhatItWroteAndLeavesNoTemporaryFile) {
  const std::string path = testing::TempDir() + "/penstock_text_file";
  ASSERT_TRUE(write_text_file(path, "one\ntwo"));
  EXPECT_EQ(*read_text_file(path), "one\ntwo");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(TextFile, NamesThePathThatCannotBeRead) {
  const auto text = read_text_file("/nonexistent/file");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().front().place.file, "/nonexistent/file");
  EXPECT_FALSE(read_text_file("/tmp"));
}

TEST(TextFile, TellsBeforehandWhatCannotBeWritten) {
  const std::string folder = testing::TempDir() + "/penstock_writable";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(write_text_file(folder + "/there", "as it was"));
  for (const auto check : {check_writable, check_text_file_writable}) {
    EXPECT_TRUE(check(folder + "/there"));
    EXPECT_TRUE(check(folder + "/new"));
    EXPECT_TRUE(check("/dev/null"));
    for (const std::string& path : {folder, folder + "/none/new", folder + "/there/new", folder + "/new/"}) {
      const auto writable = check(path);
      ASSERT_FALSE(writable) << path;
      EXPECT_EQ(writable.error().front().place.file, path);
      EXPECT_EQ(writable.error().front().message, "cannot write");
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/new"));
  EXPECT_EQ(*read_text_file(folder + "/there"), "as it was");
  std::filesystem::remove_all(folder);
}

TEST(LineReader, NumbersLinesAndTakesBothLineEnds) {
  LineReader lines("a\r\n\nb");
  Line line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.text, "a");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.text, "");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.text, "b");
  EXPECT_EQ(line.number, 3U);
  EXPECT_FALSE(lines.next(line));
}

TEST(SplitWords, TellsTheColumnOfEachWord) {
  const auto words = split_words("  via\t10.0.0.1 ");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0].text, "via");
  EXPECT_EQ(words[0].column, 3U);
  EXPECT_EQ(words[1].text, "10.0.0.1");
  EXPECT_EQ(words[1].column, 7U);
}

}  // namespace
}  // namespace penstock
