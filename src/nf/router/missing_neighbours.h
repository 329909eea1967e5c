// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The next hops whose MAC address packets needed and the router did not have: workers note them, and a thread asks the
// kernel for them. Bounded and lock-free: a next hop has one slot, chosen by its address. If the slot is taken, by the
// same next hop or another one, the note is left out; a later packet will make it again.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ip_address.h"
#include "nf/router/neighbour_table.h"
#include "packet/verdict.h"
#include "port/stop_event.h"

namespace penstock::router {

class MissingNeighbours {
 public:
  /// For workers. `address` as in NeighbourTable.
  void note(const Ipv6Address& address, PortIndex device) noexcept {
    Slot& slot = slots_[NeighbourView::hash(address, device) % slots_.size()];
    State free = State::free;
    if (!slot.state.compare_exchange_strong(free, State::written, std::memory_order_acquire)) return;
    slot.address = address;
    slot.device = device;
    slot.state.store(State::full, std::memory_order_release);
    if (wants_signal_.exchange(false)) event_.signal();
  }

  /// Readable when there may be some.
  [[nodiscard]] int fd() const noexcept { return event_.fd(); }
  /// For one thread: calls `use(address, device)` for each, and empties the slots.
  template <typename Use>
  void take(Use&& use) {
    event_.clear();
    wants_signal_.store(true);  // before the slots are read, so that no later note is overlooked
    for (Slot& slot : slots_) {
      if (slot.state.load(std::memory_order_acquire) != State::full) continue;
      use(slot.address, slot.device);
      slot.state.store(State::free, std::memory_order_release);
    }
  }

 private:
  enum class State : std::uint8_t { free, written, full };
  struct Slot {
    std::atomic<State> state{State::free};
    PortIndex device = kNoPort;
    Ipv6Address address;
  };
  std::array<Slot, 128> slots_;
  std::atomic<bool> wants_signal_{true};
  port::StopEvent event_;
};

}  // namespace penstock::router
