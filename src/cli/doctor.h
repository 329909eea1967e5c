// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock doctor`: why a GPU, a network interface, huge pages or a capability cannot be used here, and how to fix it.
// `examine` is the judgement and is pure; what it judges is looked at by look_at_machine and gpu::list_devices.

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
    missing,  // Penstock does without, and is slower or cannot do something for it
    note,     // worth knowing; nothing needs to be done
  };
  std::string area;     // "GPU"
  std::string subject;  // "driver"
  State state = State::ok;
  std::string found;
  std::string means;  // for Penstock; empty when ok
  std::string fix;    // a command or a step; empty when there is nothing to fix
};

/// `gpu_failure` says why a device that is listed could not be used; empty when it could, or when none is listed.
[[nodiscard]] std::vector<Finding> examine(const Machine& machine, const gpu::DeviceList& gpus,
                                           const std::string& gpu_failure);

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`: 0 also when things are missing.
void add_doctor(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
