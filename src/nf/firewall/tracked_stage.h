// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU stages of a firewall whose rules test connections. Connections are tracked as Linux does: a packet changes
// its connection before the rules see it. In a chain on a device, the worker looks connections up, and their state
// crosses with the packets.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "classify/classifier.h"
#include "classify/rules_view.h"
#include "conntrack/connections.h"
#include "conntrack/packet_connection.h"
#include "function/connection_counters.h"
#include "function/connection_reader.h"
#include "function/network_function.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/firewall_stage.h"

namespace penstock::firewall {

[[nodiscard]] classify::Connection connection_of(const conntrack::Tracked& tracked) noexcept;

/// Whether the packet begins a connection for which there is no room.
[[nodiscard]] bool has_no_room(const conntrack::Tracked& tracked) noexcept;

/// Of a firewall in a process of its own, whose chain's process tracks the connections.
class ReadingStage final : public DecidingStage, public function::ConnectionReadingStage {
 public:
  using DecidingStage::DecidingStage;
  void begin_batch() noexcept override { decider_.begin_batch(); }
  void take_connections(std::span<const conntrack::PacketConnection> connections) noexcept override {
    connections_ = connections;
  }
  void process(std::span<PacketView> packets) noexcept override;

 private:
  std::span<const conntrack::PacketConnection> connections_;  // of the next packets
};

class TrackedStage : public DecidingStage, private BetweenRules {
 public:
  /// Borrows all arguments. `translates`: it may change packets, as helpers do where connections are translated.
  TrackedStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
               const Answering& answering, const StepContext* steps, function::ConnectionCounters& of_connections,
               bool translates = false, Route route = {})
      : DecidingStage(rules, classifier, counters, answering, steps, route),
        rules_(classify::view_of(rules)),
        tracks_between_(rules.tracks_between()),
        translates_between_(rules.translates_between()),
        of_connections_(of_connections),
        translates_(translates) {
    decider_.set_between(*this);
  }
  TrackedStage(const TrackedStage&) = delete;
  TrackedStage& operator=(const TrackedStage&) = delete;

  void set_connections(conntrack::Connections& connections) noexcept override;
  void begin_batch() noexcept override {
    of_connections_.publish(connections_->counters());
    decider_.begin_batch();
  }
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

  /// For packets that a device will decide about, with the same decision. If a packet begins a connection, the rules
  /// decide here as well, before the next packet is looked up. Packets that an earlier function has asked about may be
  /// changed before they come here; about these, only the device decides.
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept;

 protected:
  /// What the host knows about a packet that a device will decide about.
  struct Known {
    conntrack::Tracked tracked;  // without a connection if the rules do not let it begin one
    bool is_tracked = false;     // false: no rule applies to it
  };

  [[nodiscard]] conntrack::Connections& connections() const noexcept { return *connections_; }
  [[nodiscard]] bool translates_between() const noexcept { return translates_between_; }
  /// Lets the helper of its connection see a packet, unless it has already. Drops the packet if that must not pass.
  void help(PacketView packet, const conntrack::Tracked& tracked) noexcept;
  /// Writes NfTraits::state_bytes.
  virtual void write_state(const Known& known, std::byte* to) const noexcept;

 private:
  void decide(KeyedPackets& waiting) noexcept;
  void decide_alone(PacketView packet) noexcept;
  std::string_view track(PacketView packet, classify::Key& key, bool untracked) noexcept override;
  std::string_view translate(PacketView /*packet*/, classify::Key& /*key*/) noexcept override { return {}; }
  [[nodiscard]] Known look_up(PacketView packet) noexcept;

  const classify::RulesView rules_;
  const bool tracks_between_, translates_between_;  // while the rules decide
  function::ConnectionCounters& of_connections_;
  const bool translates_;
  conntrack::Connections* connections_ = nullptr;
};

/// Gives the device stage what the worker knows about connections.
class TrackedStateStage final : public function::StateStage {
 public:
  /// Borrows the twin.
  explicit TrackedStateStage(TrackedStage& twin) noexcept : twin_(twin) {}
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
    twin_.fill(packets, states);
  }

 private:
  TrackedStage& twin_;
};

}  // namespace penstock::firewall
