// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The peer of intrusion detection on a GPU: a library that finds the same literals in the same payloads on the CPU's
// cores, with nothing around it.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/core_rates.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::experiments {

/// Bytes a second, of all cores together and of each repeat, that Hyperscan scans in blocks of `block` bytes cut from
/// `text`. `literals`: at least one.
[[nodiscard]] Result<std::vector<double>> measure_hyperscan(std::span<const nids::Literal> literals,
                                                            std::span<const std::uint8_t> text, std::size_t block,
                                                            unsigned cores, const Timing& timing);

}  // namespace penstock::experiments
