// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/kernel_neighbours.h"

#include <utility>

namespace penstock::control {

void KernelNeighbours::apply(const NeighbourMessage& message) {
  const Key key{message.address, message.interface};
  if (message.failed && failed_.size() < kMostFailed) failed_.push_back(key);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (message.removed || !message.has_mac) return;
    if (entries_.size() >= most_) {
      ++left_out_;
      return;
    }
    found = entries_.try_emplace(key).first;
  }
  found->second.message = message;
  if (message.removed) found->second.message.has_mac = false;
  found->second.dumped = true;
  mark(key, found->second);
}

void KernelNeighbours::mark(const Key& key, Entry& entry) {
  if (!std::exchange(entry.dirty, true)) dirty_.push_back(key);
}

void KernelNeighbours::look_again() {
  for (auto& [key, entry] : entries_) mark(key, entry);
}

void KernelNeighbours::begin_dump() {
  left_out_ = 0;
  for (auto& [key, entry] : entries_) entry.dumped = false;
}

void KernelNeighbours::end_dump() {
  for (auto& [key, entry] : entries_) {
    if (!entry.dumped) entry.message.has_mac = false;
    mark(key, entry);
  }
  failed_.clear();  // what was read may have failed long ago
}

void KernelNeighbours::take_changes(router::RouterChange& change) {
  for (const Key& key : dirty_) {
    const auto found = entries_.find(key);
    Entry& entry = found->second;
    entry.dirty = false;
    const PortIndex port = entry.message.has_mac ? port_of_(key.interface) : kNoPort;
    router::Neighbour& published = entry.published;
    if (published.device != kNoPort && published.device != port)
      change.erase_neighbours.emplace_back(key.address, published.device);
    if (port != kNoPort && (published.device != port || published.mac != entry.message.mac))
      change.neighbours.push_back({key.address, port, entry.message.mac});
    published = {key.address, port, entry.message.mac};
    if (!entry.message.has_mac) entries_.erase(found);
  }
  dirty_.clear();
  for (const Key& key : failed_) {
    if (const PortIndex port = port_of_(key.interface); port != kNoPort) change.failed.emplace_back(key.address, port);
  }
  failed_.clear();
}

void KernelNeighbours::add_all(router::RouterChange& change) const {
  for (const auto& item : entries_) {
    if (item.second.published.device != kNoPort) change.neighbours.push_back(item.second.published);
  }
}

}  // namespace penstock::control
