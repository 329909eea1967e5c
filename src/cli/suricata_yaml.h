// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule variables from YAML: those of a suricata.yaml (`vars`, with `address-groups` and `port-groups`), of which
// nothing else is used, and those of a mapping on the command line. Duplicate keys are errors.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

struct RuleVariable {
  std::string name;
  std::string value;  // "[10.0.0.0/8,192.168.0.0/16]", in the syntax of the rules
  Place place;
};

struct SuricataYaml {
  std::vector<RuleVariable> variables;  // in the order of the file
  std::vector<std::string> not_used;    // other sections of the file, such as "rule-files"
  Errors warnings;                      // for example, if the file has no variables
};

/// Sections other than `vars` are not checked. In `vars`, everything except groups of variables is an error.
[[nodiscard]] Result<SuricataYaml> read_suricata_yaml(const std::string& path);

/// Reads variables from "{HOME_NET: 10.0.0.0/8, HTTP_PORTS: [80, 8080]}". `name` is used as the file name in places.
[[nodiscard]] Result<std::vector<RuleVariable>> read_variables(const std::string& text, const std::string& name);

}  // namespace penstock::cli
