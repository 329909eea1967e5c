// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock doctor`: reports why a GPU, a network interface, huge pages or a capability cannot be used, and how to fix
// it. `examine` makes the diagnosis and is pure; its input comes from look_at_machine and gpu::list_devices.

#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "base/machine.h"
#include "gpu/devices.h"

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

/// `gpu_failure` says why a listed device could not be used; empty if all could, or if none is listed.
[[nodiscard]] std::vector<Finding> examine(const Machine& machine, const gpu::DeviceList& gpus,
                                           const std::string& gpu_failure);

/// Adds the subcommand to `app`. After it has run, `exit_code` is set; it is 0 even if things are missing.
void add_doctor(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
