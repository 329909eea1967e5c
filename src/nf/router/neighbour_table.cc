// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/neighbour_table.h"

namespace penstock::router {

void NeighbourTable::assign(const Neighbour& neighbour) {
  if ((size_ + 1) * 2 > slots_.size()) {
    std::vector<Neighbour> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Neighbour& slot : old) {
      if (slot.device != kNoPort) slots_[view().place(slot.address, slot.device)] = slot;
    }
  }
  Neighbour& slot = slots_[view().place(neighbour.address, neighbour.device)];
  if (slot.device == kNoPort) ++size_;
  slot = neighbour;
}

bool NeighbourTable::erase(const Ipv6Address& address, PortIndex device) noexcept {
  const std::uint32_t mask = view().mask;
  std::uint32_t hole = view().place(address, device);
  if (slots_[hole].device == kNoPort) return false;
  for (std::uint32_t next = (hole + 1) & mask; slots_[next].device != kNoPort; next = (next + 1) & mask) {
    const std::uint32_t home = NeighbourView::hash(slots_[next].address, slots_[next].device) & mask;
    if (((next - home) & mask) < ((next - hole) & mask)) continue;  // its home is after the hole
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = {};
  --size_;
  return true;
}

}  // namespace penstock::router
