// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/parameter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace penstock {
namespace {

constexpr std::array<Parameter, 6> kTable{{
    {"rules", ParameterType::path, "", "", "the rules", true},
    {"engine", ParameterType::choice, "bitvector", "linear|bitvector", "the engine"},
    {"workers", ParameterType::integer, "1", "1..64", "threads"},
    {"timeout", ParameterType::duration, "500us", "0..1s", "time limit"},
    {"strict", ParameterType::flag, "false", "", "refuse what is not supported"},
    {"folder", ParameterType::path, "", "none", "where to keep things"},
}};

RawParameter raw(std::string name, std::string text) {
  return {std::move(name), {"c.yaml", 2, 3}, {"c.yaml", 2, 10}, {std::move(text)}, RawParameter::Shape::scalar,
          "/etc/penstock"};
}

TEST(Parameters, UsesDefaultsForMissingValues) {
  const auto parameters = Parameters::read(kTable, {raw("rules", "r.txt")}, {});
  ASSERT_TRUE(parameters) << to_string(parameters.error());
  EXPECT_EQ(parameters->text("rules"), "/etc/penstock/r.txt");
  EXPECT_EQ(parameters->text("engine"), "bitvector");
  EXPECT_EQ(parameters->integer("workers"), 1U);
  EXPECT_EQ(parameters->duration("timeout"), std::chrono::microseconds{500});
  EXPECT_FALSE(parameters->flag("strict"));
}

TEST(Parameters, ReportsEveryMistakeAtItsPlace) {
  const auto parameters = Parameters::read(
      kTable, {raw("engin", "x"), raw("workers", "65"), raw("timeout", "2s"), raw("strict", "yes")}, {"c.yaml", 1, 1});
  ASSERT_FALSE(parameters);
  const std::string text = to_string(parameters.error());
  EXPECT_NE(text.find("c.yaml:2:3: unknown parameter: found 'engin', expected engine"), std::string::npos) << text;
  EXPECT_NE(text.find("c.yaml:2:10: workers: wrong value: found '65', expected a whole number in 1..64"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("timeout: wrong value"), std::string::npos) << text;
  EXPECT_NE(text.find("strict: wrong value: found 'yes', expected true or false"), std::string::npos) << text;
  EXPECT_NE(text.find("c.yaml:1:1: rules is missing"), std::string::npos) << text;
  EXPECT_EQ(parameters.error().size(), 5U);
}

TEST(Parameters, HaveOneNormalFormForTextsWithTheSameMeaning) {
  const auto form_of = [](const char* name, const char* text) {
    const auto table = std::to_array<Parameter>({{"time", ParameterType::duration, "", "", ""},
                                                 {"size", ParameterType::size, "", "", ""},
                                                 {"rate", ParameterType::rate, "", "", ""},
                                                 {"word", ParameterType::text, "", "", ""}});
    const auto parameters = Parameters::read(table, {raw(name, text)}, {});
    EXPECT_TRUE(parameters) << to_string(parameters.error());
    const auto parameter = std::find_if(table.begin(), table.end(), [&](const Parameter& p) { return p.name == name; });
    return parameters ? parameters->normal_form(*parameter) : "";
  };
  EXPECT_EQ(form_of("time", "1ms"), form_of("time", "1000us"));
  EXPECT_NE(form_of("time", "1ms"), form_of("time", "1us"));
  EXPECT_EQ(form_of("size", "1MiB"), form_of("size", "1024KiB"));
  EXPECT_EQ(form_of("rate", "1Gbps"), form_of("rate", "1000Mbps"));
  EXPECT_NE(form_of("rate", "1Gbps"), form_of("rate", "1Gpps"));
  EXPECT_NE(form_of("word", "1ms"), form_of("word", "1000us"));

  const auto pairs = std::to_array<Parameter>({{"map", ParameterType::pairs, "", "", ""}});
  const auto paths = std::to_array<Parameter>({{"map", ParameterType::paths, "", "", ""}});
  const auto form_of_items = [](ParameterTable table, RawParameter::Shape shape, std::vector<std::string> items) {
    RawParameter given = raw("map", "");
    given.shape = shape;
    given.items = std::move(items);
    return Parameters::read(table, {given}, {}).value().normal_form(table[0]);
  };
  using Shape = RawParameter::Shape;
  EXPECT_EQ(form_of_items(pairs, Shape::mapping, {"a=1", "b=2"}), form_of_items(pairs, Shape::mapping, {"b=2", "a=1"}));
  EXPECT_NE(form_of_items(paths, Shape::list, {"/a", "/b"}), form_of_items(paths, Shape::list, {"/b", "/a"}));
  EXPECT_NE(form_of_items(paths, Shape::list, {"/a 2:/b"}), form_of_items(paths, Shape::list, {"/a", "/b"}));
}

TEST(Parameters, AWordMayMeanNoPath) {
  const auto none = Parameters::read(kTable, {raw("rules", "r.txt"), raw("folder", "none")}, {});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->text("folder"), "none");
  EXPECT_EQ(none->files().size(), 1U) << "the rules alone";
  const auto some = Parameters::read(kTable, {raw("rules", "r.txt"), raw("folder", "./none")}, {});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->text("folder"), "/etc/penstock/none");
  EXPECT_EQ(some->files().size(), 2U);
}

