// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/filter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "classify/linear_core.h"
#include "experiments/filter/cpu_filters.h"
#include "experiments/filter/many_filters.h"
#include "experiments/filter/plan.h"
#include "experiments/filter/random_packets.h"
#include "experiments/filter/result_form.h"
#include "experiments/filter/rule_code.h"
#include "experiments/filter/template_rules.h"
#include "experiments/record_check.h"
#include "experiments/session.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Rules = std::vector<WordRule<kKeyWords>>;

const std::atomic<bool> kNeverStop{false};
constexpr Timing kShort{2, milliseconds{2}, &kNeverStop};
constexpr std::size_t kPackets = 40'000;

TupleKey tuple(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t protocol) {
  return {source, destination, 5000, port, protocol << classify::kKindDetailBits};
}

std::vector<TupleKey> packets(const Rules& rules, unsigned percent, unsigned threads = 2) {
  std::vector<TupleKey> keys(kPackets);
  draw_packets(keys, rules, percent, threads);
  return keys;
}

std::uint32_t number_of(const Rules& rules, Deciding deciding, const TupleKey& key) {
  return deciding_rule(rules.data(), static_cast<std::uint32_t>(rules.size()), deciding, words_of(key));
}

std::vector<std::uint32_t> sample(const Rules& rules, Deciding deciding, const std::vector<TupleKey>& keys) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < keys.size(); i += kCheckedStep) numbers.push_back(number_of(rules, deciding, keys[i]));
  return numbers;
}

TEST(TemplateRules, BeginAsTheTableOfThePaper) {
  const Rules rules = template_rules(Reading::table, 4);
  const auto decides = [&](const TupleKey& key) { return number_of(rules, Deciding::first, key); };
  EXPECT_EQ(decides(tuple(0x8c8001ff, 1, 1, 17)), 1U) << "140.128.1.0/24 to anything";
  EXPECT_EQ(decides(tuple(0x8c8002ff, 1, 1, 17)), 0U);
  EXPECT_EQ(decides(tuple(1, 0x8c800201, 8888, 6)), 2U) << "host bits of 140.128.2.99/24 are ignored";
  EXPECT_EQ(decides(tuple(1, 0x8c800263, 8888, 17)), 0U) << "HTTP is TCP";
  EXPECT_EQ(decides(tuple(1, 0x8c800263, 80, 6)), 0U) << "the table states the port";
  EXPECT_EQ(decides(tuple(0x8c7f0909, 0x7b060909, 9, 1)), 3U);
  EXPECT_EQ(decides(tuple(0xdb580909, 0x7b061609, 21, 6)), 4U) << "FTP is TCP to port 21";
  EXPECT_EQ(decides(tuple(0xdb580909, 0x7b061609, 20, 6)), 0U);
}

TEST(TemplateRules, AreOfTheSameKindsInAnyNumber) {
  for (const Reading reading : {Reading::table, Reading::text}) {
    const std::size_t kinds = reading == Reading::table ? 4 : 3;
    const Rules rules = template_rules(reading, 1000);
    const Rules fewer = template_rules(reading, 10);
    std::set<std::string> different;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      std::string text;
      for (unsigned f = 0; f < kKeyWords; ++f) {
        const auto& field = rules[i].fields[f];
        EXPECT_EQ(field.mask, rules[i % kinds].fields[f].mask);
        EXPECT_EQ(field.value & ~field.mask, 0U);
        if (i < fewer.size()) {
          EXPECT_EQ(field.value, fewer[i].fields[f].value);
        }
        text += fmt::format("{:x}/{:x} ", field.value, field.mask);
      }
      different.insert(text);
    }
    EXPECT_EQ(different.size(), rules.size());
  }
}

