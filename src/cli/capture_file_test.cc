// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/capture_file.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
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

TEST(CaptureFile, SaysWhyItCannotBeWritten) {
  const auto none = CaptureFile::create("/no/such/folder/x.pcapng");
  ASSERT_FALSE(none);
  EXPECT_NE(to_string(none.error()).find("/no/such/folder/x.pcapng: cannot create the capture"), std::string::npos);
  EXPECT_FALSE(CaptureFile::create("/dev/full"));
}

}  // namespace
}  // namespace penstock::cli
