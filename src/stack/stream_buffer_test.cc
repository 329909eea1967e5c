// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/stream_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/bytes.h"
#include "base/testing/rounds.h"

namespace penstock::stack {
namespace {

using penstock::testing::bytes_of;

constexpr OverlapPolicy kPolicies[] = {OverlapPolicy::first,     OverlapPolicy::last,       OverlapPolicy::bsd,
                                       OverlapPolicy::bsd_right, OverlapPolicy::linux_host, OverlapPolicy::windows,
                                       OverlapPolicy::solaris};

/// All runs, '.' for bytes that are not there.
std::string contents(const StreamBuffer& buffer) {
  std::string all;
  std::uint64_t at = 0;
  while (true) {
    const StreamBuffer::Run run = buffer.run_from(at);
    if (run.bytes.empty()) return all;
    all.resize(run.offset, '.');
    all.append(run.bytes.begin(), run.bytes.end());
    at = run.end();
  }
}

/// What a policy keeps, by the book: byte by byte, each knowing the segment that it is of.
class SlowBuffer {
 public:
  void insert(std::uint64_t offset, std::string_view segment, OverlapPolicy policy) {
    const std::uint64_t end = offset + segment.size();
    if (bytes_.size() < end) bytes_.resize(end);
    ++segments_;
    std::vector<bool> wins(segment.size());
    for (std::uint64_t i = offset; i < end; ++i) {
      if (bytes_[i].segment == 0) {
        wins[i - offset] = true;
        continue;
      }
      different |= bytes_[i].value != segment[i - offset];
      std::uint64_t old_begin = i, old_end = i + 1;
      while (old_begin > 0 && bytes_[old_begin - 1].segment == bytes_[i].segment) --old_begin;
      while (old_end < bytes_.size() && bytes_[old_end].segment == bytes_[i].segment) ++old_end;
      switch (policy) {
        case OverlapPolicy::first: break;
        case OverlapPolicy::last: wins[i - offset] = true; break;
        case OverlapPolicy::bsd: wins[i - offset] = offset < old_begin; break;
        case OverlapPolicy::bsd_right: wins[i - offset] = old_begin <= offset; break;
        case OverlapPolicy::windows: wins[i - offset] = offset < old_begin; break;
        case OverlapPolicy::linux_host:
          wins[i - offset] = offset < old_begin || (offset == old_begin && old_end < end);
          break;
        case OverlapPolicy::solaris:
          wins[i - offset] = !(old_end > end || (old_begin < offset && old_end == end));
          break;
      }
    }
    for (std::uint64_t i = offset; i < end; ++i) {
      if (wins[i - offset]) bytes_[i] = {segment[i - offset], segments_};
    }
  }
  [[nodiscard]] std::string contents() const {
    std::string all;
    for (const Byte& byte : bytes_) all += byte.segment == 0 ? '.' : byte.value;
    return all;
  }
  bool different = false;

