// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules test and do besides conditions: limits, quotas, sets that change, marks, logs. These depend on earlier
// packets or change something, so only the host can do them, for one packet after the other
// (nf/firewall/steps/step_runner.h); engines stop at the entry. Data only, as readers produce it.

#pragma once

#include <cstdint>
#include <optional>
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
  packet_type,   // by the link-layer destination: PacketType
  segment_size,  // of TCP's option
  routing_type,  // of IPv6's first routing header
  random,        // drawn anew each time, below Operand::modulus
  turn,          // counts up each time, modulo Operand::modulus
  drawn,         // the last of these two
  hash,          // of other values, below Operand::modulus
  // Of the packet's connection, if it has one: its tuples, in both directions. ICMP has its identifier, and type and
  // code, as ports, and other protocols 0.
  original_source,
  original_destination,
  original_source_port,
  original_destination_port,
  reply_source,
  reply_destination,
  reply_source_port,
  reply_destination_port,
  connection_protocol,
  connection_status,  // conntrack::Connection::status
  expiration_ms,      // until it expires; 0 before it is confirmed
  fragment_field,     // the flags and the offset: of IPv4, or of IPv6's fragment header
  flow_label,
  extension_headers,  // of IPv6: bits of ExtensionHeader
  second_of_day,      // UTC
  weekday,            // ditto; 0: Sunday
  // Of bridged frames (is_of_frame); those that are not the protocol have none.
  ether_type,         // after the link addresses: of the VLAN tag, if there is one
  protocol_of_frame,  // after the first tag; of frames with a length instead, as Linux's ETH_P_802_2 and ETH_P_802_3
  vlan_tci,           // of 802.1Q: priority, drop eligible, identifier
  vlan_type,          // ditto
  arp_hardware_type,
  arp_protocol_type,
  arp_hardware_length,
  arp_protocol_length,
  arp_operation,
  arp_sender_mac,
  arp_sender_ip,
  arp_target_mac,
  arp_target_ip,
};

/// With the values of Linux's ip6t_ipv6header.h.
struct ExtensionHeader {
  static constexpr std::uint8_t kHopByHop = 128, kDestinationOptions = 64, kRouting = 32, kFragment = 16,
                                kAuthentication = 8, kEsp = 4, kNone = 2, kProtocol = 1;
};

/// With the values of Linux's PACKET_HOST and so on. What a host gets is for it, or for a group.
struct PacketType {
  static constexpr std::uint8_t kHost = 0, kBroadcast = 1, kMulticast = 2, kOtherHost = 3;
};

/// Whether the value is of the link header with which packets arrive, and over which functions that choose where they
/// leave write.
[[nodiscard]] constexpr bool is_of_link(Value value) noexcept {
  return value == Value::ether_source || value == Value::ether_destination || value == Value::packet_type;
}

/// Whether only rules about bridged frames test it.
[[nodiscard]] constexpr bool is_of_frame(Value value) noexcept {
  return value >= Value::ether_type && value <= Value::arp_target_ip;
}

/// Whether only packets of a connection have it.
[[nodiscard]] constexpr bool is_of_connection(Value value) noexcept {
  return value == Value::connection_mark || (value >= Value::original_source && value <= Value::expiration_ms);
}

struct Operand {
  Value value = Value::mark;
  Number mask{~std::uint64_t{0}, ~std::uint64_t{0}};  // of its bits
  std::uint32_t modulus = 0;
  bool or_zero = false;       // packets without the value have 0
  std::uint32_t counter = 0;  // of `turn`: index in StepObjects::turns; of `hash`: in hashes
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
/// How a hash is made, as jhash of nftables, or of both ends of a connection alike, as symhash.
struct HashObject {
  std::vector<Operand> of;
  std::vector<std::uint8_t> bytes;  // of each: 4 or 16, or 2, of which those that are not the last take 4
  std::uint32_t seed = 0;
  bool symmetric = false;  // of source and destination, ports and protocol
  friend bool operator==(const HashObject&, const HashObject&);
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

/// Writes a field of the IP header, and its checksum.
struct SetField {
  enum class Field : std::uint8_t { traffic_class, hop_limit } field = Field::traffic_class;
  enum class Way : std::uint8_t { set, add, subtract } way = Way::set;  // set: (before & keep) ^ value
  std::uint8_t value = 0;
  std::uint8_t keep = 0;
  friend bool operator==(const SetField&, const SetField&);
};

/// Holds if the packet has the text between two offsets from the IP header on.
struct FindText {
  std::string text;
  std::uint16_t from = 0, to = 0xffff;
  bool any_case = false;  // of ASCII
  bool negated = false;
  friend bool operator==(const FindText&, const FindText&);
};

/// Holds at these times of UTC, all inclusive.
struct AtTime {
  std::uint64_t from = 0, to = ~std::uint64_t{0};     // seconds since 1970
  std::uint32_t from_second = 0, to_second = 86'399;  // of the day; over midnight if the first is not smaller
  std::uint32_t weekdays = 0x7f;                      // bit 0: Sunday
  std::uint32_t days = 0xffffffff;                    // of the month, bits 1 to 31
  bool night_belongs_to_day_before = false;           // the part of the night after midnight
  friend bool operator==(const AtTime&, const AtTime&);
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

/// Holds if the port where the packet came leads back to its source, as xt_rpfilter.
struct ReversePath {
  bool loose = false;          // by any port
  bool accepts_local = false;  // also sources that are addresses of the host
  bool negated = false;
  friend bool operator==(const ReversePath&, const ReversePath&);
};

/// Holds if the route to an address of the packet leads out by one of the ports, as nft_fib.
struct RouteOut {
  bool of_source = true;                 // the address; otherwise, the destination
  bool by_in_port = false;               // only a route by the port where the packet came counts
  std::optional<std::uint64_t> ports{};  // bits by PortIndex; empty: any interface
  bool negated = false;
  friend bool operator==(const RouteOut&, const RouteOut&);
};

using Step = std::variant<Test, AnyOf, UseRate, UseQuota, UseCount, LookUp, Update, Recent, SetMark, Log,
                          ClampSegmentSize, GiveHelper, SetField, FindText, AtTime, LeaveUntracked, TrackConnection,
                          TranslateAddresses, ReversePath, RouteOut>;

/// What steps refer to by index.
struct StepObjects {
  std::vector<RateObject> rates;
  std::vector<QuotaObject> quotas;
  std::vector<CountObject> counts;
  std::vector<TurnObject> turns;
  std::vector<RecentObject> recents;
  std::vector<HashObject> hashes;
  std::vector<ChangingSet> sets;
  friend bool operator==(const StepObjects&, const StepObjects&);
};

}  // namespace penstock::classify
