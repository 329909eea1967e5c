// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules test and do besides conditions: limits, quotas, sets that change, marks, logs. These depend on earlier
// packets or change something, so only the host can do them, for one packet after the other
// (nf/firewall/steps/step_runner.h); engines stop at the entry. Data only, as readers produce it.

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "classify/condition.h"
#include "classify/interval.h"
#include "packet/layout.h"

namespace penstock::classify {

/// A number that belongs to a packet. Some packets do not have it.
enum class Value : std::uint8_t {
  source,  // addresses; IPv4 in the low 32 bits
  destination,
  source_port,
  destination_port,
  protocol,
  in_port,  // PortIndex; packets always have it
  out_port,
  mark,
  connection_mark,  // packets with a connection have it
  hop_limit,        // TTL
  traffic_class,    // the byte of DSCP and ECN
  length,           // bytes from the IP header on
  ether_source,     // 48 bits
  ether_destination,
  segment_size,  // of TCP's option
  routing_type,  // of IPv6's first routing header
  random,        // drawn anew each time, below Operand::modulus
  turn,          // counts up each time, modulo Operand::modulus
  drawn,         // the last of these two
};

/// Whether the value is of the link header, which functions that choose where packets leave write.
[[nodiscard]] constexpr bool is_of_link(Value value) noexcept {
  return value == Value::ether_source || value == Value::ether_destination;
}

struct Operand {
  Value value = Value::mark;
  Number mask{~std::uint64_t{0}, ~std::uint64_t{0}};  // of its bits
  std::uint32_t modulus = 0;
  bool or_zero = false;       // packets without the value have 0
  std::uint32_t counter = 0;  // of `turn`: index in StepObjects::turns
  friend bool operator==(const Operand&, const Operand&);
};

/// Holds if the packet has the value, and it is in the set; negated, if it has none, or another one.
struct Test {
  Operand operand;
  IntervalSet values;
  bool negated = false;
  friend bool operator==(const Test&, const Test&);
};

/// Conditions that must all hold, for packets of one address family, or of both (none).
struct Alternative {
  std::vector<Condition> conditions;
  NetworkLayer family = NetworkLayer::none;
  friend bool operator==(const Alternative&, const Alternative&);
};

/// Holds if one of them does: conditions that are tested after another step.
struct AnyOf {
  std::vector<Alternative> alternatives;
  friend bool operator==(const AnyOf&, const AnyOf&);
};

/// A token bucket, as nft_limit. Packets or bytes; it is full at the beginning.
struct Rate {
  std::uint64_t amount = 1;
  std::uint64_t per_ns = 1'000'000'000;
  std::uint64_t burst = 5;
  bool bytes = false;
  bool over = false;  // holds beyond the rate, not within it
  friend bool operator==(const Rate&, const Rate&);
};

struct Quota {
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;  // at the beginning
  bool over = false;
  friend bool operator==(const Quota&, const Quota&);
};

/// How many connections there are at once, the packet's included.
struct ConnectionCount {
  std::uint32_t most = 0;
  bool over = false;
  friend bool operator==(const ConnectionCount&, const ConnectionCount&);
};

/// Names keep the state of objects over reloads: that of the same name and definition goes on.
struct RateObject {
  std::string name;
  Rate rate;
  friend bool operator==(const RateObject&, const RateObject&);
};
struct QuotaObject {
  std::string name;
  Quota quota;
  friend bool operator==(const QuotaObject&, const QuotaObject&);
};
struct CountObject {
  std::string name;
  ConnectionCount count;
  friend bool operator==(const CountObject&, const CountObject&);
};
struct TurnObject {
  std::string name;
  friend bool operator==(const TurnObject&, const TurnObject&);
};
struct RecentObject {
  std::string name;
  friend bool operator==(const RecentObject&, const RecentObject&);
};

/// The most values of an element of a set that changes.
inline constexpr std::size_t kMostElementValues = 4;

/// A set whose elements come and go.
struct ChangingSet {
  std::string name;
  std::uint32_t values = 1;      // of an element
  std::uint32_t size = 65535;    // most elements
  std::uint64_t timeout_ns = 0;  // of elements without one of their own; 0: they stay
  struct Element {
    std::vector<Number> key;
    std::uint64_t timeout_ns = 0;  // what is left of it; 0: it stays
    friend bool operator==(const Element&, const Element&);
  };
  std::vector<Element> elements{};  // at the beginning
  friend bool operator==(const ChangingSet&, const ChangingSet&);
};

struct UseRate {
  std::uint32_t object;
  friend bool operator==(const UseRate&, const UseRate&);
};
struct UseQuota {
  std::uint32_t object;
  friend bool operator==(const UseQuota&, const UseQuota&);
};
struct UseCount {
  std::uint32_t object;
  friend bool operator==(const UseCount&, const UseCount&);
};

/// Holds if the packet's values are an element.
struct LookUp {
  std::uint32_t set;
  std::vector<Operand> key;
  bool negated = false;
  bool also_without = false;  // if negated, it also holds for packets without these values
  friend bool operator==(const LookUp&, const LookUp&);
};

/// Adds or deletes the packet's values, as nft_dynset. Holds if the packet has them, there is room, and what belongs to
/// the element holds.
struct Update {
  enum class Way : std::uint8_t { add, update, remove };  // update: its timeout begins anew
  std::uint32_t set;
  std::vector<Operand> key;
  Way way = Way::add;
  static constexpr std::uint64_t kForever = ~std::uint64_t{0};
  std::uint64_t timeout_ns = 0;  // 0: the set's
  std::variant<std::monostate, Rate, Quota, ConnectionCount> of_element{};
  bool drops_if_full = false;  // as hashlimit of iptables
  friend bool operator==(const Update&, const Update&);
};

/// mark = (mark & keep) ^ (source & mask) ^ flip. Holds unless the source is the mark of a connection that the packet
/// does not have.
struct SetMark {
  bool of_connection = false;  // the mark that is set; a packet without a connection has none
  enum class Source : std::uint8_t { none, packet, connection } source = Source::none;
  std::uint32_t mask = 0;
  std::uint32_t flip = 0;
  std::uint32_t keep = 0;
  friend bool operator==(const SetMark&, const SetMark&);
};

/// A list of addresses with the times of packets, as xt_recent.
struct Recent {
  enum class Way : std::uint8_t { set, check, update, remove };
  std::uint32_t list;
  Way way = Way::check;
  Operand address;
  std::uint64_t within_ns = 0;  // packets before it do not count; 0: all do
  std::uint32_t hits = 0;       // at least so many; 0: one
  bool same_hop_limit = false;  // only entries whose last packet had the same TTL
  bool negated = false;
  friend bool operator==(const Recent&, const Recent&);
};

/// A line in the log of packets.
struct Log {
  std::string prefix;
  friend bool operator==(const Log&, const Log&);
};

/// Sets TCP's maximum segment size, and never raises it.
struct ClampSegmentSize {
  std::uint16_t most = 0;  // 0: what fits into the smallest MTU on the packet's way
  friend bool operator==(const ClampSegmentSize&, const ClampSegmentSize&);
};

/// The packet's connection, if it begins with the packet, gets the helper for FTP.
struct GiveHelper {
  friend bool operator==(const GiveHelper&, const GiveHelper&);
};

/// The packet is not tracked, if it has not been looked up yet.
struct LeaveUntracked {
  friend bool operator==(const LeaveUntracked&, const LeaveUntracked&);
};

/// Here, and not before, the packet's connection is looked up, as after Linux's table raw.
struct TrackConnection {
  friend bool operator==(const TrackConnection&, const TrackConnection&);
};

/// Here, and not after all rules, the packet's addresses are translated; the rules after it see them translated.
struct TranslateAddresses {
  friend bool operator==(const TranslateAddresses&, const TranslateAddresses&);
};

using Step = std::variant<Test, AnyOf, UseRate, UseQuota, UseCount, LookUp, Update, Recent, SetMark, Log,
                          ClampSegmentSize, GiveHelper, LeaveUntracked, TrackConnection, TranslateAddresses>;

/// What steps refer to by index.
struct StepObjects {
  std::vector<RateObject> rates;
  std::vector<QuotaObject> quotas;
  std::vector<CountObject> counts;
  std::vector<TurnObject> turns;
  std::vector<RecentObject> recents;
  std::vector<ChangingSet> sets;
  friend bool operator==(const StepObjects&, const StepObjects&);
};

}  // namespace penstock::classify
