// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What `penstock doctor` found out about one thing.

#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace penstock::cli {

struct Finding {
  enum class State {
    ok,
    missing,  // Penstock works without it, but is slower or lacks a feature
    note,     // for information; nothing needs to be done
  };
  std::string area;     // "GPU"
  std::string subject;  // "driver"
  State state = State::ok;
  std::string found;
  std::string means;  // consequence for Penstock; empty if ok
  std::string fix;    // a command or a step; empty if there is nothing to fix
};

[[nodiscard]] inline Finding make_finding(std::string_view area, std::string_view subject, Finding::State state,
                                          std::string found, std::string_view means = {}, std::string_view fix = {}) {
  return {std::string(area), std::string(subject), state, std::move(found), std::string(means), std::string(fix)};
}

// Areas.
inline constexpr std::string_view kGpuArea = "GPU";
inline constexpr std::string_view kCpuArea = "CPU and memory";
inline constexpr std::string_view kLiveArea = "live traffic";
inline constexpr std::string_view kXdpArea = "AF_XDP";
inline constexpr std::string_view kChainArea = "chain";

}  // namespace penstock::cli
