// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How much transfers delay each other (Gaviss §2.2 and §5.4, figure 10). Copies of one direction between the host and a
// device share its copy engine and PCIe lanes, so a copy that becomes ready while another is in progress waits.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ring/timeline.h"

namespace penstock::ring {

/// For each span, in order: for how long between its `ready_ns` and `end_ns` another transfer of the same direction and
/// device, which was ready earlier, was still in progress. If a copy engine processes transfers one at a time, this is
/// the time that the transfer waited; otherwise, the time during which it shared the link. If two were ready at the
/// same time, the first one in the list counts as earlier. 0 for kernels.
[[nodiscard]] std::vector<std::int64_t> transfer_waits(std::span<const Span> spans,
                                                       std::span<const Timeline::Stream> streams);

}  // namespace penstock::ring
