// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/yaml_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace penstock::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The error for `text`; "" if it can be read and is within the limits.
std::string refusal(const std::string& text) {
  const auto file = YamlFile::of_text(text, "c.yaml");
  if (!file) return to_string(file.error());
  const auto within = file->check_bounds();
  return within ? "" : to_string(within.error());
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(YamlFile, RefusesADocumentOfTooManyBytes) {
  EXPECT_EQ(refusal("a: b #" + repeated("x", YamlFile::kMostBytes - 6)), "");
  EXPECT_EQ(refusal("a: b #" + repeated("x", YamlFile::kMostBytes - 5)),
            "c.yaml: the chain file is too large: found more than 4.0 MiB, expected at most 4.0 MiB");
}

TEST(YamlFile, RefusesADocumentOfTooManyValues) {
  // The mapping, its key and the list count as values too.
  EXPECT_EQ(refusal("a: [" + repeated("b,", YamlFile::kMostValues - 3) + "]"), "");
  EXPECT_EQ(refusal("a: [" + repeated("b,", YamlFile::kMostValues - 2) + "]"),
            "c.yaml:1:499999: too many values: found more than 250,000, expected at most 250,000");
}

TEST(YamlFile, CountsTheValuesOfAnAliasEachTime) {
  // Level k has 9^k values.
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("a{}: &a{} [{}]\n", i, i, repeated(fmt::format("*a{},", i - 1), 9));
    if (i == 3) {
      EXPECT_EQ(refusal(text), "");
    }
  }
  EXPECT_THAT(refusal(text), HasSubstr("too many values after expanding aliases: found more than 250,000"));
}

TEST(YamlFile, RefusesValuesThatAreNestedTooDeeply) {
  // The document's mapping is the first level.
  const auto lists = [](std::size_t depth) { return "a: " + repeated("[", depth) + repeated("]", depth); };
  EXPECT_EQ(refusal(lists(YamlFile::kMostDepth - 1)), "");
  EXPECT_EQ(refusal(lists(YamlFile::kMostDepth)),
            "c.yaml:1:35: values nested too deeply: found more than 32 levels, expected at most 32");
  EXPECT_THAT(refusal("a: &a [*a]"), HasSubstr("values nested too deeply")) << "a list in itself";
  EXPECT_THAT(refusal(lists(100'000)), StartsWith("c.yaml:1:"));
}

TEST(YamlFile, RefusesAnOverrideOfTooManyKeys) {
  auto file = YamlFile::of_text("a: {}", "c.yaml");
  EXPECT_TRUE(file->set("a" + repeated(".a", YamlFile::kMostKeys - 1), "1", "--set", ""));
  const auto refused = file->set("a" + repeated(".a", YamlFile::kMostKeys), "1", "--set", "");
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.error()), StartsWith("--set: too many keys: found 'a.a.a"));
  EXPECT_THAT(to_string(refused.error()), HasSubstr("expected at most 32, joined by dots"));
}

TEST(YamlFile, TruncatesTheTextOfALongOverride) {
  auto file = YamlFile::of_text("a: b", "c.yaml");
  const std::string list = "[" + repeated("x,", 60'000) + "]";
  ASSERT_TRUE(file->set("a", list, "--set a=" + list, ""));
  const YAML::Node items = file->root()["a"];
  ASSERT_EQ(items.size(), 60'000U);
  for (const auto& item : items) EXPECT_EQ(file->place(item).file, "--set a=" + list.substr(0, 192) + "…");
}

constexpr auto kEntry = std::to_array<Parameter>(
    {{"name", ParameterType::text, "", "", "", true}, {"way", ParameterType::pairs, "", "left|right", ""}});
constexpr ParameterTable kEntryTable{kEntry};
constexpr auto kList = std::to_array<Parameter>({{"list", ParameterType::entries, "", "", "", false, &kEntryTable}});

Result<Parameters> read_list(const std::string& text) {
  const auto file = YamlFile::of_text(text, "c.yaml");
  if (!file) return failure(file.error());
  Errors errors;
  const std::vector<RawParameter> raw = file->parameters(file->root(), kList, errors);
  Result<Parameters> read = Parameters::read(kList, raw, {"c.yaml", 1, 1});
  if (!read) append(errors, read.error());
  if (!errors.empty()) return failure(std::move(errors));
  return read;
}

TEST(YamlFile, ReadsListsOfMappings) {
  const auto read = read_list("list:\n  - {name: a, way: left}\n  - name: b\n    way: {to: there}\n");
  ASSERT_TRUE(read) << to_string(read.error());
  const std::vector<Parameters>& entries = read->entries("list");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].text("name"), "b");
  EXPECT_EQ(entries[1].texts("way"), std::vector<std::string>{"to=there"});
}

TEST(YamlFile, ReportsMistakesInListsOfMappingsAtTheirPlaces) {
  EXPECT_EQ(to_string(read_list("list:\n  - {way: left}\n  - a\n  - {name: c, colour: red}\n").error()).substr(0, 6),
            "c.yaml");
  EXPECT_THAT(to_string(read_list("list:\n  - a\n").error()),
              HasSubstr("c.yaml:2:5: wrong value: found 'a', expected a mapping of parameters"));
  EXPECT_THAT(to_string(read_list("list:\n  - {way: left}\n").error()), HasSubstr("c.yaml:2:5: name is missing"));
  EXPECT_THAT(to_string(read_list("list:\n  - {name: c, colour: red}\n").error()),
              HasSubstr("c.yaml:2:15: unknown parameter: found 'colour'"));
  EXPECT_THAT(to_string(read_list("list: {name: a}\n").error()), HasSubstr("list: wrong value"));
  EXPECT_THAT(to_string(read_list("list: []\n").error()), HasSubstr("list: wrong value: found an empty list"));
}

}  // namespace
}  // namespace penstock::config
