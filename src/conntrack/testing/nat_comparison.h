// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the kernel's NAT: packets pass through both with the same rules, and what leaves must be the same, byte
// for byte, as well as what both remember. Where the kernel takes a port at random, ours takes the same one, if it may.

#pragma once

#include <array>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/nanoseconds.h"
#include "conntrack/ftp.h"
#include "conntrack/nat_choice.h"
#include "conntrack/testing/kernel_comparison.h"
#include "conntrack/testing/nat_kernel.h"

namespace penstock::conntrack {

inline std::string text_of(const Tuple& tuple) {
  const auto address = [&](const Ipv6Address& of) {
    return tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(of.low)}) : to_string(of);
  };
  return fmt::format("{} {}:{} > {}:{}", tuple.protocol, address(tuple.source), tuple.source_port,
                     address(tuple.destination), tuple.destination_port);
}

/// As Linux forwards: one hop less.
inline void count_hop(Packet& packet) {
  if (packet[0] >> 4 == 6) {
    --packet[7];
    return;
  }
  --packet[8];
  // RFC 1141, as ip_decrease_ttl.
  std::uint32_t sum = packet[10] * 256U + packet[11] + 0x100U;
  sum = (sum + (sum >> 16)) & 0xffff;
  put_be16(packet, 10, sum == 0xffff ? 0 : sum);
}

/// Both translators with one set of rules.
class NatComparison {
 public:
  NatComparison(NatKernel& kernel, const NatRuleSet& rules)
      : kernel_(kernel), rules_(rules), table_(Options{.ftp = {.offered = rules.ftp}}) {
    EXPECT_TRUE(kernel_.use(rules));
  }

  /// What leaves both; `same()` is false once something differs.
  std::optional<NatKernel::Output> send(Side side, const Packet& packet) {
    ParsedPacket parsed(packet);
    parsed.bytes.resize(packet.size() + kMostFtpGrowth);  // room for it
    const Tracked tracked = table_.track(parsed.view(), now_ns());
    const bool begins = tracked.connection != nullptr && !tracked.connection->confirmed() && tracked.may_be_first();
    if (begins && rules_.ftp && tracked.connection->original.destination_port == 21)
      table_.give_helper(*tracked.connection);
    const bool possible = (!begins || translate(*tracked.connection)) && is_accepted(tracked);
    ParsedPacket rehearsal(packet);
    const bool helped = !possible || begins || help(parsed.view(), tracked);
    const bool leaves = possible && helped && write(rehearsal.view(), tracked) && !is_to_router(rehearsal.view());
    const std::optional<NatKernel::Output> output = kernel_.forward(side, packet, leaves ? kLongMs : kShortMs);
    if (begins && possible && output) adopt(*tracked.connection);
    bool passes = possible && helped && write(parsed.view(), tracked);
    parsed.bytes.resize(parsed.descriptor.length);
    const bool delivered = passes && is_to_router(parsed.view());
    passes = passes && !delivered;
    if (passes && tracked.connection != nullptr) passes = table_.confirm(*tracked.connection);
    if (passes && begins) begun_.push_back(tracked.connection->original);
    Tuple addresses;
    read_addresses(parsed.view(), addresses);
    note(side, packet, tracked, passes ? "" : delivered ? ", delivered" : ", dropped");
    if (!passes && output) {
      fail(fmt::format("only the kernel forwards it: {}", hex(output->packet)));
    } else if (passes && !output) {
      fail("only we forward it");
    } else if (output) {
      compare(parsed.bytes, addresses, *output);
    }
    if (tracked.connection != nullptr && tracked.connection->confirmed()) compare_memory(*tracked.connection);
    translated_ += parsed.bytes != packet && !tracked.is_error();
    related_ += parsed.bytes != packet && tracked.is_error();
    dropped_ += !passes && !delivered;
    return output;
  }

  [[nodiscard]] bool same() const { return same_; }
  [[nodiscard]] const Counters& counters() const { return table_.counters(); }
  /// Packets: translated; of them ICMP errors; dropped. Connections: whose port was taken at random.
  [[nodiscard]] std::array<std::size_t, 4> counts() const { return {translated_, related_, dropped_, adopted_}; }

