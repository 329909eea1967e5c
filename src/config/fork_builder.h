// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts the condition of an arm from its description in the chain file to the form that packets are tested against.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/chain_description.h"
#include "plan/fork.h"

namespace penstock::config {

/// What is known at the start of a fork.
struct ForkContext {
  std::span<const std::string> ports{};  // names, by PortIndex
  std::vector<bool> ports_read{};        // by PortIndex
  std::vector<bool> ports_write{};       // by PortIndex
  bool out_port_known = false;           // on every path to the fork, a function chooses the output port
};

/// Makes the arm, without its functions. Empty if its condition has mistakes, which are added to `errors`.
[[nodiscard]] std::optional<plan::Arm> make_arm(const ArmDescription& description, const ForkContext& context,
                                                Errors& errors);

/// "in_port lan|dmz and out_port wan or in_port wan"; "otherwise" if there are no conditions.
[[nodiscard]] std::string describe(std::span<const plan::ArmCondition> conditions, std::span<const std::string> ports);

}  // namespace penstock::config
