// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/secret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <ostream>
#include <utility>
#include <vector>

namespace penstock::ipsec {
namespace {

constexpr std::array<std::uint8_t, 5> kKey{0xde, 0xad, 0xbe, 0xef, 0x77};

/// Whether the key's bytes occur in an object's memory.
bool holds_key(const void* memory, std::size_t bytes) {
  const auto* begin = static_cast<const std::uint8_t*>(memory);
  return std::search(begin, begin + bytes, kKey.begin(), kKey.end()) != begin + bytes;
}

TEST(Secret, KeepsItsBytesThroughCopies) {
  const Secret key{kKey};
  Secret copy = key;
  EXPECT_TRUE(copy == key);
  EXPECT_TRUE(std::ranges::equal(copy.bytes(), kKey));
  copy = Secret{std::span(kKey).first(4)};
  EXPECT_FALSE(copy == key);
  EXPECT_EQ(copy.size(), 4U);
}

TEST(Secret, IsGoneWhereItWasMovedFrom) {
  Secret from{kKey};
  ASSERT_TRUE(holds_key(&from, sizeof from));
  const Secret to = std::move(from);
  EXPECT_TRUE(std::ranges::equal(to.bytes(), kKey));
  EXPECT_FALSE(holds_key(&from, sizeof from));  // NOLINT(bugprone-use-after-move): the claim
  EXPECT_TRUE(from.empty());
}

TEST(Secret, IsGoneWhereItWasAssignedOver) {
  Secret key{kKey};
  key = Secret{std::span(kKey).first(1)};
  EXPECT_FALSE(holds_key(&key, sizeof key));
  EXPECT_TRUE(std::ranges::equal(key.bytes(), std::span(kKey).first(1)));
}

TEST(Secret, IsGoneWhenDestroyed) {
  alignas(Secret) std::array<std::uint8_t, sizeof(Secret)> memory{};
  auto* key = new (memory.data()) Secret{kKey};
  ASSERT_TRUE(holds_key(memory.data(), memory.size()));
  std::destroy_at(key);
  EXPECT_FALSE(holds_key(memory.data(), memory.size()));
}

template <typename T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};
static_assert(!Printable<Secret>);

}  // namespace
}  // namespace penstock::ipsec
