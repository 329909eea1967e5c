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

void add_record(Bytes& to, std::uint32_t seconds, std::uint32_t length, const Bytes& packet) {
  add_word(to, seconds);
  add_word(to, 7);
  add_word(to, length);
  add_word(to, length);
  to.insert(to.end(), packet.begin(), packet.end());
}

std::uint32_t word_at(const Bytes& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// One walk from the first record.
std::vector<std::uint32_t> expected_places(const Bytes& bytes) {
  std::vector<std::uint32_t> places;
  for (std::size_t at = 0; bytes.size() - at >= 16;) {
    const std::size_t length = word_at(bytes, at + 8);
    if (length > RecordFinder::kMostCaptured || length > bytes.size() - at - 16) break;
    places.push_back(static_cast<std::uint32_t>(at));
    at += 16 + length;
  }
  return places;
}

void expect_as_one_walk(RecordFinder& finder, const Bytes& bytes) {
  const auto expected = expected_places(bytes);
  finder.find(bytes);
  EXPECT_EQ(std::vector(finder.places().begin(), finder.places().end()), expected);
  const std::size_t end = expected.empty() ? 0 : expected.back() + 16 + word_at(bytes, expected.back() + 8);
  EXPECT_EQ(finder.end(), end);
}

TEST(RecordFinder, FindsTheRecordsOfOneWalk) {
  RecordFinder finder;
  std::mt19937 random(1);
  for (const std::uint32_t most : {0U, 40U, 1500U, 9000U, 65535U, 200000U}) {
    Bytes bytes;
    for (std::uint32_t i = 0; bytes.size() < 900'000; ++i) {
      const std::uint32_t length = static_cast<std::uint32_t>(random()) % (most + 1);
      add_record(bytes, 1'700'000'000 + i, length, Bytes(length, static_cast<std::uint8_t>(random())));
    }
    for (const std::size_t size : {bytes.size(), bytes.size() - 1, std::size_t{500'001}, std::size_t{65536}}) {
      expect_as_one_walk(finder, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    }
  }
}

TEST(RecordFinder, IsNotMisledByRecordsWithinPackets) {
  RecordFinder finder;
  Bytes inner;
  for (std::uint32_t i = 0; i < 50; ++i) add_record(inner, 1'700'000'000, 100, Bytes(100, 1));
  Bytes bytes;
  while (bytes.size() < 900'000) {
    add_record(bytes, 1'700'000'000, static_cast<std::uint32_t>(inner.size() - 3),
               Bytes(inner.begin() + 3, inner.end()));
  }
  expect_as_one_walk(finder, bytes);
}

TEST(RecordFinder, StopsAtDamageInAnyPart) {
  RecordFinder finder;
  Bytes bytes;
  for (std::uint32_t i = 0; bytes.size() < 400'000; ++i) add_record(bytes, 1'700'000'000 + i, 84, Bytes(84, 0));
  for (std::size_t record = 0; record < 4000; record += 97) {
    Bytes damaged = bytes;
    damaged[record * 100 + 10] = 0xff;  // 16 MiB
    expect_as_one_walk(finder, damaged);
    EXPECT_EQ(finder.places().size(), record);
  }
}

TEST(RecordFinder, FindsTheRecordsOfOneWalkInNoise) {
  RecordFinder finder;
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    Bytes bytes(70'000 + random() % 100'000);
    // Mostly zeros: many places look like records.
    for (std::size_t i = 0; i < bytes.size(); i += 1 + random() % 40) bytes[i] = static_cast<std::uint8_t>(random());
    for (std::size_t i = 9; i + 2 < bytes.size(); i += 4) bytes[i + 1] = bytes[i + 2] = 0;
    expect_as_one_walk(finder, bytes);
  }
  expect_as_one_walk(finder, {});
  expect_as_one_walk(finder, Bytes(15, 0));
  expect_as_one_walk(finder, Bytes(16, 0));
}

}  // namespace
}  // namespace penstock::port
