// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Variables of rules as YAML has them: those of a suricata.yaml (`vars`, with `address-groups` and `port-groups`), of
// which nothing else is used, and those of a mapping on a command line. A key that is given twice is an error.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

struct RuleVariable {
  std::string name;
  std::string value;  // "[10.0.0.0/8,192.168.0.0/16]", as the rules' readers take it
  Place place;
};

struct SuricataYaml {
  std::vector<RuleVariable> variables;  // in the file's order
  std::vector<std::string> not_used;    // the file's other sections, "rule-files"
  Errors warnings;                      // the file has no variables
};

/// Sections other than `vars` are not checked. In `vars`, whatever is not a group of variables is an error.
[[nodiscard]] Result<SuricataYaml> read_suricata_yaml(const std::string& path);

/// Of "{HOME_NET: 10.0.0.0/8, HTTP_PORTS: [80, 8080]}"; `name` stands in places.
[[nodiscard]] Result<std::vector<RuleVariable>> read_variables(const std::string& text, const std::string& name);

}  // namespace penstock::cli
