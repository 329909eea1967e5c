// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel's neighbours, as its messages tell, and those of a router that follow from them. Owns a copy of the
// kernel's table, in bounded memory. It does no I/O, and is used by one thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "control/kernel/messages.h"
#include "nf/router/router.h"
#include "packet/flow_hash.h"

namespace penstock::control {

class KernelNeighbours {
 public:
  /// The port of an interface; kNoPort: it is none of the chain's.
  using PortOf = std::function<PortIndex(std::uint32_t interface)>;

  /// Takes at most `most`. They are `port_of`'s until it is asked again (`look_again`).
  KernelNeighbours(std::size_t most, PortOf port_of) : most_(most), port_of_(std::move(port_of)) {}

  void apply(const NeighbourMessage& message);
  /// Ports may have changed.
  void look_again();
  /// As for KernelRoutes.
  void begin_dump();
  void end_dump();

  [[nodiscard]] bool has_changes() const noexcept { return !dirty_.empty() || !failed_.empty(); }
  void take_changes(router::RouterChange& change);
  void add_all(router::RouterChange& change) const;

  [[nodiscard]] bool knows(const Ipv6Address& address, std::uint32_t interface) const {
    const auto found = entries_.find({address, interface});
    return found != entries_.end() && found->second.message.has_mac;
  }
  /// Calls `use(address, interface)` for those on ports that the kernel will not ask by itself whether they are still
  /// there, since it does not see the packets that we send to them.
  template <typename Use>
  void for_each_stale(Use&& use) const {
    for (const auto& item : entries_) {
      const Entry& entry = item.second;
      if (entry.message.has_mac && entry.message.stale && entry.published.device != kNoPort)
        use(item.first.address, item.first.interface);
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }

 private:
  struct Key {
    Ipv6Address address;
    std::uint32_t interface;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return mix64(mix64(key.address.high + key.interface) + key.address.low);
    }
  };
  struct Entry {
    NeighbourMessage message;
    router::Neighbour published;  // its device is kNoPort: not published
    bool dirty = false, dumped = false;
  };
  void mark(const Key& key, Entry& entry);

  const std::size_t most_;
  const PortOf port_of_;
  std::unordered_map<Key, Entry, Hash> entries_;
  std::vector<Key> dirty_;
  std::vector<Key> failed_;  // since the last `take_changes`
  std::size_t left_out_ = 0;

  /// More in one update than the kernel is asked for. Packets for others wait until their time is over.
  static constexpr std::size_t kMostFailed = 128;
};

}  // namespace penstock::control
