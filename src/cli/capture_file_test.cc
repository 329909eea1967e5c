// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/capture_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "report/json_text.h"

namespace penstock::cli {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Base64, IsTheInverseOfWhatRunsWrite) {
  std::mt19937 random(1);
  for (std::size_t length = 0; length < 70; ++length) {
    Bytes bytes(length);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::string text;
    report::append_base64(text, bytes);
    EXPECT_EQ(bytes_of_base64(text), bytes) << text;
  }
}

TEST(Base64, RefusesOtherTexts) {
  for (const std::string text : {"a", "abc", "ab c", "a===", "ab=c", "abcd=", "\xff\xff\xff\xff"})
    EXPECT_FALSE(bytes_of_base64(text)) << text;
}

TEST(CaptureFile, RefusesWhatIsNoFrame) {
  auto file = CaptureFile::create("/dev/null");
  ASSERT_TRUE(file) << to_string(file.error());
  const nlohmann::ordered_json event{{"time_ns", 1},     {"in", "lan"},        {"link_type", 1},
                                     {"wire_length", 4}, {"reason", "denied"}, {"frame", "AAECAw=="}};
  EXPECT_TRUE(file->add(event));
  nlohmann::ordered_json other = event;
  other["frame"] = "AAECAw=";
  EXPECT_FALSE(file->add(other));
  other["frame"] = 7;
  EXPECT_THROW(static_cast<void>(file->add(other)), nlohmann::json::exception);
  EXPECT_THROW(static_cast<void>(file->add({})), nlohmann::json::exception);
}

TEST(CaptureFile, ReplacesOnlyCaptures) {
  const std::string path = ::testing::TempDir() + "/penstock-capture-" + std::to_string(::getpid());
  const auto is_replaced = [&](std::string_view text) {
    std::ofstream(path) << text;
    const bool possible = CaptureFile::check(path).has_value();
    const bool created = CaptureFile::create(path).has_value();
    EXPECT_EQ(possible, created);
    std::ifstream file(path);
    const std::string now{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(now == text, !created) << text;
    return created;
  };
  using namespace std::string_view_literals;
  for (const std::string_view capture : {""sv, "\x0a\x0d\x0d\x0a\x1c\0\0\0"sv, "\xd4\xc3\xb2\xa1\2\0\4\0"sv,
                                         "\xa1\xb2\xc3\xd4\0\2\0\4"sv, "\x4d\x3c\xb2\xa1\2\0\4\0"sv})
    EXPECT_TRUE(is_replaced(capture)) << testing::PrintToString(capture);
  for (const std::string_view other : {"alert ip any any -> any any (sid:1;)\n"sv, "\xd4\xc3\xb2"sv, "\n\n\n\n"sv})
    EXPECT_FALSE(is_replaced(other)) << testing::PrintToString(other);
  std::ofstream(path).close();
  const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  EXPECT_FALSE(CaptureFile::check(path)) << "the capture of a run";
  ::close(writer);
  EXPECT_FALSE(CaptureFile::check(path + ".gz")) << "it is not compressed";
  ::unlink(path.c_str());
}

TEST(CaptureFile, SaysWhyItCannotBeWritten) {
  const auto none = CaptureFile::create("/no/such/folder/x.pcapng");
  ASSERT_FALSE(none);
  EXPECT_NE(to_string(none.error()).find("/no/such/folder/x.pcapng: cannot create the capture"), std::string::npos);
  EXPECT_FALSE(CaptureFile::create("/dev/full"));
}

}  // namespace
}  // namespace penstock::cli
