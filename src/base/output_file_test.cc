// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

namespace penstock {
namespace {

constexpr std::array<std::string_view, 2> kWritten{".gz", ".zst"};

TEST(OutputFile, RefusesACompressionSuffixThatIsNotWritten) {
  const auto refusal = [](std::string_view path, std::span<const std::string_view> written = {}) {
    const auto checked = check_compression(path, written);
    return checked ? std::string() : to_string(checked.error());
  };
  EXPECT_EQ(refusal("eve.json.gz"),
            "eve.json.gz: this output is not written compressed: found '.gz', expected a name without it");
  EXPECT_EQ(refusal("out.pcap.xz", kWritten),
            "out.pcap.xz: this compression is not supported: found '.xz', expected .gz, .zst, or a name without it");
  EXPECT_NE(refusal("out.pcap.GZ", kWritten), "") << "only .gz is compressed";
  for (const char* const path : {"out.pcap.gz", "out.zst", "out.pcap", "out", "xz", "", "a.gz/out.pcap", "-"}) {
    EXPECT_EQ(refusal(path, kWritten), "") << path;
  }
}

TEST(OutputFile, DetectsThatAFileIsBeingWrittenWithoutChangingIt) {
  const std::string path = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_written.json";
  EXPECT_FALSE(is_being_written(path)) << "it is not there";
  std::ofstream(path) << "a line\n";
  EXPECT_FALSE(is_being_written(path));
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(is_being_written(path));
  ::close(fd);
  EXPECT_FALSE(is_being_written(path));
  std::string line;
  std::getline(std::ifstream(path), line);
  EXPECT_EQ(line, "a line");
  std::remove(path.c_str());
}

TEST(CheckReplaceable, PassesOnlyWhatIsNewEmptyOrOfTheKind) {
  const std::string path = ::testing::TempDir() + "/penstock-replaceable-" + std::to_string(::getpid());
  const std::string link = path + ".link";
  const auto is_note = [](std::string_view beginning) { return beginning.starts_with("note"); };
  const auto check = [&](const std::string& name) {
    const auto checked = check_replaceable(name, "a note", is_note);
    return checked ? "" : to_string(checked.error());
  };
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  EXPECT_EQ(check(path), "") << "it is new";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_EQ(check(link), "") << "it leads nowhere yet";
  write("");
  EXPECT_EQ(check(path), "");
  write("note 1");
  EXPECT_EQ(check(path), "");
  EXPECT_EQ(check(link), "");
  write("letter");
  const std::string refusal =
      ": not overwritten: an existing file that is not a note: found a file of 6 B, expected another name, or the name "
      "of a note";
  EXPECT_EQ(check(path), path + refusal);
  EXPECT_EQ(check(link), link + refusal);
  EXPECT_EQ(check("/dev/null"), "");
  EXPECT_EQ(check("/no/such/folder/x"), "") << "another check says so";
  ::unlink(path.c_str());
  ::unlink(link.c_str());
}

}  // namespace
}  // namespace penstock
