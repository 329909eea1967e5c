// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/record_finder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace penstock::port {
namespace {

using Bytes = std::vector<std::uint8_t>;

void add_word(Bytes& to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

std::uint32_t word_at(const Bytes& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Classic {
  using Format = ClassicRecords;
  static constexpr std::uint32_t kOverhead = 16;
  static constexpr std::size_t kLengthAt = 8;

  static void add(Bytes& to, std::uint32_t seconds, const Bytes& packet) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    for (const std::uint32_t word : {seconds, 7U, length, length}) add_word(to, word);
    to.insert(to.end(), packet.begin(), packet.end());
  }
  /// 0 if the record is incomplete or too long.
  static std::size_t length_of(const Bytes& bytes, std::size_t at) {
    if (bytes.size() - at < 16) return 0;
    const std::size_t length = word_at(bytes, at + 8);
    return length <= ClassicRecords::kMostCaptured && length <= bytes.size() - at - 16 ? 16 + length : 0;
  }
};

struct Pcapng {
  using Format = PcapngBlocks;
  static constexpr std::uint32_t kOverhead = 32;
  static constexpr std::size_t kLengthAt = 4;

  static void add(Bytes& to, std::uint32_t seconds, const Bytes& packet) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    const std::uint32_t padded = (length + 3) / 4 * 4;
    for (const std::uint32_t word : {6U, 32 + padded, 0U, seconds / 4000, seconds, length, length}) add_word(to, word);
    to.insert(to.end(), packet.begin(), packet.end());
    to.resize(to.size() + padded - length);
    add_word(to, 32 + padded);
  }
  static std::size_t length_of(const Bytes& bytes, std::size_t at) {
    if (bytes.size() - at < 12) return 0;
    const std::size_t length = word_at(bytes, at + 4);
    const bool is_complete = length >= 12 && length % 4 == 0 && length <= bytes.size() - at;
    return is_complete && word_at(bytes, at + length - 4) == length ? length : 0;
  }
};

template <typename Kind>
class RecordFinderTest : public ::testing::Test {
 protected:
  /// Compares with one walk from the first record.
  void expect_as_one_walk(const Bytes& bytes) {
    std::vector<std::uint32_t> expected;
    std::size_t at = 0;
    while (const std::size_t length = Kind::length_of(bytes, at)) {
      expected.push_back(static_cast<std::uint32_t>(at));
      at += length;
    }
    finder_.find(bytes);
    EXPECT_EQ(std::vector(finder_.places().begin(), finder_.places().end()), expected);
    EXPECT_EQ(finder_.end(), at);
  }

  RecordFinder<typename Kind::Format> finder_;
};

using Kinds = ::testing::Types<Classic, Pcapng>;
TYPED_TEST_SUITE(RecordFinderTest, Kinds);

TYPED_TEST(RecordFinderTest, FindsTheRecordsOfOneWalk) {
  std::mt19937 random(1);
  for (const std::uint32_t most : {0U, 40U, 1500U, 9000U, 65535U, 200000U}) {
    Bytes bytes;
    for (std::uint32_t i = 0; bytes.size() < 900'000; ++i) {
      const std::uint32_t length = static_cast<std::uint32_t>(random()) % (most + 1);
      TypeParam::add(bytes, 1'700'000'000 + i, Bytes(length, static_cast<std::uint8_t>(random())));
    }
    for (const std::size_t size : {bytes.size(), bytes.size() - 1, std::size_t{500'001}, std::size_t{65536}}) {
      this->expect_as_one_walk(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    }
  }
}

TYPED_TEST(RecordFinderTest, IsNotMisledByRecordsWithinPackets) {
  for (const std::ptrdiff_t cut : {3, 4}) {
    Bytes inner;
    for (std::uint32_t i = 0; i < 50; ++i) TypeParam::add(inner, 1'700'000'000, Bytes(100, 1));
    Bytes bytes;
    while (bytes.size() < 900'000) TypeParam::add(bytes, 1'700'000'000, Bytes(inner.begin() + cut, inner.end()));
    this->expect_as_one_walk(bytes);
  }
}

TYPED_TEST(RecordFinderTest, StopsAtDamageInAnyPart) {
  constexpr std::size_t kRecordBytes = 84 + TypeParam::kOverhead;
  Bytes bytes;
  for (std::uint32_t i = 0; bytes.size() < 400'000; ++i) TypeParam::add(bytes, 1'700'000'000 + i, Bytes(84, 0));
  for (std::size_t record = 0; record < 3400; record += 97) {
    Bytes damaged = bytes;
    damaged[record * kRecordBytes + TypeParam::kLengthAt + 2] = 0xff;  // 16 MiB
    this->expect_as_one_walk(damaged);
    EXPECT_EQ(this->finder_.places().size(), record);
  }
}

TYPED_TEST(RecordFinderTest, FindsTheRecordsOfOneWalkInNoise) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    Bytes bytes(70'000 + random() % 100'000);
    // Mostly zeros: many places look like records.
    for (std::size_t i = 0; i < bytes.size(); i += 1 + random() % 40) bytes[i] = static_cast<std::uint8_t>(random());
    for (std::size_t i = 9; i + 2 < bytes.size(); i += 4) bytes[i + 1] = bytes[i + 2] = 0;
    this->expect_as_one_walk(bytes);
  }
  this->expect_as_one_walk({});
  this->expect_as_one_walk(Bytes(15, 0));
  this->expect_as_one_walk(Bytes(16, 0));
}

TEST(RecordFinder, FindsBlocksOfAllTypes) {
  RecordFinder<PcapngBlocks> finder;
  std::mt19937 random(3);
  Bytes bytes;
  std::vector<std::uint32_t> expected;
  while (bytes.size() < 900'000) {
    expected.push_back(static_cast<std::uint32_t>(bytes.size()));
    const std::uint32_t length = 12 + 4 * static_cast<std::uint32_t>(random() % 30);
    add_word(bytes, static_cast<std::uint32_t>(random() % 10));
    add_word(bytes, length);
    // Enhanced Packet Blocks seem to begin here, in many places.
    for (std::uint32_t i = 12; i < length; i += 4) add_word(bytes, random() % 2 == 0 ? 6 : 32);
    add_word(bytes, length);
  }
  finder.find(bytes);
  EXPECT_EQ(std::vector(finder.places().begin(), finder.places().end()), expected);
}

}  // namespace
}  // namespace penstock::port
