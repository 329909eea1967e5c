// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/catalog.h"

#include <algorithm>
#include <array>

#include "experiments/chain/chain.h"
#include "experiments/detection/detection.h"
#include "experiments/filter/filter.h"
#include "experiments/forwarding/forwarding.h"
#include "experiments/live/live.h"
#include "experiments/offload/offload.h"
#include "experiments/sharing/sharing.h"
#include "experiments/streams/streams.h"
#include "experiments/transfer/transfer.h"

namespace penstock::experiments {

std::span<const Experiment* const> experiments() {
  static const std::array<const Experiment*, 9> kExperiments{
      &offload_experiment(), &transfer_experiment(),   &chain_experiment(),
      &streams_experiment(), &detection_experiment(),  &filter_experiment(),
      &live_experiment(),    &forwarding_experiment(), &sharing_experiment(),
  };
  return kExperiments;
}

const Experiment* find_experiment(std::string_view name) {
  const auto all = experiments();
  const auto there = std::find_if(all.begin(), all.end(), [&](const Experiment* e) { return e->name == name; });
  return there == all.end() ? nullptr : *there;
}

}  // namespace penstock::experiments
