// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function of a chain that another process serves (Gaviss, IEEE TPDS 2022, §3.2 and §4): to the chain, a network
// function like any other. Its CPU stages give their bursts to that process, and wait. What comes back is checked. If
// the process goes, is silent or lies, its packets are treated as the chain file says, until it is back.

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/parameter.h"
#include "function/network_function.h"
#include "process/description.h"

namespace penstock::process {

struct RemoteSettings {
  std::string socket;
  std::string function;                 // its kind
  bool passes_when_lost = false;        // packets that it has not decided about; otherwise they are dropped
  std::chrono::nanoseconds patience{};  // for a burst
  bool in_place = false;                // a function that changes bytes does so in the chain's memory
  bool in_proxy = false;                // the chain's lanes are in a proxy, where the function may have a stage
  Surroundings surroundings;
};

/// Connects to the process. An error says why it cannot be used.
[[nodiscard]] Result<std::unique_ptr<function::NetworkFunction>> connect_function(RemoteSettings settings);

/// Whether it is a function in another process that follows flows there: its traits say nothing of that, since the
/// chain's stack has nothing to do with it.
[[nodiscard]] bool follows_flows(const function::NetworkFunction& function) noexcept;

/// What a chain file says about a function in another process, in place of the function's own parameters.
[[nodiscard]] ParameterTable remote_parameters() noexcept;
/// `parameters` are of that table. The function and its surroundings are the caller's to set.
[[nodiscard]] Result<RemoteSettings> remote_settings(const Parameters& parameters);

}  // namespace penstock::process