 private:
  struct Byte {
    char value = 0;
    int segment = 0;
  };
  std::vector<Byte> bytes_;
  int segments_ = 0;
};

// Shankar & Paxson 2003, and Novak & Sturges 2007: who wins where, by the policies that are the same for fragments and
// for segments; of units of 8 bytes, in order of arrival.
TEST(StreamBuffer, KeepsWhatThePublishedModelsSayOfEachPolicy) {
  struct Model {
    std::vector<std::pair<unsigned, unsigned>> segments;
    std::vector<std::pair<OverlapPolicy, std::string>> kept;
  };
  const std::vector<Model> models = {{{{0, 3}, {4, 6}, {6, 9}, {1, 5}, {6, 9}, {9, 12}},
                                      {{OverlapPolicy::first, "111422333666"},
                                       {OverlapPolicy::last, "144442555666"},
                                       {OverlapPolicy::bsd, "111442333666"},
                                       {OverlapPolicy::bsd_right, "144422555666"}}},
                                     {{{0, 3},
                                       {4, 6},
                                       {6, 9},
                                       {10, 11},
                                       {13, 15},
                                       {15, 18},
                                       {18, 20},
                                       {20, 22},
                                       {22, 23},
                                       {1, 5},
                                       {6, 9},
                                       {9, 12},
                                       {12, 15},
                                       {16, 17},
                                       {19, 20},
                                       {20, 21},
                                       {22, 24}},
                                      {{OverlapPolicy::first, "111A22333C4CD5566677889H"},
                                       {OverlapPolicy::last, "1AAAA2BBBCCCDDD6E67FG8HH"},
                                       {OverlapPolicy::bsd, "111AA2333CCCDDD66677889H"},
                                       {OverlapPolicy::bsd_right, "1AAA22BBBC4CD556E67FG8HH"}}}};
  for (const Model& model : models) {
    for (const auto& [policy, kept] : model.kept) {
      MemoryPool pool(1 << 16);
      StreamBuffer buffer;
      for (std::size_t i = 0; i < model.segments.size(); ++i) {
        const auto [from, to] = model.segments[i];
        const std::string text((to - from) * 8, "123456789ABCDEFGH"[i]);
        ASSERT_TRUE(buffer.insert(pool, from * 8, bytes_of(text), policy).kept);
      }
      std::string wanted;
      for (const char unit : kept) wanted += std::string(8, unit);
      EXPECT_EQ(contents(buffer), wanted) << static_cast<int>(policy);
      buffer.clear(pool);
    }
  }
}

TEST(StreamBuffer, KeepsWhatASlowOneKeepsOfRandomOverlaps) {
  std::mt19937 random(7);
  for (std::uint32_t round = 0; round < penstock::testing::rounds(3000); ++round) {
    const OverlapPolicy policy = kPolicies[random() % std::size(kPolicies)];
    MemoryPool pool(1 << 20);
    StreamBuffer buffer;
    SlowBuffer slow;
    bool different = false;
    const std::uint64_t span = 1 + random() % (round % 10 == 0 ? 4000 : 200);
    const std::uint64_t longest = 1 + random() % span;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t offset = random() % span;
      std::string text(1 + random() % longest, ' ');
      for (char& c : text) c = static_cast<char>('a' + random() % (round % 3 == 0 ? 26 : 1));
      const StreamBuffer::Inserted inserted = buffer.insert(pool, offset, bytes_of(text), policy);
      ASSERT_TRUE(inserted.kept);
      different |= inserted.different;
      slow.insert(offset, text, policy);
      ASSERT_EQ(contents(buffer), slow.contents()) << "round " << round << " policy " << static_cast<int>(policy);
      ASSERT_EQ(different, slow.different);
    }
    EXPECT_EQ(buffer.right_edge(), slow.contents().size());
    buffer.clear(pool);
    ASSERT_EQ(pool.used_bytes(), 0U);
  }
}

TEST(StreamBuffer, GivesBackAStreamWhateverTheSegmentsAndTheirOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    MemoryPool pool(8 << 20);
    StreamBuffer buffer;
    std::string stream(1 + random() % 60000, ' ');
    for (char& c : stream) c = static_cast<char>(random());
    std::string taken;
    // A sender with a window: segments in it come in any order, some twice, of any size.
    std::uint64_t done = 0;
    while (done < stream.size()) {
      const std::uint64_t window = std::min<std::uint64_t>(stream.size(), done + 1 + random() % 20000);
      std::vector<std::pair<std::uint64_t, std::uint64_t>> segments;
      for (std::uint64_t at = done; at < window;) {
        const std::uint64_t end = std::min(window, at + 1 + random() % 1500);
        segments.emplace_back(at, end);
        if (random() % 4 == 0) segments.emplace_back(at - random() % (at - done + 1), end);
        at = end;
      }
      std::shuffle(segments.begin(), segments.end(), random);
      for (const auto& [from, to] : segments) {
        const auto inserted = buffer.insert(pool, from, bytes_of(std::string_view(stream).substr(from, to - from)),
                                            kPolicies[random() % std::size(kPolicies)]);
        ASSERT_TRUE(inserted.kept);
        ASSERT_FALSE(inserted.different);
        if (random() % 3 == 0) {
          const StreamBuffer::Run run = buffer.run_from(taken.size());
          if (run.offset == taken.size() && !run.bytes.empty()) {
            const std::size_t some = 1 + random() % run.bytes.size();
            taken.append(run.bytes.begin(), run.bytes.begin() + static_cast<std::ptrdiff_t>(some));
            buffer.drop_before(pool, taken.size());
          }
        }
      }
      done = window;
    }
    const StreamBuffer::Run rest = buffer.run_from(taken.size());
    taken.append(rest.bytes.begin(), rest.bytes.end());
    ASSERT_EQ(taken, stream);
    buffer.drop_before(pool, stream.size());
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(pool.used_bytes(), 0U);
  }
}

