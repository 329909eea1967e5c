// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A packet filter before intrusion detection, which then sees only a part of the packets: the future work of Hung & Guo
// (§6). The filter keeps packets by two bits of their source address or more, so whole flows.

#pragma once

#include <vector>

#include "base/error.h"
#include "experiments/chain/chains.h"
#include "experiments/experiment.h"
#include "experiments/measured_chain.h"
#include "experiments/point.h"

namespace penstock::experiments {

class Thinned {
 public:
  /// Borrows the setting.
  explicit Thinned(const Setting& setting) : setting_(setting), runner_(*setting.stop), chains_(runner_.workplace()) {}

  /// Points with `sweep` "thinned": `mode` "nids" has no filter; in "filter", both functions run on the processor; in
  /// "filter-on-cpu", only intrusion detection runs on the GPU. `kept` is the share of the packets that the filter
  /// keeps, in percent. Results: see results_of; `mpps` counts the packets before the filter.
  void plan(std::vector<Point>& points) const;
  [[nodiscard]] Result<void> measure(Point& point, const Point& limits);

 private:
  const Setting& setting_;
  ChainRunner runner_;
  Chains chains_;
};

}  // namespace penstock::experiments
