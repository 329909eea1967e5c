// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_reader.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/testing/file_content.h"
#include "nf/nids/rules/load_table.h"
#include "nf/nids/rules/options.h"
#include "nf/nids/rules/rules_for_test.h"

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RuleFilesTest : public ::testing::Test {
 protected:
  RuleFilesTest() : folder_(std::filesystem::temp_directory_path() / ("rule_reader_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~RuleFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string put(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string put_gzip(const std::string& name, std::string_view text) const {
    const std::string path = (folder_ / name).string();
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path;
  }

 private:
  std::filesystem::path folder_;
};

std::vector<std::uint32_t> sids(const RuleSet& set) {
  std::vector<std::uint32_t> all;
  for (const Rule& rule : set.rules) all.push_back(rule.sid);
  return all;
}

std::string numbered(std::uint32_t sid, std::string_view options = "") {
  return "alert ip any any -> any any (" + std::string(options) + " sid:" + std::to_string(sid) + ";)\n";
}

TEST_F(RuleFilesTest, ReadsSeveralFilesCompressedOrNot) {
  RuleFiles files;
  files.rules = {put("a.rules", numbered(1)), put_gzip("b.rules.gz", numbered(2) + numbered(3))};
  const auto set = read_rules(files);
  ASSERT_TRUE(set) << to_string(set.error());
  EXPECT_THAT(sids(*set), ElementsAre(1, 2, 3));
  EXPECT_EQ(set->rules[2].file, files.rules[1]);
  EXPECT_EQ(set->rules[2].line, 2U);
}

TEST_F(RuleFilesTest, FailsIfAFileCannotBeRead) {
  RuleFiles files;
  files.rules = {put("a.rules", numbered(1)), "/no/such/file.rules"};
  const auto set = read_rules(files);
  ASSERT_FALSE(set);
  EXPECT_THAT(to_string(set.error()), HasSubstr("/no/such/file.rules"));
}

TEST_F(RuleFilesTest, TakesClassesAndReferencesFromFiles) {
  RuleFiles files;
  files.rules = {
      put("a.rules", numbered(1, "classtype:Ours; reference:tracker,9;") + numbered(2, "classtype:bad-unknown;"))};
  files.classification = put("classification.config", "# ours\nconfig classification: ours,Something, of ours,4\n");
  files.reference = put("reference.config", "config reference: tracker https://example.org/\n");
  const auto set = read_rules(files);
  ASSERT_TRUE(set) << to_string(set.error());
  EXPECT_EQ(set->rules[0].priority, 4);
  EXPECT_EQ(set->rules[0].class_description, "Something, of ours");
  EXPECT_EQ(set->rules[1].class_description, "");
  EXPECT_EQ(set->references.at("tracker"), "https://example.org/");
}

TEST_F(RuleFilesTest, ReportsClassesThatClassificationConfigDoesNotHave) {
  RuleFiles files;
  files.rules = {put("a.rules", numbered(1, "classtype:Ours;") + numbered(2, "classtype:ousr;") +
                                    numbered(3, "classtype:OUSR;") + numbered(4, "classtype:bad-unknown;") +
                                    numbered(5, "classtype:left-out; content:nonsense;"))};
  files.classification = put("classification.config", "config classification: ours,Something, of ours,4\n");
  const auto set = read_rules(files);
  ASSERT_TRUE(set) << to_string(set.error());
  EXPECT_THAT(sids(*set), ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(set->unknown_classes.size(), 2U) << "of rules that are loaded";
  EXPECT_EQ(set->unknown_classes.at("ousr").rules, 2U);
  EXPECT_EQ(set->unknown_classes.at("ousr").place.line, 2U);
  EXPECT_EQ(set->unknown_classes.at("ousr").name, "ousr");
  EXPECT_EQ(set->unknown_classes.at("ousr").meant, "ours");
  EXPECT_EQ(set->unknown_classes.at("bad-unknown").meant, "");
}

TEST(RuleReader, NamesAHundredUnknownClassesAndCountsTheRulesOfOthers) {
  std::string text;
  for (std::uint32_t i = 0; i < 103; ++i) text += numbered(1 + i, "classtype:c" + std::to_string(i) + ";");
  text += numbered(200, "classtype:c0;");
  const auto set = read_rules_text(text);
  ASSERT_TRUE(set) << to_string(set.error());
  EXPECT_EQ(set->unknown_classes.size(), 100U);
  EXPECT_EQ(set->unknown_classes.at("c0").rules, 2U);
  EXPECT_EQ(set->more_rules_of_unknown_classes, 3U);
}

TEST_F(RuleFilesTest, NamesTheLineOfAWrongClassOrReference) {
  RuleFiles files;
  files.classification = put("classification.config", "config classification: a,b,1\nconfig classification: a,b\n");
  files.reference = put("reference.config", "reference: a b\n");
  files.threshold = put("threshold.config", "\n\nthreshold gen_id 1, sig_id x\n");
  const auto set = read_rules(files);
  ASSERT_FALSE(set);
  const std::string errors = to_string(set.error());
  EXPECT_THAT(errors, HasSubstr("classification.config:2:"));
  EXPECT_THAT(errors, HasSubstr("reference.config:1:"));
  EXPECT_THAT(errors, HasSubstr("threshold.config:3:"));
}

TEST_F(RuleFilesTest, AppliesThresholdsAsSuricataDoes) {
  RuleFiles files;
  files.rules = {put("a.rules", numbered(1) + numbered(2, "threshold:type limit, track by_src, count 9, seconds 9;") +
                                    numbered(3) + numbered(4, "gid:7;") +
                                    numbered(5, "threshold:type limit, track by_src, count 9, seconds 9;"))};
  files.threshold =
      put("threshold.config",
          "# ours\n"
          "threshold gen_id 1, sig_id 1, type both, track by_dst, count 2, seconds 30\n"
          "event_filter gen_id 1, sig_id 2, \\\n type threshold, track by_rule, count 3, seconds 4\n"
          "rate_filter gen_id 1, sig_id 3, track by_both, count 5, seconds 6, new_action drop, timeout 7\n"
          "rate_filter gen_id 1, sig_id 5, track by_src, count 5, seconds 6, new_action drop, timeout 7\n"
          "threshold gen_id 7, sig_id 0, type limit, track by_src, count 1, seconds 1\n"
          "suppress gen_id 1, sig_id 1\n"
          "suppress gen_id 1, sig_id 0, track by_either, ip [10.0.0.0/8,!10.0.0.1]\n"
          "threshold gen_id 1, sig_id 99, type limit, track by_src, count 1, seconds 1\n");
  const auto set = read_rules(files);
  ASSERT_TRUE(set) << to_string(set.error());
  EXPECT_EQ(set->rules[0].threshold->type, Threshold::Type::both);
  EXPECT_EQ(set->rules[0].threshold->seconds, 30U);
  // A line for its sid takes precedence over the rule's own …
  EXPECT_EQ(set->rules[1].threshold->type, Threshold::Type::threshold);
  EXPECT_EQ(set->rules[1].threshold->track, TrackBy::rule);
  EXPECT_EQ(set->rules[2].threshold->type, Threshold::Type::rate_filter);
  EXPECT_EQ(set->rules[2].threshold->new_action, Action::drop);
  EXPECT_EQ(set->rules[2].threshold->timeout_s, 7U);
  EXPECT_EQ(set->rules[3].threshold->count, 1U);
  // … except rate_filter.
  EXPECT_EQ(set->rules[4].threshold->type, Threshold::Type::limit);
  ASSERT_EQ(set->suppressions.size(), 2U);
  EXPECT_TRUE(set->suppressions[0].always);
  EXPECT_FALSE(set->suppressions[1].always);
  EXPECT_EQ(set->suppressions[1].track, TrackBy::both);
  EXPECT_TRUE(set->suppressions[1].addresses.contains(*parse_ipv4("10.0.0.2")));
  EXPECT_FALSE(set->suppressions[1].addresses.contains(*parse_ipv4("10.0.0.1")));
}

TEST_F(RuleFilesTest, RefusesWrongThresholdLines) {
  for (const char* line : {
           "nonsense gen_id 1, sig_id 1",
           "threshold",
           "threshold gen_id 1",
           "threshold gen_id 1, sig_id 1, type limit, track by_src, count 1",
           "threshold gen_id 1, sig_id 1, type limit, track by_nobody, count 1, seconds 1",
           "threshold gen_id 1, sig_id 1, type limit, track by_src, count 0, seconds 1",
           "threshold gen_id 1, sig_id 1, type backoff, track by_src, count 1, multiplier 2",
           "threshold gen_id 0, sig_id 1, type limit, track by_src, count 1, seconds 1",
           "threshold gen_id 1, gen_id 1, sig_id 1, type limit, track by_src, count 1, seconds 1",
           "rate_filter gen_id 1, sig_id 1, track by_src, count 1, seconds 1, timeout 1",
           "rate_filter gen_id 1, sig_id 1, track by_src, count 1, seconds 1, new_action burn, timeout 1",
           "suppress gen_id 1, sig_id 1, track by_src",
           "suppress gen_id 1, sig_id 1, ip 10.0.0.1",
           "suppress gen_id 1, sig_id 1, track by_src, ip nowhere",
       }) {
    RuleFiles files;
    files.threshold = put("threshold.config", line);
    EXPECT_FALSE(read_rules(files)) << line;
  }
}

TEST(RuleReader, TakesThresholdLinesBetweenRulesAsSnortDoes) {
  const RuleSet set =
      rules_of(numbered(1) + "threshold gen_id 1, sig_id 1, type limit, track by_src, count 1, seconds 60\n" +
               "suppress gen_id 1, sig_id 1, track by_src, ip 10.0.0.1\n" + "suppress gen_id x\n");
  EXPECT_EQ(set.rules[0].threshold->type, Threshold::Type::limit);
  EXPECT_EQ(set.suppressions.size(), 1U);
  EXPECT_EQ(set.left_out.size(), 1U);
}

TEST(RuleReader, KeepsTheHighestRevisionOfASid) {
  const RuleSet set = rules_of(numbered(1, "rev:1;") + numbered(2) + numbered(1, "rev:3;") + numbered(1, "rev:2;") +
                               numbered(2) + numbered(2, "gid:5;"));
  ASSERT_EQ(set.rules.size(), 3U);
  EXPECT_THAT(sids(set), ElementsAre(2, 1, 2));
  EXPECT_EQ(set.rules[1].rev, 3U);
  EXPECT_EQ(set.rules[2].gid, 5U);
  ASSERT_EQ(set.left_out.size(), 3U);
  EXPECT_EQ(set.left_out[0].reason, "duplicate sid");
  EXPECT_EQ(set.left_out[0].why.place.line, 1U);
  EXPECT_EQ(set.left_out[1].why.place.line, 4U);
  EXPECT_EQ(set.left_out[2].why.place.line, 5U);
}

TEST(RuleReader, AWrongVariableIsAnError) {
  const auto set = read_rules_text("", "x", {{"HOME_NET", "10.0.0.0/99"}});
  ASSERT_FALSE(set);
  EXPECT_THAT(to_string(set.error()), HasSubstr("$HOME_NET"));
}

TEST(RuleReader, AnUnknownVariableLeavesTheRuleOut) {
  EXPECT_THAT(complaint_of("alert tcp $MY_NET any -> any any (sid:1;)"), HasSubstr("unknown variable"));
}

TEST(RuleReader, CountsRulesLeftOutByReason) {
  const RuleSet set = rules_of(numbered(1) + "alert http any any -> any any (sid:2;)\n" +
                               "alert http any any -> any any (sid:3;)\n" + numbered(4, "nonsense;") + "#" +
                               numbered(5) + "alert tcp any any -> any any (content:\"a\"; http_uri; sid:6;)\n");
  EXPECT_THAT(set.left_out_by_reason(), ElementsAre(std::pair<const std::string, std::size_t>("option http_uri", 1),
                                                    std::pair<const std::string, std::size_t>("protocol http", 2),
                                                    std::pair<const std::string, std::size_t>("unknown option", 1)));
  const LoadTable table = load_table(set);
  EXPECT_EQ(table.loaded, 1U);
  EXPECT_EQ(table.disabled, 1U);
  ASSERT_EQ(table.left_out.size(), 3U);
  EXPECT_EQ(table.left_out[0].reason, "protocol http");
  EXPECT_EQ(table.left_out[0].rules, 2U);
  EXPECT_EQ(table.left_out[0].first.place.line, 2U);
  EXPECT_THAT(to_string(table), HasSubstr("1 rule loaded, 4 left out, 1 disabled"));
}

TEST(RuleReader, ReportsTheSidOfARuleThatIsLeftOut) {
  const RuleSet set = rules_of("alert tcp any any -> any any (nonsense; sid:4711;)");
  ASSERT_EQ(set.left_out.size(), 1U);
  EXPECT_EQ(set.left_out[0].sid, 4711U);
}

TEST(RuleReader, QuotedTextIsPrintableAndHasALimit) {
  const std::string found =
      rules_of("alert tcp any any -> any any (\x1b[31m" + std::string(5000, 'x') + "; sid:1;)").left_out[0].why.found;
  EXPECT_LT(found.size(), 200U);
  EXPECT_EQ(found.find('\x1b'), std::string::npos);
}

TEST(RuleReader, RulesOfStreamsHaveNoOptionsOfPackets) {
  for (const char* options : {"dsize:4;", "flags:S;", "ttl:4;", "tcp.hdr; content:\"a\";", "flow:no_stream;"}) {
    EXPECT_THAT(complaint_with(options, "tcp-stream"), HasSubstr("combination | ")) << options;
  }
  EXPECT_THAT(complaint_with("flow:only_stream; dsize:4;"), HasSubstr("combination | "));
  EXPECT_THAT(complaint_with("flow:only_stream;", "tcp-pkt"), HasSubstr("combination | "));
  EXPECT_EQ(complaint_with("stream_size:client,<,40; content:\"a\"; stream-event:reassembly_seq_gap;", "tcp-stream"),
            "");
  EXPECT_EQ(complaint_with("base64_decode; base64_data; content:\"a\";", "tcp-stream"), "");
}

TEST(RuleReader, ItsManualNamesEveryOption) {
  const std::string manual = penstock::testing::content_of(PENSTOCK_SOURCE_DIR "/src/nf/nids/rules/README.md");
  for (const OptionKind& option : all_options()) {
    EXPECT_THAT(manual, HasSubstr("`" + std::string(option.name) + "`"));
  }
}

TEST(RuleReader, ManyVariablesInOneRuleHaveALimit) {
  std::string options;
  for (int i = 0; i < 2000; ++i) options += "byte_extract:1,0,v" + std::to_string(i) + ";";
  EXPECT_THAT(complaint_with(options), HasSubstr("too many variables"));
}

}  // namespace
}  // namespace penstock::nids