 private:
  static constexpr int kLongMs = 300, kShortMs = 3;

  /// By the rules that come with the helper.
  [[nodiscard]] bool is_accepted(const Tracked& tracked) const {
    if (!rules_.ftp || tracked.state == State::established || tracked.state == State::related) return true;
    return tracked.state == State::new_connection && tracked.connection->original.destination_port == 21;
  }
  bool help(PacketView packet, const Tracked& tracked) {
    if (tracked.connection == nullptr || !tracked.connection->has_helper()) return true;
    return table_.help(packet, tracked) == Helped::passes;
  }
  static bool write(PacketView packet, const Tracked& tracked) {
    return rewrite(packet, rewrite_for(tracked, Rewrite::kDestination)) &&
           rewrite(packet, rewrite_for(tracked, Rewrite::kSource));
  }
  static bool is_to_router(PacketView packet) {
    Tuple addresses;
    read_addresses(packet, addresses);
    const unsigned family = addresses.ip_version == 4 ? 0 : 1;
    return addresses.destination == address_of(kRouterOutside[family]) ||
           addresses.destination == address_of(kRouterInside[family]);
  }

  bool translate(Connection& connection) {
    const Tuple& original = connection.original;
    const bool to_public = lies_in(original.destination, original.ip_version, kPublic);
    if (!table_.translate(connection, NatKind::destination,
                          to_public ? rules_.destination.range(original) : NatRange{})) {
      return false;
    }
    source_ = from_inside_to_outside(connection) ? rules_.source.range(original) : NatRange{};
    destination_ = to_public ? rules_.destination.range(original) : NatRange{};
    before_source_ = connection.reply;
    return table_.translate(connection, NatKind::source, source_);
  }
  static bool from_inside_to_outside(const Connection& connection) {
    return lies_in(connection.original.source, connection.original.ip_version, kInside) &&
           !lies_in(connection.reply.source, connection.original.ip_version, kInside);
  }

  /// Takes the kernel's port, if both have taken one at random.
  void adopt(Connection& connection) {
    const std::optional<TrackingKernel::Entry> theirs = kernel_.find(connection.original);
    if (!theirs || theirs->tuples[1] == connection.reply) return;
    const Tuple& reply = theirs->tuples[1];
    const Tuple ours = *inverse_of(connection.reply), before = *inverse_of(before_source_);
    std::optional<Tuple> chosen = inverse_of(reply);
    if (!chosen) return;
    Tuple same_port = *chosen;
    same_port.source_port = ours.source_port;
    if (destination_.random_port() && !is_icmp(ours)) same_port.destination_port = ours.destination_port;
    const auto may_have = [&](const Tuple& tuple) {
      const PortSearch search = port_search(before, NatKind::source, source_);
      const bool random_source = tuple.source_port >= search.first &&
                                 tuple.source_port - search.first < static_cast<int>(search.count) &&
                                 (source_.random_port() || ours.source_port != before.source_port || is_icmp(ours));
      return random_source || tuple.source_port == ours.source_port;
    };
    // The newest connection of the same socket gives its source, if it can: that is not random.
    bool reused = false;
    for (std::size_t i = begun_.size(); i-- > 0 && source_.flags != 0 && !source_.random_port();) {
      const Connection* const other = table_.look_up(begun_[i]).connection;
      const Tuple& original = connection.original;
      if (other == nullptr || other->original != begun_[i] || !other->source_translated() ||
          begun_[i].source != original.source || begun_[i].source_port != original.source_port ||
          begun_[i].protocol != original.protocol) {
        continue;
      }
      const Tuple as_before = *inverse_of(other->reply);
      reused = as_before.source == ours.source && as_before.source_port == ours.source_port;
      break;
    }
    if (same_port != ours || !may_have(*chosen) || reused) return;  // compare_memory will complain
    if (chosen->destination_port < destination_.first_port && destination_.random_port()) return;
    ++adopted_;
    connection.reply = reply;
    const auto status = static_cast<std::uint16_t>(theirs->status);
    connection.status |= status & (Connection::kSourceNat | Connection::kDestinationNat);
  }