TEST(TemplateRules, HaveTwoFieldsAsTheTextSays) {
  const Rules rules = template_rules(Reading::text, 300);
  const std::vector<WordRule<2>> shorter = without_ports(rules);
  for (const TupleKey& key : packets(rules, 50)) {
    const auto count = static_cast<std::uint32_t>(rules.size());
    EXPECT_EQ(deciding_rule(shorter.data(), count, Deciding::last, words_of(key)),
              number_of(rules, Deciding::last, key));
  }
}

TEST(TemplateRules, AreTheSameForTheEnginesOfTheLibrary) {
  const Rules rules = template_rules(Reading::table, 100);
  const std::vector<TupleKey> keys = packets(rules, 70);
  for (const Deciding deciding : {Deciding::first, Deciding::last}) {
    const classify::Ruleset set = ruleset_of(rules, deciding);
    const classify::LinearView view{set.entries.data(), set.conditions.data(), set.port_ranges.data(),
                                    set.ranges6.data(), static_cast<std::uint32_t>(set.entries.size())};
    std::set<std::uint32_t> numbers;
    for (std::size_t i = 0; i < keys.size(); i += 7) {
      const std::uint32_t entry = classify::deciding_entry(view, key_of(keys[i]));
      const std::uint32_t number = number_of_entry(entry, 100, deciding);
      ASSERT_EQ(number, number_of(rules, deciding, keys[i])) << i;
      numbers.insert(number);
    }
    EXPECT_GT(numbers.size(), 90U);
  }
}

TEST(WordRules, AreDecidedByTheFirstOrTheLastMatch) {
  Rules rules(3);
  rules[0].fields[0] = {0xff, 1};
  rules[1].fields[0] = {0xff, 2};
  rules[2].fields[0] = {0x01, 1};
  EXPECT_EQ(number_of(rules, Deciding::first, tuple(1, 0, 0, 0)), 1U);
  EXPECT_EQ(number_of(rules, Deciding::last, tuple(1, 0, 0, 0)), 3U);
  EXPECT_EQ(number_of(rules, Deciding::last, tuple(2, 0, 0, 0)), 2U);
  EXPECT_EQ(number_of(rules, Deciding::last, tuple(4, 0, 0, 0)), 0U);
}

TEST(RandomPackets, AreTheSameWithAnyNumberOfThreads) {
  const Rules rules = template_rules(Reading::table, 50);
  const auto bytes = [](const std::vector<TupleKey>& keys) {
    return std::string(reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(TupleKey));
  };
  EXPECT_EQ(bytes(packets(rules, 30, 1)), bytes(packets(rules, 30, 5)));
}

TEST(RandomPackets, MatchRulesAsOftenAsRequested) {
  const Rules rules = template_rules(Reading::table, 1000);
  for (const unsigned percent : {0U, 50U, 100U}) {
    const std::vector<TupleKey> keys = packets(rules, percent);
    double hits = 0;
    for (std::size_t i = 1; i < keys.size(); i += 2) {
      if (i % kCheckedStep != 0) hits += number_of(rules, Deciding::last, keys[i]) != 0 ? 1 : 0;
    }
    EXPECT_NEAR(hits / kPackets * 200, percent, 2);
    const auto checked = sample(rules, Deciding::last, keys);
    EXPECT_GT(std::ranges::count_if(checked, [](std::uint32_t number) { return number != 0; }), 20)
        << "a filter that never matches would pass otherwise";
    if (percent == 0) {
      EXPECT_GT(std::ranges::count(checked, 0U), 5);
    }
  }
}

TEST(CpuFilters, GiveTheDecidingRule) {
  const Rules rules = template_rules(Reading::table, 333);
  const std::vector<TupleKey> keys = packets(rules, 50);
  for (const Deciding deciding : {Deciding::first, Deciding::last}) {
    std::vector<std::unique_ptr<CpuFilter>> filters;
    filters.push_back(make_scalar_filter(rules, deciding));
    filters.push_back(make_vector_filter(rules, deciding));
    for (const char* engine : {"linear", "bitvector", "rfc"}) {
      auto made = make_engine_filter(engine, rules, deciding);
      ASSERT_TRUE(made) << to_string(made.error());
      filters.push_back(std::move(*made));
    }
    for (std::size_t f = 0; f < filters.size(); ++f) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{15}, std::size_t{1000}}) {
        std::vector<std::uint32_t> numbers(count);
        filters[f]->filter(std::span(keys).first(count), numbers.data());
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(numbers[i], number_of(rules, deciding, keys[i])) << "filter " << f << ", packet " << i;
        }
      }
    }
  }
}

