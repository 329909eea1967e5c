// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A model of how the Linux kernel applies xfrm policies to one packet, written only from the kernel's documentation and
// iproute2's manual pages. Shares no type and no code with `selection_core.h`, which tests compare with it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::ipsec::model {

enum class Family : std::uint8_t { ipv4, ipv6 };

/// Network byte order; an IPv4 address is in the first four bytes, followed by zeros.
struct Address {
  Family family = Family::ipv4;
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const Address&, const Address&) = default;
};

struct Prefix {
  Address address;  // host bits are clear
  std::uint8_t length = 0;
};

/// `src PREFIX dst PREFIX [proto N] [sport N] [dport N]`; for ICMP and ICMPv6 `type` and `code` replace the ports. Both
/// prefixes are of one family.
struct Selector {
  Prefix source;
  Prefix destination;
  std::uint8_t protocol = 0;                      // 0: any
  std::optional<std::uint16_t> source_port;       // or type; only with a protocol that has ports or types
  std::optional<std::uint16_t> destination_port;  // or code
};

struct Packet {
  Address source;
  Address destination;
  std::uint8_t protocol = 0;
  // Ports, or type and code. Empty if the packet has neither or is a fragment, including the first.
  std::optional<std::uint16_t> source_port;
  std::optional<std::uint16_t> destination_port;
};

enum class Mode : std::uint8_t { transport, tunnel };

/// An ESP state, as `ip xfrm state` prints it.
struct State {
  Address source;  // `src` and `dst`
  Address destination;
  std::uint32_t spi = 0;
  std::uint32_t reqid = 0;
  Mode mode = Mode::tunnel;
  std::optional<Selector> selector;  // `sel`; if empty, it carries any packet of either family
};

/// An ESP template (`tmpl`) of a policy.
struct Template {
  Address source;  // `src` and `dst`, of one family
  Address destination;
  std::uint32_t spi = 0;
  std::uint32_t reqid = 0;
  Mode mode = Mode::tunnel;
  bool use = false;  // `level use`; otherwise `level required`
};

enum class Direction : std::uint8_t { in, out, forward };

struct Policy {
  Direction direction = Direction::out;
  Selector selector;
  std::uint32_t priority = 0;
  bool block = false;               // `action block`; otherwise `allow`
  std::vector<Template> templates;  // none or one
};

/// All states and policies. Of policies with equal priorities, the one that comes first here was added first.
struct Database {
  std::vector<Policy> policies;
  std::vector<State> states;
};

/// The result for an inbound or forwarded packet. The drops are named after the counters in /proc/net/xfrm_stat.
enum class Inbound : std::uint8_t { accept, state_mismatch, no_policy, policy_block, template_mismatch };

/// `applied`: indices of the states that decapsulated the packet, outermost first; empty for a packet that arrived in
/// the clear. The tests pass none or one. `packet` is the decapsulated packet. Only policies of `direction`, `in` or
/// `forward`, are used. The default policy action is to allow (`ip xfrm policy setdefault` was not used).
[[nodiscard]] Inbound check_inbound(const Database& database, Direction direction, const Packet& packet,
                                    const std::vector<std::size_t>& applied);

/// The result for an outbound packet.
struct Outbound {
  enum class Action : std::uint8_t {
    clear,        // it leaves unprotected
    protect,      // by one of `states`
    blocked,      // XfrmOutPolBlock
    no_state,     // dropped: no state matches the template
    no_endpoint,  // dropped: the template is for a tunnel but does not name its destination
  };
  Action action = Action::clear;
  std::vector<std::size_t> states;  // indices of all suitable states, ascending; any of them may be used
};

/// Assumes that all states are valid, with no limit reached. If the template leaves a tunnel's source open, the kernel
/// would choose it by its routes; there are no routes here, so any source is accepted.
[[nodiscard]] Outbound decide_outbound(const Database& database, const Packet& packet);

}  // namespace penstock::ipsec::model
