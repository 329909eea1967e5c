// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For comparison with intrusion detection on a GPU: a library that finds the same literals in the same payloads on the
// CPU's cores, without any other work.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/core_rates.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::experiments {

/// Bytes per second that Hyperscan scans on all cores together, for each repeat, in blocks of `block` bytes of `text`.
/// `literals` must not be empty.
[[nodiscard]] Result<std::vector<double>> measure_hyperscan(std::span<const nids::Literal> literals,
                                                            std::span<const std::uint8_t> text, std::size_t block,
                                                            unsigned cores, const Timing& timing);

}  // namespace penstock::experiments