TEST(CpuFilters, AreMeasuredOnEachNumberOfCores) {
  const Rules rules = template_rules(Reading::table, 100);
  const std::vector<TupleKey> keys = packets(rules, 0);
  const auto filter = make_vector_filter(rules, Deciding::last);
  for (const unsigned cores : {1U, 3U}) {
    const auto rates = filter_on_cores(*filter, keys, sample(rules, Deciding::last, keys), cores, kShort);
    ASSERT_TRUE(rates) << to_string(rates.error());
    EXPECT_EQ(rates->size(), 2U);
    EXPECT_GT(rates->front(), 1e4);
  }
}

TEST(CpuFilters, AreRefusedIfAResultIsWrong) {
  const Rules rules = template_rules(Reading::table, 100);
  const std::vector<TupleKey> keys = packets(rules, 0);
  auto expected = sample(rules, Deciding::last, keys);
  expected[3] ^= 1;
  const auto rates = filter_on_cores(*make_scalar_filter(rules, Deciding::last), keys, expected, 1, kShort);
  ASSERT_FALSE(rates);
  EXPECT_THAT(to_string(rates.error()), HasSubstr("the CPU's result for packet 2991 is wrong: found "));
}

TEST(ResultForm, SpoilsEveryResultThatIsChecked) {
  const std::vector<std::uint32_t> expected{0, 1, 999, 0, 7};
  for (const unsigned bits : {1U, 8U, 16U, 32U}) {
    const std::size_t count = 5 * kCheckedStep;
    std::vector<std::byte> results(result_bytes(count, bits));
    // Right results, as a device would write them.
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t at = i * kCheckedStep;
      const std::uint32_t value = bits <= 8 ? expected[i] != 0 : expected[i];
      if (bits == 1) {
        results[at / 8] |= static_cast<std::byte>(value << (at % 8));
      } else {
        std::memcpy(results.data() + at * bits / 8, &value, bits / 8);
      }
    }
    EXPECT_TRUE(check_results(results, bits, expected, "a")) << bits;
    const std::vector<std::byte> right = results;
    spoil_results(results, bits, expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::vector<std::byte> one_wrong = right;
      const std::size_t at = i * kCheckedStep;
      for (std::size_t b = at * bits / 8; b < (at * bits + bits + 7) / 8; ++b) one_wrong[b] = results[b];
      const auto checked = check_results(one_wrong, bits, expected, "the GPU's");
      ASSERT_FALSE(checked) << bits << ' ' << i;
      EXPECT_THAT(to_string(checked.error()), HasSubstr(fmt::format("the GPU's result for packet {} is wrong", at)));
    }
  }
}

TEST(RuleCode, ComparesWithImmediates) {
  const Rules rules = template_rules(Reading::table, 4);
  const std::string last = rule_code(rules, Deciding::last);
  EXPECT_THAT(last, HasSubstr("  if ((w0 & 0xffffff00u) == 0x8c800100u) found = 1u;\n"));
  EXPECT_THAT(last, HasSubstr("  if ((w1 & 0xffffff00u) == 0x8c800200u && (w2 & 0xffff0000u) == 0x22b80000u && "
                              "(w3 & 0xff0000u) == 0x60000u) found = 2u;\n"));
  EXPECT_THAT(rule_code(rules, Deciding::first), HasSubstr("== 0x8c800100u) return 1u;\n"));
  EXPECT_THAT(rule_code(Rules(1), Deciding::last), HasSubstr("  if (true) found = 1u;\n"));
}

