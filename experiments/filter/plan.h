// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The points of the experiment `filter`. Keys of all points on keys (parts `bpf` and `rfc`):
//
//   storage    of packets: global or texture
//   rules_in   constant, code (the paper's "register") or global
//   transfer   none, direct, zero_copy or streamed
//   memories   storage+rules_in, or the CPU's cores
//   method     algorithm+rules_in, or copies: what streamed costs without a filter
//
// Others: match (first, last), reading (template_rules.h), rules, hits (percent of packets that match a rule),
// result_bits (result_form.h), unroll, chunk and streams, block, share (percent of multiprocessors).

#pragma once

#include <cstddef>
#include <vector>

#include "experiments/point.h"

namespace penstock::experiments {

inline constexpr std::size_t kTemplateRules = 1000;
inline constexpr unsigned kUnrolled = 16;                    // the default
inline constexpr std::size_t kChunk = std::size_t{1} << 20;  // likewise
inline constexpr unsigned kStreams = 4;                      // likewise

/// The packets of a full run are the paper's 65 million.
[[nodiscard]] constexpr std::size_t packets_of(bool quick) noexcept { return quick ? 8'000'000 : 65'000'000; }
/// A core's packets are the first of them.
inline constexpr std::size_t kCpuPackets = 4'000'000;

/// Points that share rules, packets and filters follow each other; the CPU's precede the GPU's that are compared with
/// them. `workers`: all cores.
[[nodiscard]] std::vector<Point> plan_filters(bool quick, unsigned workers);

}  // namespace penstock::experiments
