// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far transfers are in each other's way (Gaviss §2.2 and §5.4, figure 10): copies of one direction between the host
// and one device share its copy engine and its lanes of PCIe, so one that is wanted while another is under way waits.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ring/timeline.h"

namespace penstock::ring {

/// By span, in their order: for how long of its time, from `ready_ns` to `end_ns`, a transfer of its direction and
/// device that was ready before it was still under way. It is what it had to wait where a copy engine takes them one
/// behind the other, and else what it had to share. Of two that were ready at the same time the first of the list was
/// before. 0 of kernels.
[[nodiscard]] std::vector<std::int64_t> transfer_waits(std::span<const Span> spans,
                                                       std::span<const Timeline::Stream> streams);

}  // namespace penstock::ring
