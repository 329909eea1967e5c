// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin of a firewall whose rules test connections. Connections are tracked as Linux does: a packet changes its
// connection before the rules see it, and a new connection is entered once its first packet has passed.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "classify/classifier.h"
#include "classify/key.h"
#include "conntrack/options.h"
#include "conntrack/table_access.h"
#include "function/network_function.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/firewall_stage.h"

namespace penstock::firewall {

/// What the connection of a packet would be if no other packet had come; as Key::connection. Its checksum is not
/// verified.
[[nodiscard]] std::uint8_t connection_of_lone(PacketView packet, conntrack::Options options);

/// One worker's counters of connections. Only the worker publishes; any thread may read.
class ConnectionCounters {
 public:
  void publish(const conntrack::Counters& counters) noexcept;
  [[nodiscard]] conntrack::Counters read() const noexcept;

 private:
  static_assert(std::is_trivially_copyable_v<conntrack::Counters>);
  static_assert(sizeof(conntrack::Counters) % sizeof(std::uint64_t) == 0);
  using Words = std::array<std::uint64_t, sizeof(conntrack::Counters) / sizeof(std::uint64_t)>;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words_{};
};

class TrackedStage final : public function::CpuStage {
 public:
  /// Borrows all arguments but `access`, which is null if `take_over` will share that of the predecessor.
  TrackedStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
               ConnectionCounters& connections, std::shared_ptr<conntrack::TableAccess> access)
      : decider_(rules, classifier, counters), connections_(connections), access_(std::move(access)) {
    table_ = access_ == nullptr ? nullptr : &access_->table();
  }

  /// Shares the connections, if the predecessor tracks any.
  void take_over(function::CpuStage& predecessor) noexcept override;
  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  /// What was decided last. A packet's state cannot be told once it has changed its connection.
  struct Decided {
    std::uint32_t sequence = 0;
    std::uint32_t entry = classify::kNoEntry;
    classify::Key key{};
  };

  void prefetch(std::span<const PacketView> packets) const noexcept;
  void decide(KeyedPackets& waiting) noexcept;

  RuleDecider decider_;
  ConnectionCounters& connections_;
  std::shared_ptr<conntrack::TableAccess> access_;  // all epochs of a worker share it
  conntrack::Table* table_;                         // in it
  Decided last_;
};

}  // namespace penstock::firewall
