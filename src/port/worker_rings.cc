// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/worker_rings.h"

namespace penstock::port {

WorkerRings::WorkerRings(unsigned workers, std::size_t ring_bytes) {
  for (unsigned from = 0; from < workers; ++from) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>());
    for (unsigned to = 0; to < workers; ++to) part.to.push_back(std::make_unique<SpscByteRing>(ring_bytes));
    part.has_written.assign(workers, false);
  }
}

void WorkerRings::wake_others(unsigned from) noexcept {
  Part& part = *parts_[from];
  for (unsigned to = 0; to < workers(); ++to) {
    if (!part.has_written[to]) continue;
    part.has_written[to] = false;
    // The write to the ring comes before this, and the reader clears the signal before it reads the ring.
    if (!parts_[to]->signalled.exchange(true)) parts_[to]->event.signal();
  }
}

void WorkerRings::clear_signal(unsigned here) noexcept {
  Part& part = *parts_[here];
  if (part.signalled.load(std::memory_order_relaxed) && part.signalled.exchange(false)) part.event.clear();
}

/// `clear_signal` may come between a writer's `exchange` and its `signal`, which then stays for records that have been
/// taken. So the event is cleared here, and signalled again if there are records.
int WorkerRings::wait_fd(unsigned here) noexcept {
  Part& part = *parts_[here];
  part.event.clear();
  for (const auto& from : parts_) {
    if (from->to[here]->front().empty()) continue;
    part.event.signal();
    break;
  }
  return part.event.fd();
}

}  // namespace penstock::port
