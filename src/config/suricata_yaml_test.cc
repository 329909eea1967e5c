// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/suricata_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace penstock::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SuricataYamlFile : public ::testing::Test {
 protected:
  ~SuricataYamlFile() override { std::remove(path_.c_str()); }
  [[nodiscard]] Result<SuricataYaml> read(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_suricata_yaml(path_);
  }
  const std::string path_ = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_suricata.yaml";
};

TEST_F(SuricataYamlFile, GivesItsVariablesAndNamesWhatIsNotUsed) {
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
      "  other-groups: {A: 1}\n"
      "default-rule-path: /var/lib/suricata/rules\n"
      "rule-files:\n"
      "  - suricata.rules\n");
  ASSERT_TRUE(yaml) << to_string(yaml.error());
  std::vector<std::string> variables;
  for (const auto& v : yaml->variables) variables.push_back(v.name + "=" + v.value);
  EXPECT_THAT(variables, ElementsAre("HOME_NET=[192.168.0.0/16,10.0.0.0/8]", "EXTERNAL_NET=!$HOME_NET",
                                     "DNS_SERVERS=[10.0.0.53,10.0.1.53]", "HTTP_PORTS=80", "GENEVE_PORTS=6081"));
  EXPECT_EQ(yaml->variables[1].place.line, 8U);
  EXPECT_THAT(yaml->not_used, ElementsAre("vars.other-groups", "default-rule-path", "rule-files"));
}

TEST_F(SuricataYamlFile, NamesTheLineOfAMistake) {
  const auto refusal = [&](const std::string& text) {
    const auto yaml = read(text);
    EXPECT_FALSE(yaml);
    return yaml ? std::string() : to_string(yaml.error());
  };
  EXPECT_THAT(refusal("vars:\n  address-groups:\n    HOME_NET: {a: b}\n"),
              HasSubstr("_suricata.yaml:3:15: variable HOME_NET: wrong value: found a mapping"));
  EXPECT_THAT(refusal("vars: any\n"), HasSubstr("_suricata.yaml:1:7: vars: wrong value: found 'any'"));
  EXPECT_THAT(refusal("vars: [\n"), HasSubstr("not YAML"));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("not a suricata.yaml"));
  EXPECT_THAT(to_string(read_suricata_yaml("/nowhere.yaml").error()), HasSubstr("/nowhere.yaml: cannot open"));
}

}  // namespace
}  // namespace penstock::config