TEST(StreamBuffer, TellsWhatIsMissingOfARange) {
  MemoryPool pool(1 << 16);
  StreamBuffer buffer;
  const auto missing = [&](std::uint64_t begin, std::uint64_t end) {
    const StreamBuffer::Range range = buffer.missing({begin, end});
    return std::pair{range.begin, range.end};
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(missing(2, 9), Pair(2, 9));
  buffer.insert(pool, 4, bytes_of("ab"), OverlapPolicy::first);
  buffer.insert(pool, 8, bytes_of("cd"), OverlapPolicy::first);
  EXPECT_EQ(missing(2, 9), Pair(2, 8)) << "with what it has in between";
  EXPECT_EQ(missing(5, 9), Pair(6, 8));
  EXPECT_EQ(missing(5, 12), Pair(6, 12));
  EXPECT_EQ(missing(6, 8), Pair(6, 8));
  EXPECT_EQ(missing(4, 6), Pair(6, 6)) << "nothing";
  EXPECT_EQ(missing(9, 10), Pair(10, 10));
  buffer.clear(pool);
}

TEST(StreamBuffer, TakesNothingOfWhatWasDropped) {
  MemoryPool pool(1 << 16);
  StreamBuffer buffer;
  buffer.insert(pool, 0, bytes_of("0123456789"), OverlapPolicy::last);
  buffer.drop_before(pool, 4);
  EXPECT_FALSE(buffer.insert(pool, 0, bytes_of("abcd"), OverlapPolicy::last).different);
  EXPECT_TRUE(buffer.insert(pool, 2, bytes_of("wxyz"), OverlapPolicy::last).different);
  const StreamBuffer::Run run = buffer.run_from(0);
  EXPECT_EQ(run.offset, 4U);
  EXPECT_EQ(std::string(run.bytes.begin(), run.bytes.end()), "yz6789");
  buffer.clear(pool);
}

TEST(StreamBuffer, RefusesWhatItHasNoMemoryFor) {
  MemoryPool pool(4096);
  StreamBuffer buffer;
  EXPECT_FALSE(buffer.insert(pool, 0, bytes_of(std::string(8000, 'x')), OverlapPolicy::first).kept);
  EXPECT_TRUE(buffer.insert(pool, 0, bytes_of(std::string(1000, 'x')), OverlapPolicy::first).kept);
  EXPECT_FALSE(buffer.insert(pool, 1000, bytes_of(std::string(6000, 'y')), OverlapPolicy::first).kept);
  EXPECT_EQ(contents(buffer), std::string(1000, 'x'));
  buffer.clear(pool);
}

/// The places of a stream's single bytes, in an order that an evader may send them in.
std::vector<std::uint64_t> order_of(std::string_view name, std::uint64_t first, std::uint64_t end,
                                    std::mt19937& random) {
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = first; at < end; at += 2) places.push_back(at);
  if (name == "backward") std::reverse(places.begin(), places.end());
  if (name == "shuffled") std::shuffle(places.begin(), places.end(), random);
  if (name == "inward") {  // from both ends in turn
    std::vector<std::uint64_t> inward;
    for (std::size_t i = 0, j = places.size(); i < j;) {
      inward.push_back(places[i++]);
      if (i < j) inward.push_back(places[--j]);
    }
    places = inward;
  }
  return places;
}

// Were a hole searched for from one end, or a run moved each time that it grows, this would take hours.
TEST(StreamBuffer, TakesAnyNumberOfHolesInAnyOrder) {
  constexpr std::uint64_t kBytes = penstock::testing::rounds(400'000);
  std::mt19937 random(13);
  std::string stream(kBytes, ' ');
  for (char& c : stream) c = static_cast<char>('a' + random() % 26);
  MemoryPool pool(std::size_t{128} << 20);
  for (const std::string_view holes : {"forward", "backward", "shuffled", "inward"}) {
    for (const std::string_view filled : {"forward", "backward", "shuffled", "inward"}) {
      StreamBuffer buffer;
      for (const std::uint64_t first : {1U, 0U}) {
        for (const std::uint64_t at : order_of(first == 1 ? holes : filled, first, kBytes, random)) {
          const auto inserted =
              buffer.insert(pool, at, bytes_of(std::string_view(stream).substr(at, 1)), OverlapPolicy::bsd);
          ASSERT_TRUE(inserted.kept && !inserted.different);
        }
        if (first == 1) {
          ASSERT_EQ(buffer.run_from(kBytes / 2).bytes.size(), 1U);
        }
      }
      const StreamBuffer::Run run = buffer.whole_run_at(kBytes / 2);
      EXPECT_EQ(run.offset, 0U);
      EXPECT_TRUE(std::equal(run.bytes.begin(), run.bytes.end(), stream.begin(), stream.end(),
                             [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }))
          << holes << ", then " << filled;
      buffer.clear(pool);
      ASSERT_EQ(pool.used_bytes(), 0U);
    }
  }
}

TEST(StreamBuffer, KeepsWhatASlowOneKeepsAmongThousandsOfHoles) {
  std::mt19937 random(17);
  for (const OverlapPolicy policy : kPolicies) {
    MemoryPool pool(std::size_t{16} << 20);
    StreamBuffer buffer;
    SlowBuffer slow;
    constexpr std::uint64_t kSpan = 8000;
    bool different = false;
    for (int i = 0; i < 6000; ++i) {
      const std::uint64_t offset = random() % kSpan;
      std::string text(i % 100 == 99 ? 1 + random() % 300 : 1 + random() % 2, ' ');
      for (char& c : text) c = static_cast<char>('a' + random() % 26);
      const StreamBuffer::Inserted inserted = buffer.insert(pool, offset, bytes_of(text), policy);
      ASSERT_TRUE(inserted.kept);
      different |= inserted.different;
      slow.insert(offset, text, policy);
      if (i % 50 != 0) continue;
      ASSERT_EQ(contents(buffer), slow.contents()) << i << " policy " << static_cast<int>(policy);
    }
    EXPECT_EQ(contents(buffer), slow.contents()) << static_cast<int>(policy);
    EXPECT_EQ(different, slow.different);
    buffer.clear(pool);
    ASSERT_EQ(pool.used_bytes(), 0U);
  }
}

}  // namespace
}  // namespace penstock::stack
