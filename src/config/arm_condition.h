// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The conditions of a fork's arm, as `when` has them in a chain file: {in_port: lan}, [{in_port: wan}, {out_port:
// wan}], {out_port: [wan, dmz], mark: 7}.

#pragma once

#include <yaml-cpp/yaml.h>

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/yaml_file.h"
#include "plan/fork.h"

namespace penstock::config {

/// What is known where the fork begins.
struct ForkContext {
  std::span<const std::string> ports;  // names, by PortIndex
  std::vector<bool> ports_read{};      // the same
  std::vector<bool> ports_write{};
  bool out_port_known = false;  // on every way to the fork, a function chooses the port that packets leave by
  bool marks_set = false;       // on some way to the fork, a function sets marks
};

/// One condition, or a list of which one must hold. Mistakes go to `errors`; then there may be none.
[[nodiscard]] std::vector<plan::ArmCondition> read_arm_conditions(const YamlFile& file, const YAML::Node& when,
                                                                  const ForkContext& context, Errors& errors);

/// "in_port lan|dmz and mark 0x7/0xff or out_port lan"; "otherwise" where there are none.
[[nodiscard]] std::string describe(std::span<const plan::ArmCondition> conditions, std::span<const std::string> ports);

}  // namespace penstock::config
