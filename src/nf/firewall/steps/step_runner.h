// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the steps of rules (classify/step.h) for one packet after the other, and finds the entry that decides.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "classify/classifier.h"
#include "classify/key.h"
#include "classify/linear_core.h"
#include "classify/rule.h"
#include "conntrack/connections.h"
#include "function/emitter.h"
#include "nf/firewall/steps/element_table.h"
#include "nf/firewall/steps/host_routes.h"
#include "nf/firewall/steps/packet_log.h"
#include "nf/firewall/steps/step_state.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// What steps need besides the rules; all of it is borrowed.
struct StepContext {
  // Null: nothing is remembered. Limits and quotas hold, and sets are as the rules list them.
  StepState* state = nullptr;
  report::EventLog* log = nullptr;                              // null: nothing is logged
  const std::vector<std::string>* port_names = nullptr;         // for the log; by PortIndex
  const std::vector<std::uint16_t>* largest_packets = nullptr;  // MTUs, by PortIndex; for clamping
  bool link_is_written = false;  // by an earlier function, such as router: packets have other link headers now
  PortIndex host = kNoPort;      // what comes from there has no link header: this host makes it
  bool is_bridge = false;        // rules are about bridged frames
  /// Of the chain's router. Null: no route is found; without a state, each route is as rules want it.
  function::RouteSource* routes = nullptr;
  const std::vector<function::PortAddresses>* addresses = nullptr;  // the host's, by PortIndex; with `routes`
};

class RuleCounters;

/// What happens to a packet between rules (classify::TrackConnection and TranslateAddresses). Empty: it goes on, with a
/// key that may be another one. Otherwise it has been dropped, for this reason.
class BetweenRules {
 public:
  virtual ~BetweenRules() = default;
  virtual std::string_view track(PacketView packet, classify::Key& key, bool untracked) noexcept = 0;
  virtual std::string_view translate(PacketView packet, classify::Key& key) noexcept = 0;

 protected:
  BetweenRules() = default;
  BetweenRules(const BetweenRules&) = default;
  BetweenRules& operator=(const BetweenRules&) = default;
};

/// Of one worker. Borrows all arguments; without counters (null), it counts no rules.
class StepRunner {
 public:
  StepRunner(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters* counters,
             const StepContext& context);
  /// Before the first packet, if connections are tracked.
  void set_connections(conntrack::Connections& connections) noexcept { connections_ = &connections; }
  /// Ditto, if rules have such steps; otherwise, nothing happens there. Borrowed.
  void set_between(BetweenRules& between) noexcept { between_ = &between; }
  /// Ditto, if the link headers with which packets arrived are to be tested, and have been written since. Borrowed.
  void set_emitter(const function::Emitter& emitter) noexcept { emitter_ = &emitter; }

  /// The entry that decides the packet, or kNoEntry, after the steps on its way. `entry`: where the engine stopped.
  /// Empty: the packet is dropped, whatever the rules say after this; why_dropped() says why.
  /// Adds the entries whose steps do not hold to `failed`, unless it is null.
  [[nodiscard]] std::optional<std::uint32_t> decide(PacketView packet, const classify::Key& key, std::uint32_t entry,
                                                    std::vector<std::uint32_t>* failed = nullptr);
  [[nodiscard]] std::string_view why_dropped() const noexcept { return why_dropped_; }
  /// A batch boundary.
  void begin_batch() noexcept;

 private:
  struct Packet {
    PacketView view;
    classify::Key& key;
    conntrack::Connection* connection;  // null: none
  };
  [[nodiscard]] std::optional<classify::Number> read(const classify::Operand& operand, const Packet& packet) noexcept;
  [[nodiscard]] std::uint32_t bytes_of(const Packet& packet) const noexcept;
  [[nodiscard]] std::optional<classify::Number> of_link(classify::Value value, PacketView packet) noexcept;
  [[nodiscard]] std::optional<classify::Number> of_connection(classify::Value value, const Packet& packet) noexcept;
  [[nodiscard]] std::optional<std::uint32_t> hash_of(const classify::HashObject& hash, const Packet& packet) noexcept;
  [[nodiscard]] std::optional<ElementTable::Key> read(const std::vector<classify::Operand>& operands,
                                                      const Packet& packet) noexcept;
  [[nodiscard]] bool is_listed(std::uint32_t set, const ElementTable::Key& key);
  [[nodiscard]] ElementTable& elements_of(std::uint32_t set, std::uint64_t now_ns) noexcept;
  [[nodiscard]] bool count(ConnectionList& list, const classify::ConnectionCount& count, const Packet& packet) noexcept;

  [[nodiscard]] bool holds(const classify::Test& test, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::AnyOf& any, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::UseRate& use, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::UseQuota& use, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::UseCount& use, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::LookUp& look_up, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::Update& update, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::Recent& recent, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::SetMark& mark, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::Log& log, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::ClampSegmentSize& clamp, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::SetField& set, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::FindText& find, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::AtTime& at, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::GiveHelper& give, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::LeaveUntracked& leave, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::ReversePath& path, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::RouteOut& out, const Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::TrackConnection& track, Packet& packet) noexcept;
  [[nodiscard]] bool holds(const classify::TranslateAddresses& translate, Packet& packet) noexcept;
  void find_connection(Packet& packet) noexcept;

  const classify::Ruleset& rules_;
  const classify::LinearView conditions_;
  const classify::Classifier& classifier_;
  RuleCounters* const counters_;
  const StepContext context_;
  conntrack::Connections* connections_ = nullptr;
  std::unique_ptr<PacketLog> log_;
  std::unique_ptr<HostRoutes> routes_;  // null: rules do not ask for routes, or there are none
  // Without a state: a set's elements, sorted by their keys.
  std::map<std::uint32_t, std::vector<std::uint32_t>> listed_;
  std::uint64_t random_;
  std::uint32_t drawn_ = 0;
  const bool tracks_between_;
  BetweenRules* between_ = nullptr;
  const function::Emitter* emitter_ = nullptr;
  // What rules before TrackConnection want of the packet's connection: the first of them counts.
  enum class Wish : std::uint8_t { none, helper, untracked } wish_ = Wish::none;
  bool is_tracked_ = false;  // the packet has passed TrackConnection
  std::string_view why_dropped_{};
};

/// For tuples. Limits and quotas are taken as not used up, sets as the rules list them, and what a tuple does not say
/// (marks, lengths) as 0. Borrows both arguments.
class TupleSteps {
 public:
  TupleSteps(const classify::Ruleset& rules, const classify::Classifier& classifier)
      : runner_(rules, classifier, nullptr, {.largest_packets = &no_ports_}) {}
  /// The entry that decides the tuple, or kNoEntry, if the engine stopped at `entry`.
  [[nodiscard]] std::uint32_t decide(const classify::Key& key, std::uint32_t entry);

 private:
  std::vector<std::uint16_t> no_ports_;
  StepRunner runner_;
};

}  // namespace penstock::firewall
