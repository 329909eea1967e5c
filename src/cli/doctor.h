// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock doctor`: reports why a GPU, cores, a network interface, huge pages or a capability cannot be used, and how
// to fix it. `examine` makes the diagnosis and is pure; its input comes from look_at_machine, read_cpu_topology and
// gpu::list_devices. Further parts, with their own input: doctor_interfaces.h, doctor_xdp.h, doctor_placement.h.

#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "base/cpu_topology.h"
#include "base/machine.h"
#include "cli/finding.h"
#include "function/network_function.h"
#include "gpu/devices.h"

namespace penstock::cli {

/// `gpu_failure` says why a listed device could not be used; empty if all could, or if none is listed.
[[nodiscard]] std::vector<Finding> examine(const Machine& machine, const CpuTopology& topology,
                                           const gpu::DeviceList& gpus, const std::string& gpu_failure);

/// Adds the subcommand to `app`. After it has run, `exit_code` is set; it is 0 even if things are missing.
void add_doctor(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
