// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/suricata_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace penstock::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SuricataYamlFile : public ::testing::Test {
 protected:
  ~SuricataYamlFile() override { std::remove(path_.c_str()); }
  [[nodiscard]] Result<SuricataYaml> read(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_suricata_yaml(path_);
  }
  [[nodiscard]] std::string refusal(const std::string& text) const {
    const auto yaml = read(text);
    EXPECT_FALSE(yaml) << text;
    return yaml ? std::string() : to_string(yaml.error());
  }
  const std::string path_ = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_suricata.yaml";
};

TEST_F(SuricataYamlFile, ReturnsItsVariablesAndUnusedSections) {
  const auto yaml = read(
      "%YAML 1.1\n"
      "---\n"
      "# a comment\n"
      "vars:\n"
      "  address-groups:\n"
      "    HOME_NET: \"[192.168.0.0/16,10.0.0.0/8]\"\n"
      "    #HOME_NET: any\n"
      "    EXTERNAL_NET: \"!$HOME_NET\"\n"
      "    DNS_SERVERS: [10.0.0.53, 10.0.1.53]\n"
      "  port-groups:\n"
      "    HTTP_PORTS: \"80\"\n"
      "    GENEVE_PORTS: 6081\n"
      "default-rule-path: /var/lib/suricata/rules\n"
      "rule-files:\n"
      "  - suricata.rules\n");
  ASSERT_TRUE(yaml) << to_string(yaml.error());
  std::vector<std::string> variables;
  for (const auto& v : yaml->variables) variables.push_back(v.name + "=" + v.value);
  EXPECT_THAT(variables, ElementsAre("HOME_NET=[192.168.0.0/16,10.0.0.0/8]", "EXTERNAL_NET=!$HOME_NET",
                                     "DNS_SERVERS=[10.0.0.53,10.0.1.53]", "HTTP_PORTS=80", "GENEVE_PORTS=6081"));
  EXPECT_EQ(yaml->variables[1].place.line, 8U);
  EXPECT_THAT(yaml->not_used, ElementsAre("default-rule-path", "rule-files"));
  EXPECT_THAT(yaml->warnings, IsEmpty());
}

TEST_F(SuricataYamlFile, NamesTheLineOfAMistake) {
  EXPECT_THAT(refusal("vars:\n  address-groups:\n    HOME_NET: {a: b}\n"),
              HasSubstr("_suricata.yaml:3:15: variable HOME_NET: wrong value: found a mapping"));
  EXPECT_THAT(refusal("vars: any\n"), HasSubstr("_suricata.yaml:1:7: vars: wrong value: found 'any'"));
  EXPECT_THAT(refusal("vars: [\n"), HasSubstr("not YAML"));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("not a suricata.yaml"));
  EXPECT_THAT(to_string(read_suricata_yaml("/nowhere.yaml").error()), HasSubstr("/nowhere.yaml: cannot open"));
}

TEST_F(SuricataYamlFile, RefusesALayoutThatHidesVariables) {
  const std::string start = path_ + ":";
  EXPECT_EQ(refusal("vars:\n  address-groups:\n  HOME_NET: any\n"),
            start + "3:3: vars: unknown group: found 'HOME_NET', expected one of address-groups, port-groups");
  EXPECT_EQ(refusal("vars:\n  adress-groups:\n    HOME_NET: any\n"),
            start + "2:3: vars: unknown group: found 'adress-groups', expected address-groups");
  EXPECT_EQ(refusal("vars:\naddress-groups:\n  HOME_NET: any\n"),
            start +
                "2:1: wrong place for variables: found 'address-groups', expected address-groups and port-groups, "
                "indented under `vars:`");
  EXPECT_THAT(refusal("vars.address-groups:\n  HOME_NET: any\n"), HasSubstr("wrong place for variables"));
  EXPECT_EQ(refusal("Var:\n  address-groups: {HOME_NET: any}\n"),
            start + "1:1: unknown section: found 'Var', expected vars");
  EXPECT_EQ(refusal("vars:\n  address-groups:\n    - HOME_NET: any\n"),
            start +
                "3:5: vars.address-groups: wrong value: found a list, expected a mapping of variables, such as "
                "HOME_NET: 10.0.0.0/8");
  EXPECT_THAT(refusal("vars:\n  port-groups: 80\n"), HasSubstr(":2:16: vars.port-groups: wrong value: found '80'"));
}

TEST_F(SuricataYamlFile, RefusesVariablesWithoutAValue) {
  for (const char* const value : {"", "!$HOME_NET", "[]", "''"}) {
    EXPECT_THAT(refusal(std::string("vars:\n  address-groups:\n    EXTERNAL_NET: ") + value + "\n"),
                AllOf(HasSubstr(":3:"), HasSubstr("variable EXTERNAL_NET: wrong value: found ")));
  }
}

TEST_F(SuricataYamlFile, RefusesDuplicateKeysAndNamesBothPlaces) {
  EXPECT_EQ(
      refusal("vars:\n  address-groups:\n    HOME_NET: 10.0.0.0/8\n  port-groups:\n    HOME_NET: 80\n"),
      path_ + ":5:5: variable HOME_NET: given twice: found here and at " + path_ + ":3:5, expected each key once");
  EXPECT_THAT(refusal("vars:\n  address-groups: {A: any}\n  address-groups: {B: any}\n"),
              AllOf(HasSubstr(":3:3: vars.address-groups: given twice"), HasSubstr(":2:3, expected each key once")));
  EXPECT_THAT(refusal("vars:\nother: 1\nvars:\n"), HasSubstr(":3:1: vars: given twice"));
}

TEST_F(SuricataYamlFile, WarnsIfThereAreNoVariables) {
  const auto warning = [&](const std::string& text) {
    const auto yaml = read(text);
    return yaml && yaml->variables.empty() ? to_string(yaml->warnings) : "variables, or an error";
  };
  const std::string start = path_ + ": no variables are taken from this file: found ";
  EXPECT_THAT(warning("rule-files: [a.rules]\n"), HasSubstr(start + "no `vars`, expected vars: {"));
  EXPECT_THAT(warning("vars:\n"), HasSubstr(start + "`vars` without variables"));
  EXPECT_THAT(warning("vars:\n  address-groups:\n"), HasSubstr(start + "`vars` without variables"));
}

}  // namespace
}  // namespace penstock::cli
