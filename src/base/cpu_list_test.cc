// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/cpu_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace penstock {
namespace {

TEST(CpuList, KeepsTheOrderOfItsText) {
  EXPECT_EQ(parse_cpu_list("2-5,8"), (CpuList{2, 3, 4, 5, 8}));
  EXPECT_EQ(parse_cpu_list("5, 2-3"), (CpuList{5, 2, 3}));
  EXPECT_EQ(parse_cpu_list("0"), CpuList{0});
  EXPECT_EQ(parse_cpu_list("7-7"), CpuList{7});
  EXPECT_EQ(parse_cpu_list("8191"), CpuList{8191});
}

TEST(CpuList, RefusesWhatIsNotAList) {
  for (const char* const wrong : {"",     " ",     ",",     "1,",     ",1",     "1,,2",       "-",
                                  "-1",   "1-",    "1--2",  "1-2-3",  "3-2",    "a",          "1 2",
                                  "0x10", "+1",    "1.0",   "8192",   "0-8192", "4294967296", "0-18446744073709551615",
                                  "1,1",  "1-3,2", "2,1-3", "0-31:2", "all",    "1-\n2"}) {
    EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
  }
}

TEST(CpuList, RefusesHostileTextWithoutWork) {
  std::string commas(1 << 20, ',');
  EXPECT_FALSE(parse_cpu_list(commas));
  std::string repeated = "0-8191";
  for (int i = 0; i < 100'000; ++i) repeated += ",0-8191";
  EXPECT_FALSE(parse_cpu_list(repeated));
}

TEST(CpuList, ReadsBackWhatItPrints) {
  EXPECT_EQ(format_cpu_list(CpuList{2, 3, 4, 5, 8}), "2-5,8");
  EXPECT_EQ(format_cpu_list(CpuList{5, 2, 3}), "5,2-3");
  EXPECT_EQ(format_cpu_list(CpuList{}), "");
  std::mt19937 random(1);
  CpuList all(64);
  std::iota(all.begin(), all.end(), 0U);
  for (int i = 0; i < 2000; ++i) {
    // Nearly sorted lists have ranges.
    if (i % 2 == 0) {
      std::shuffle(all.begin(), all.end(), random);
    } else {
      std::sort(all.begin(), all.end());
      std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(random() % 64), all.end());
    }
    CpuList some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(1 + random() % 63));
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(random() % some.size()));
    if (some.empty()) continue;
    EXPECT_EQ(parse_cpu_list(format_cpu_list(some)), some);
  }
}

TEST(CpuList, ReadsRandomTextAsAListOrNotAtAll) {
  std::mt19937 random(2);
  constexpr std::string_view kLetters = "0123456789,,--- x";
  int lists = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text(1 + random() % 8, ' ');
    for (char& c : text) c = kLetters[random() % kLetters.size()];
    const auto list = parse_cpu_list(text);
    if (!list) continue;
    ++lists;
    ASSERT_FALSE(list->empty()) << text;
    const CpuList set = sorted(*list);
    EXPECT_EQ(std::adjacent_find(set.begin(), set.end()), set.end()) << text;
    EXPECT_EQ(parse_cpu_list(format_cpu_list(*list)), list) << text;
  }
  EXPECT_GT(lists, 100);
}

TEST(CpuList, IsASetIfSorted) {
  EXPECT_EQ(difference({0, 1, 2, 3}, {1, 3, 5}), (CpuList{0, 2}));
  EXPECT_EQ(intersection({0, 1, 2, 3}, {1, 3, 5}), (CpuList{1, 3}));
  EXPECT_TRUE(contains({1, 3}, 3));
  EXPECT_FALSE(contains({1, 3}, 2));
}

}  // namespace
}  // namespace penstock
