// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `sharing`: tenants that share a GPU by the execution proxy, by time slices of the driver, and by MPS,
// as Chaurasia et al. measure network functions in virtual machines with virtual GPUs.

#pragma once

#include <memory>

#include "experiments/experiment.h"
#include "experiments/sharing/started.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& sharing_experiment();

/// The programs that the experiment starts.
struct SharingPrograms {
  Words run;    // the words before a tenant's chain file
  Words proxy;  // the words before the proxy's socket
};

/// A trial with other programs than this one. The setting must outlive it.
[[nodiscard]] std::unique_ptr<Trial> make_sharing_trial(const Setting& setting, SharingPrograms programs);

}  // namespace penstock::experiments