  void compare(Packet ours, const Tuple& addresses, const NatKernel::Output& output) {
    NatKernel::Output theirs = output;
    // The kernel computes the checksum of other payload anew, and writes 0 as 0xffff then, which is the same.
    ParsedPacket parsed(theirs.packet);
    if (rules_.ftp && parsed.descriptor.layout.transport == ip_protocol::kTcp &&
        parsed.view().tcp().checksum.value() == 0xffff) {
      put_be16(theirs.packet, parsed.descriptor.layout.transport_offset + 16U, 0);
    }
    const Side side = lies_in(addresses.destination, addresses.ip_version, kInside) ? Side::inside : Side::outside;
    count_hop(ours);
    if (side != theirs.side) return fail("leaves on the other side");
    if (ours != theirs.packet)
      fail(fmt::format("the kernel's packet is {}\n  ours             is {}", hex(theirs.packet), hex(ours)));
  }

  void compare_memory(const Connection& ours) {
    const std::optional<TrackingKernel::Entry> theirs = kernel_.find(ours.original);
    if (!theirs) return fail("only we keep a connection");
    if (theirs->tuples[0] != ours.original || theirs->tuples[1] != ours.reply) {
      return fail(fmt::format("the kernel's connection is {}, its reply {}; ours {}, {}", text_of(theirs->tuples[0]),
                              text_of(theirs->tuples[1]), text_of(ours.original), text_of(ours.reply)));
    }
    constexpr std::uint32_t kCompared = Connection::kSeenReply | Connection::kAssured | Connection::kConfirmed |
                                        Connection::kSourceNat | Connection::kDestinationNat |
                                        Connection::kSourceNatDone | Connection::kDestinationNatDone |
                                        Connection::kExpected | Connection::kSequenceAdjusted;
    if ((theirs->status & kCompared) != (ours.status & kCompared)) {
      return fail(
          fmt::format("the kernel's status is {}, ours {}", theirs->status & kCompared, ours.status & kCompared));
    }
    const auto remaining = static_cast<std::int64_t>(table_.remaining_ns(ours) / kNsPerSecond);
    const bool alike = ours.original.protocol != ip_protocol::kSctp;  // which has states in the kernel only
    if ((alike && std::abs(remaining - static_cast<std::int64_t>(theirs->timeout_s)) > 1) ||
        theirs->tcp_state != ours.tcp_state) {
      fail(fmt::format("the kernel's connection is in state {} for {} s, ours in {} for {} s",
                       static_cast<int>(theirs->tcp_state), theirs->timeout_s, static_cast<int>(ours.tcp_state),
                       remaining));
    }
    if (!table_contains(ours.reply)) fail("is not found by its reply");
  }
  bool table_contains(const Tuple& reply) {
    std::size_t found = 0;
    table_.for_each(0, 100'000, [&](const Connection& connection) { found += connection.reply == reply; });
    return found == 1;
  }

  void note(Side side, const Packet& packet, const Tracked& tracked, const std::string& what) {
    history_.push_back(fmt::format("from {}: {}  {}{}{}", side == Side::inside ? "inside" : "outside", hex(packet),
                                   describe(tracked.state, tracked.direction), what,
                                   tracked.connection == nullptr
                                       ? ""
                                       : fmt::format("; {}, reply {}", text_of(tracked.connection->original),
                                                     text_of(tracked.connection->reply))));
    constexpr std::size_t kHistory = 60;
    if (history_.size() > kHistory) history_.pop_front();
  }
  void fail(const std::string& problem) {
    if (!same_) return;
    same_ = false;
    std::string text;
    for (const std::string& line : history_) text += "\n  " + line;
    ADD_FAILURE() << rules_.name << ": " << problem << text;
  }

  NatKernel& kernel_;
  const NatRuleSet& rules_;
  Table table_;
  std::vector<Tuple> begun_;       // the original tuples of all connections, oldest first
  NatRange source_, destination_;  // of the last new connection
  Tuple before_source_;            // its reply, before its source was translated
  bool same_ = true;
  std::size_t translated_ = 0, related_ = 0, dropped_ = 0, adopted_ = 0;
  std::deque<std::string> history_;
};

}  // namespace penstock::conntrack
