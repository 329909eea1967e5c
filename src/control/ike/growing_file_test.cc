// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/ike/growing_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace penstock::control {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GrowingFileTest : public testing::Test {
 protected:
  GrowingFileTest() {
    std::filesystem::create_directory(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  }
  ~GrowingFileTest() override { std::filesystem::remove_all(folder_); }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  static std::vector<std::string> lines(GrowingFile& file, int* restarts = nullptr) {
    std::vector<std::string> all;
    const auto read = file.read(
        [&] {
          if (restarts != nullptr) ++*restarts;
        },
        [&](std::string_view line, std::uint64_t) { all.emplace_back(line); });
    EXPECT_TRUE(read);
    return all;
  }

  const std::filesystem::path folder_ = testing::TempDir() + "growing-" + std::to_string(::getpid());
  const std::string path_ = folder_ / "log";
};

TEST_F(GrowingFileTest, GivesEachCompleteLineOnce) {
  auto file = GrowingFile::open(path_, 10);
  ASSERT_TRUE(file) << to_string(file.error());
  append("one\ntw");
  EXPECT_THAT(lines(*file), ElementsAre("one"));
  append("o\n");
  EXPECT_THAT(lines(*file), ElementsAre("two"));
  append(std::string(200'000, 'x') + "\nthree\n");
  EXPECT_THAT(lines(*file), ElementsAre("three"));
  EXPECT_EQ(file->offset(), std::filesystem::file_size(path_));
}

TEST_F(GrowingFileTest, MakesAFileForItsOwnerAlone) {
  ASSERT_TRUE(GrowingFile::open(path_, 10));
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST_F(GrowingFileTest, RefusesAFileThatOthersCanRead) {
  append("");
  using std::filesystem::perms;
  std::filesystem::permissions(path_, perms::owner_read | perms::owner_write | perms::group_read);
  EXPECT_TRUE(GrowingFile::open(path_, 10)) << "the folder keeps others out";
  std::filesystem::permissions(folder_, perms::owner_all | perms::group_exec);
  const auto file = GrowingFile::open(path_, 10);
  ASSERT_FALSE(file);
  EXPECT_THAT(to_string(file.error()), HasSubstr("others can read this log"));
}

TEST_F(GrowingFileTest, ReadsAReplacedOrTruncatedFileFromItsBeginning) {
  auto file = GrowingFile::open(path_, 10);
  append("one\ntwo\n");
  EXPECT_EQ(lines(*file).size(), 2U);
  int restarts = 0;
  std::filesystem::rename(path_, path_ + ".1");
  append("new\n");
  EXPECT_THAT(lines(*file, &restarts), ElementsAre("new"));
  EXPECT_EQ(restarts, 1);
  std::filesystem::resize_file(path_, 0);
  append("a\n");
  EXPECT_THAT(lines(*file, &restarts), ElementsAre("a"));
  EXPECT_EQ(restarts, 2);
}

TEST_F(GrowingFileTest, ErasesWhatIsNotNeeded) {
  auto file = GrowingFile::open(path_, 100);
  for (int i = 0; i < 2000; ++i) append("secret " + std::to_string(i) + "\n");
  const std::size_t count = lines(*file).size();
  EXPECT_EQ(count, 2000U);
  file->erase_before(file->offset());
  std::ifstream stream(path_);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  if (text.find("secret 5\n") != std::string::npos) GTEST_SKIP() << "this file system does not make holes";
  append("next\n");
  EXPECT_THAT(lines(*file), ElementsAre("next"));
  // Who begins now gets whole lines alone.
  auto again = GrowingFile::open(path_, 100);
  const std::vector<std::string> rest = lines(*again);
  ASSERT_FALSE(rest.empty());
  EXPECT_LT(rest.size(), 500U);
  EXPECT_EQ(rest.back(), "next");
  for (const std::string& line : rest) EXPECT_TRUE(line.starts_with("secret ") || line == "next") << line;
}

}  // namespace
}  // namespace penstock::control
