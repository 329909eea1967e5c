// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/hyperscan_matcher.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::nids {
namespace {

Literal literal(std::string_view text, bool nocase = false) { return {{text.begin(), text.end()}, nocase}; }

std::vector<std::uint32_t> found_in(std::string_view text, const PatternMatcher& matcher, std::size_t literals) {
  LiteralSet found(literals);
  const auto scratch = matcher.make_scratch();
  matcher.scan({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, scratch.get(), found);
  return {found.list().begin(), found.list().end()};
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(HyperscanMatcher, FindsEachLiteralOnceHoweverOftenItOccurs) {
  const std::vector<Literal> literals{literal("abc"), literal("GET", true), literal(std::string_view("\0\xff.*", 4)),
                                      literal("bc")};
  const auto matcher = make_pattern_matcher(MatcherKind::hyperscan, literals);
  ASSERT_TRUE(matcher) << to_string(matcher.error());
  EXPECT_THAT(found_in("abcabcabc", **matcher, literals.size()), UnorderedElementsAre(0, 3));
  EXPECT_THAT(found_in("a gEt ABC", **matcher, literals.size()), ElementsAre(1));
  EXPECT_THAT(found_in(std::string_view("x\0\xff.*x", 6), **matcher, literals.size()), ElementsAre(2));
  EXPECT_THAT(found_in("", **matcher, literals.size()), IsEmpty());
}

/// Vectorscan 5.4.9, which has the same interface, misses one in thirty of these with AVX-512.
TEST(HyperscanMatcher, FindsALiteralWhereverItLies) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1U, 2U, 3U, 5U, 10U, 150U}) {
    for (const std::size_t length : {1U, 2U, 3U, 4U, 8U, 20U}) {
      std::vector<Literal> literals(count);
      for (Literal& one : literals) {
        for (std::size_t i = 0; i < length; ++i) one.bytes.push_back(static_cast<std::uint8_t>('a' + random() % 20));
      }
      const auto matcher = make_pattern_matcher(MatcherKind::hyperscan, literals);
      ASSERT_TRUE(matcher) << to_string(matcher.error());
      for (unsigned round = 0; round < 400; ++round) {
        std::string text(length + random() % 400, 'z');
        const auto& put = literals[random() % count].bytes;
        text.replace(random() % (text.size() - length + 1), length, std::string(put.begin(), put.end()));
        const auto found = found_in(text, **matcher, count);
        EXPECT_TRUE(std::ranges::any_of(found, [&](std::uint32_t i) { return literals[i].bytes == put; }))
            << text.find_first_not_of('z') << " of " << text.size() << ", " << count << " literals";
      }
    }
  }
}

/// Memory directly before an inaccessible page.
class GuardedMemory {
 public:
  GuardedMemory() {
    if (mapped_ == MAP_FAILED || mprotect(guard(), page_, PROT_NONE) != 0) throw std::bad_alloc();
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(mapped_, size_); }

  /// `text`, with `gap` bytes between it and the page.
  std::string_view put(std::string_view text, std::size_t gap) {
    char* const at = guard() - gap - text.size();
    std::ranges::copy(text, at);
    return {at, text.size()};
  }

 private:
  char* guard() { return static_cast<char*>(mapped_) + size_ - page_; }

  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::size_t size_ = 3 * page_;
  void* mapped_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

/// Hyperscan 5.4.0 reads past the end of some texts with AVX-512.
TEST(HyperscanMatcher, ReadsNothingOfThePageAfterAText) {
  GuardedMemory memory;
  std::mt19937_64 random(2);
  for (const std::size_t count : {1U, 2U, 36U, 300U}) {
    for (const std::size_t longest : {1U, 2U, 12U, 100U}) {
      std::vector<Literal> literals(count);
      for (Literal& one : literals) {
        for (std::size_t i = random() % longest + 1; i > 0; --i) {
          one.bytes.push_back(static_cast<std::uint8_t>('a' + random() % 6));
        }
      }
      const auto matcher = make_pattern_matcher(MatcherKind::hyperscan, literals);
      ASSERT_TRUE(matcher) << to_string(matcher.error());
      for (std::size_t length = 1; length < 400; ++length) {
        std::string text(length, 'z');
        const auto& put = literals[random() % count].bytes;
        const bool fits = put.size() <= length;
        if (fits) {
          // Also across the boundary between the part scanned in place and the copied end.
          const std::size_t before_end = std::min<std::size_t>(length - put.size(), random() % 80);
          text.replace(length - put.size() - before_end, put.size(), std::string(put.begin(), put.end()));
        }
        const auto found = found_in(memory.put(text, random() % 4 == 0 ? random() % 70 : 0), **matcher, count);
        EXPECT_EQ(fits, std::ranges::any_of(found, [&](std::uint32_t i) { return literals[i].bytes == put; }))
            << text << ", " << count << " literals";
      }
    }
  }
}

TEST(HyperscanMatcher, OfNoLiteralsFindsNothing) {
  const auto matcher = make_pattern_matcher(MatcherKind::hyperscan, {});
  ASSERT_TRUE(matcher);
  EXPECT_THAT(found_in("abc", **matcher, 0), IsEmpty());
}

TEST(PatternMatcher, RefusesAnEmptyLiteral) {
  const std::vector<Literal> literals{literal("abc"), literal("")};
  EXPECT_FALSE(make_pattern_matcher(MatcherKind::hyperscan, literals));
}

}  // namespace
}  // namespace penstock::nids