/// All points, as the session plans them.
std::vector<Point> plan(bool quick) {
  Setting setting;
  setting.quick = quick;
  setting.workers = 16;
  setting.stop = &kNeverStop;
  return (*filter_experiment().start(setting))->plan();
}

/// Rows of tables 3 and 4: algorithm, packets, rules, transfer.
using Row = std::tuple<std::string, std::string, std::string, std::string>;

TEST(FilterPlan, HasEveryRowOfTablesThreeAndFour) {
  const std::set<Row> rows{{"bpf", "global", "constant", "direct"},     {"bpf", "global", "constant", "zero_copy"},
                           {"bpf", "texture", "constant", "direct"},    {"bpf", "texture", "constant", "zero_copy"},
                           {"bpf", "texture", "constant", "streamed"},  {"bpf", "global", "code", "direct"},
                           {"bpf", "global", "code", "zero_copy"},      {"bpf", "texture", "code", "direct"},
                           {"bpf", "texture", "code", "zero_copy"},     {"bpf", "texture", "code", "streamed"},
                           {"rfc", "global", "constant", "none"},       {"rfc", "global", "constant", "zero_copy"},
                           {"rfc", "global", "constant", "streamed"},   {"rfc", "texture", "constant", "none"},
                           {"rfc", "texture", "constant", "zero_copy"}, {"rfc", "texture", "constant", "streamed"}};
  for (const bool quick : {false, true}) {
    const std::vector<Point> points = plan_filters(quick, 16);
    for (const char* match : {"first", "last"}) {
      if (quick && match == std::string("first")) continue;
      std::set<Row> planned;
      for (const Point& point : points) {
        if (point.text("sweep") != "combinations" || point.text("match") != match) continue;
        if (point.text("processor") == "gpu") {
          planned.emplace(point.text("algorithm"), point.text("storage"), point.text("rules_in"),
                          point.text("transfer"));
        }
      }
      EXPECT_TRUE(std::ranges::includes(planned, rows)) << match;
    }
  }
}

TEST(FilterPlan, MeasuresCoresBeforeTheGpuIsComparedWithThem) {
  std::set<std::pair<std::string, std::string>> on_cores;
  for (const Point& point : plan_filters(false, 16)) {
    if (point.text("sweep") != "combinations") continue;
    const std::pair name(point.text("algorithm"), point.text("match"));
    if (point.text("processor") == "cpu") {
      if (point.text("cores") == "16") on_cores.insert(name);
    } else {
      EXPECT_TRUE(on_cores.contains(name)) << describe(point);
    }
  }
  EXPECT_EQ(on_cores.size(), 4U);
}

TEST(FilterPlan, IsSmallerWhenQuick) {
  EXPECT_LT(plan_filters(true, 16).size(), plan_filters(false, 16).size() * 2 / 3);
}

TEST(FilterPlan, FilterNumbersAndSizesAreThoseOfTheAims) {
  std::set<std::string> filters, rules;
  for (const Point& point : plan_filters(false, 16)) {
    if (point.text("sweep") == "filters") filters.insert(point.text("filters"));
    if (point.text("sweep") == "classbench") rules.insert(point.text("rules"));
  }
  EXPECT_EQ(filters, (std::set<std::string>{"1", "4", "16", "64", "256", "1024"}));
  EXPECT_EQ(rules, (std::set<std::string>{"1000", "10000", "100000"}));
}

TEST(FilterFigures, AreDrawnFromARecord) {
  Record record;
  record.experiment = "filter";
  double rate = 100;
  for (Point point : plan(false)) {
    point.set("mpps", rate).set("limit_mpps", 3300).set("times_one_core", rate / 2).set("times_all_cores", rate / 32);
    rate = rate > 1000 ? 100 : rate + 1;
    record.points.push_back(std::move(point));
  }
  const Errors errors = check_record(record, filter_experiment(), "record");
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  for (const Figure& figure : filter_experiment().figures()) {
    EXPECT_TRUE(has_plot(figure, record)) << figure.id;
    EXPECT_THAT(plot_svg(figure, record), HasSubstr("<svg")) << figure.id;
  }
}

