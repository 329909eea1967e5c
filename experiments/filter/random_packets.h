// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of Hung & Guo's experiments: keys with random addresses, ports and protocols. The same in every run.

#pragma once

#include <cstddef>
#include <span>

#include "experiments/filter/word_rules.h"

namespace penstock::experiments {

/// Every kCheckedStep-th key is checked in every measurement. Random keys hardly ever match a rule, so of those that
/// are checked, three of four are made to match one. They are too few to change a rate.
inline constexpr std::size_t kCheckedStep = 997;

/// Uniform addresses and ports, and TCP, UDP or ICMP; `percent` of the keys are made to match a random one of `rules`,
/// which must not be empty. Uses `threads` threads.
void draw_packets(std::span<TupleKey> keys, std::span<const WordRule<kKeyWords>> rules, unsigned percent,
                  unsigned threads);

}  // namespace penstock::experiments
