// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a chain of the experiment `live` is arranged, as a point's parameters and as a chain file:
//
//   system     araujo: one receiving thread, three workers, one queue, Aho-Corasick (Araujo et al. 2021, table 1)
//              ours: four workers with queues of their own, and the defaults
//              capture: one worker and no functions; veth: no chain at all
//   processor  cpu, gpu
//   buffer     the batches of araujo on a GPU; none for others
//   rate       what iPerf3 sends, in Mbit/s; unlimited

#pragma once

#include <array>
#include <string>
#include <vector>

#include "experiments/point.h"

namespace penstock::experiments {

/// The threads of both arrangements.
inline constexpr unsigned kLiveThreads = 4;

inline constexpr std::array<const char*, 8> kLiveBuffers{"256KiB", "512KiB", "1MiB",  "2MiB",
                                                         "4MiB",   "8MiB",   "16MiB", "32MiB"};

[[nodiscard]] std::vector<Point> live_points(bool quick);

/// A chain file that receives a copy of an interface's traffic. `netns`: empty for that of the process.
[[nodiscard]] std::string live_chain(const Point& point, const std::string& interface, const std::string& netns,
                                     const std::string& rules, const std::string& gpus);

}  // namespace penstock::experiments