TEST(Parameters, RefusesAListForASingleValue) {
  RawParameter list = raw("workers", "1");
  list.items = {"1", "2"};
  list.shape = RawParameter::Shape::list;
  const auto parameters = Parameters::read(kTable, {raw("rules", "r"), list}, {});
  ASSERT_FALSE(parameters);
  EXPECT_NE(to_string(parameters.error()).find("found a list"), std::string::npos);
}

TEST(Parameters, ReadsCommaSeparatedNumbersAndLists) {
  constexpr std::array<Parameter, 1> kNumbers{{{"gpus", ParameterType::integers, "", "0..9", "which"}}};
  const auto read = [&](std::vector<std::string> items, RawParameter::Shape shape) {
    return Parameters::read(kNumbers, {{"gpus", {}, {}, std::move(items), shape, ""}}, {});
  };
  using Numbers = std::vector<std::uint64_t>;
  constexpr auto kScalar = RawParameter::Shape::scalar;
  constexpr auto kList = RawParameter::Shape::list;
  EXPECT_EQ(read({"2, 0"}, kScalar)->integers("gpus"), (Numbers{2, 0}));
  EXPECT_EQ(read({"2", "0"}, kList)->integers("gpus"), (Numbers{2, 0}));
  EXPECT_EQ(read({"2", "0"}, kList)->text("gpus"), "2,0");
  EXPECT_EQ(to_string(read({"0,10"}, kScalar).error()),
            "gpus: wrong value: found '0,10', expected distinct whole numbers such as 0,1 in 0..9");
  EXPECT_EQ(to_string(read({"1", "1"}, kList).error()),
            "gpus: wrong value: found '[1, 1]', expected distinct whole numbers such as 0,1 in 0..9");
  EXPECT_FALSE(read({""}, kScalar));
}

TEST(Parameters, RequiresARateInTheUnitOfItsRange) {
  constexpr std::array<Parameter, 1> kRates{{{"rate", ParameterType::rate, "", "1Mbps..1Tbps", "how much"}}};
  const auto read = [&](const char* text) { return Parameters::read(kRates, {raw("rate", text)}, {}); };
  EXPECT_EQ(read("1Tbps")->rate("rate").value, 1e12);
  EXPECT_EQ(to_string(read("2Mpps").error()),
            "c.yaml:2:10: rate: wrong value: found '2Mpps', expected a rate in 1Mbps..1Tbps");
  EXPECT_FALSE(read("1kbps"));
  EXPECT_FALSE(read("2Tbps"));
}

TEST(Parameters, ReportsMistakesOfAWholeFileWhereItIsNamed) {
  const auto parameters = Parameters::read(kTable, {raw("rules", "r.txt")}, {});
  ASSERT_TRUE(parameters) << to_string(parameters.error());
  const Errors placed = parameters->placed({{{"/etc/penstock/r.txt", 0, 0}, "cannot open", "no such file", ""},
                                            {{"/etc/penstock/r.txt", 7, 0}, "not a rule", "", ""},
                                            {{"other.txt", 0, 0}, "cannot open", "", ""}});
  EXPECT_EQ(to_string(placed),
            "c.yaml:2:10: /etc/penstock/r.txt: cannot open: found no such file\n"
            "/etc/penstock/r.txt:7: not a rule\n"
            "other.txt: cannot open");
}

TEST(Parameters, SuggestsTheNearestNameOrListsAll) {
  constexpr std::array<std::string_view, 2> kKnown{"lan", "wan"};
  EXPECT_EQ(expected_name("lna", kKnown), "lan");
  EXPECT_EQ(expected_name("internet", kKnown), "one of lan, wan");
  EXPECT_EQ(expected_name("dmz", kKnown), "one of lan, wan");
  constexpr std::array<std::string_view, 3> kCommands{"run", "check", "plan"};
  EXPECT_EQ(nearest_name("scan", kCommands), "") << "half of it is another word";
  EXPECT_EQ(nearest_name("paln", kCommands), "plan");
  EXPECT_EQ(nearest_name("chck", kCommands), "check");
  EXPECT_EQ(expected_name("x", {}), "");
}

TEST(Parameters, RefusesDuplicateNames) {
  EXPECT_FALSE(Parameters::read(kTable, {raw("rules", "r"), raw("rules", "q")}, {}));
}