TEST(FilterFigures, LeaveOutWhatWasRefused) {
  Record record;
  record.experiment = "filter";
  for (Point point : plan(false)) {
    if (point.text("sweep") != "classbench") continue;
    if (point.text("engine") == "rfc") {
      point.set("refused", "too large");
    } else {
      point.set("mpps", 1);
    }
    record.points.push_back(std::move(point));
  }
  EXPECT_TRUE(check_record(record, filter_experiment(), "record").empty());
}

TEST(ManyFilters, AreDifferentAndCompile) {
  std::set<std::string> expressions;
  for (std::size_t f = 0; f < kMostFilters; ++f) {
    const std::string expression = filter_expression(f);
    expressions.insert(expression);
    const auto program = filter::compile_expression(expression, {}, {});
    EXPECT_TRUE(program) << expression << ": " << to_string(program.error());
  }
  EXPECT_EQ(expressions.size(), kMostFilters);
}

std::vector<filter::Program> programs(std::size_t count) {
  std::vector<filter::Program> made;
  for (std::size_t f = 0; f < count; ++f) made.push_back(*filter::compile_expression(filter_expression(f), {}, {}));
  return made;
}

TEST(ManyFilters, GiveOneBitForEachFrameAndFilter) {
  constexpr std::size_t kFrames = 4000;
  constexpr std::size_t kFilters = 200;  // not a multiple of 32
  const std::vector<std::uint8_t> bytes = filter_frames(kFrames);
  std::vector<filter::PacketBytes> frames;
  for (std::size_t f = 0; f < kFrames; ++f)
    frames.push_back({bytes.data() + f * kFrameBytes, kFrameBytes, kFrameBytes});
  const std::size_t per_frame = words_of_filters(kFilters);
  std::vector<std::vector<std::uint32_t>> all;
  for (const filter::Engine engine : {filter::Engine::libpcap, filter::Engine::interpreter}) {
    const auto matcher = filter::make_matcher(engine, programs(kFilters));
    ASSERT_TRUE(matcher) << to_string(matcher.error());
    std::vector<std::uint32_t>& words = all.emplace_back(kFrames * per_frame, 0xffffffff);
    match_frames(**matcher, frames, words.data());
    std::size_t hits = 0;
    for (std::size_t i = 0; i < kFrames; ++i) {
      for (std::size_t p = 0; p < kFilters; ++p) {
        std::uint32_t returned = 0;
        (*matcher)->run(p, std::span(frames).subspan(i, 1), &returned);
        ASSERT_EQ(words[i * per_frame + p / 32] >> (p % 32) & 1, returned != 0 ? 1U : 0U) << i << ' ' << p;
        hits += returned != 0 ? 1 : 0;
      }
    }
    EXPECT_GT(hits, kFrames / 20) << "frames match some filters";
    EXPECT_LT(hits, kFrames * kFilters / 10);
  }
  EXPECT_EQ(all[0], all[1]);
}

TEST(FilterExperiment, MeasuresWhatTheCpuCan) {
  Options options;
  options.quick = true;
  options.repeats = 1;
  options.duration = milliseconds{2};
  options.workers = 2;
  options.only = {{"processor", {"cpu"}}, {"sweep", {"combinations", "filters"}}};
  auto session = Session::open(filter_experiment(), options, kNeverStop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run({});
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  EXPECT_TRUE(session->record().complete);
  for (const Point& point : session->record().points) {
    EXPECT_TRUE(point.number("mpps") || point.text("engine") == "jit") << describe(point);
  }
  EXPECT_TRUE(check_record(session->record(), filter_experiment(), "record").empty());
}

}  // namespace
}  // namespace penstock::experiments
