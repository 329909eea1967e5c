// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// From the condition of an arm as its chain file has it to the one that packets are tested with.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/chain_description.h"
#include "plan/fork.h"

namespace penstock::config {

/// What is known where a fork begins.
struct ForkContext {
  std::span<const std::string> ports{};  // names, by PortIndex
  std::vector<bool> ports_read{};        // by PortIndex
  std::vector<bool> ports_write{};       // by PortIndex
  bool out_port_known = false;           // on every path to the fork, a function chooses the port that packets leave by
};

/// The arm, without its functions. None if its condition has mistakes, which go to `errors`.
[[nodiscard]] std::optional<plan::Arm> make_arm(const ArmDescription& description, const ForkContext& context,
                                                Errors& errors);

/// "in_port lan|dmz and out_port wan or in_port wan"; "otherwise" if there are none.
[[nodiscard]] std::string describe(std::span<const plan::ArmCondition> conditions, std::span<const std::string> ports);

}  // namespace penstock::config