constexpr std::array<Parameter, 3> kEntry{{
    {"name", ParameterType::text, "", "", "a name", true},
    {"count", ParameterType::integer, "3", "1..9", "a number"},
    {"file", ParameterType::path, "", "", "a file"},
}};
constexpr ParameterTable kEntryTable{kEntry};
constexpr std::array<Parameter, 2> kWithEntries{{
    {"list", ParameterType::entries, "", "", "several things", true, &kEntryTable},
    {"way", ParameterType::pairs, "", "left|right", "where to"},
}};

RawParameter list_of(std::vector<std::vector<RawParameter>> entries) {
  RawParameter list{"list", {"c.yaml", 2, 3}, {"c.yaml", 3, 1}, {}, RawParameter::Shape::entries, ""};
  for (std::uint32_t i = 0; i < entries.size(); ++i) list.item_places.push_back({"c.yaml", 4 + i, 3});
  list.entries = std::move(entries);
  return list;
}

TEST(Parameters, ReadsAListOfMappingsWithATableOfItsOwn) {
  const auto parameters = Parameters::read(
      kWithEntries, {list_of({{raw("name", "a")}, {raw("name", "b"), raw("count", "5"), raw("file", "f")}})}, {});
  ASSERT_TRUE(parameters) << to_string(parameters.error());
  const std::vector<Parameters>& entries = parameters->entries("list");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].text("name"), "a");
  EXPECT_EQ(entries[0].integer("count"), 3U);
  EXPECT_EQ(entries[1].integer("count"), 5U);
  ASSERT_EQ(parameters->files().size(), 1U) << "so that errors in the file are placed";
  EXPECT_EQ(parameters->files()[0].path, "/etc/penstock/f");
  EXPECT_EQ(parameters->shown("list"), "[{count: 3, name: a}, {count: 5, file: /etc/penstock/f, name: b}]");
  const auto again = Parameters::read(
      kWithEntries,
      {list_of({{raw("name", "a"), raw("count", "3")}, {raw("file", "f"), raw("count", "5"), raw("name", "b")}})}, {});
  EXPECT_EQ(again->normal_form(kWithEntries[0]), parameters->normal_form(kWithEntries[0]));
  EXPECT_NE(again->normal_form(kWithEntries[0]),
            Parameters::read(kWithEntries, {list_of({{raw("name", "a")}})}, {})->normal_form(kWithEntries[0]));
}

TEST(Parameters, AWordCanStandInThePlaceOfFiles) {
  const std::vector<Parameter> table{{"files", ParameterType::paths, "", "kernel", "", true}};
  const auto word = Parameters::read(table, {raw("files", "kernel")}, {});
  ASSERT_TRUE(word) << to_string(word.error());
  EXPECT_TRUE(word->is_word("files"));
  EXPECT_TRUE(word->files().empty());
  const auto file = Parameters::read(table, {raw("files", "./kernel")}, {});
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_FALSE(file->is_word("files"));
  EXPECT_EQ(file->files().size(), 1U);
}

TEST(Parameters, ReportsMistakesInAListOfMappingsAtTheirPlaces) {
  const auto parameters =
      Parameters::read(kWithEntries, {list_of({{raw("nam", "a")}, {raw("name", "b"), raw("count", "x")}})}, {});
  ASSERT_FALSE(parameters);
  const std::string text = to_string(parameters.error());
  EXPECT_NE(text.find("c.yaml:2:3: unknown parameter: found 'nam', expected name"), std::string::npos) << text;
  EXPECT_NE(text.find("c.yaml:4:3: name is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("c.yaml:2:10: count: wrong value: found 'x'"), std::string::npos) << text;
  const auto word = Parameters::read(kWithEntries, {raw("list", "a")}, {});
  ASSERT_FALSE(word);
  EXPECT_NE(to_string(word.error()).find("list: wrong value: found 'a', expected a list of mappings"),
            std::string::npos);
}

TEST(Parameters, AWordMayStandForAMapping) {
  const RawParameter list = list_of({{raw("name", "a")}});
  const auto left = Parameters::read(kWithEntries, {list, raw("way", "left")}, {});
  ASSERT_TRUE(left) << to_string(left.error());
  EXPECT_EQ(left->texts("way"), std::vector<std::string>{"left"});
  RawParameter mapping = raw("way", "to=there");
  mapping.shape = RawParameter::Shape::mapping;
  EXPECT_TRUE(Parameters::read(kWithEntries, {list, mapping}, {}));
  const auto wrong = Parameters::read(kWithEntries, {list, raw("way", "up")}, {});
  ASSERT_FALSE(wrong);
  EXPECT_NE(to_string(wrong.error()).find("way: wrong value: found 'up', expected left, right or a mapping"),
            std::string::npos)
      << to_string(wrong.error());
}

}  // namespace
}  // namespace penstock
