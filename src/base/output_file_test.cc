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

}  // namespace
}  // namespace penstock
