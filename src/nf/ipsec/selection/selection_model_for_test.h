// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A model of how the Linux kernel applies xfrm policies to one packet, written from the kernel's documentation and the
// manual pages of iproute2 alone. It shares no type and no code with `selection_core.h`, which tests hold to it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::ipsec::model {

enum class Family : std::uint8_t { ipv4, ipv6 };

/// Network byte order; an IPv4 address has its four bytes first, and zeros after them.
struct Address {
  Family family = Family::ipv4;
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const Address&, const Address&) = default;
};

struct Prefix {
  Address address;  // host bits are clear
  std::uint8_t length = 0;
};

/// `src PREFIX dst PREFIX [proto N] [sport N] [dport N]`, of ICMP and ICMPv6 `type` and `code` in place of the ports.
/// Both prefixes are of one family.
struct Selector {
  Prefix source;
  Prefix destination;
  std::uint8_t protocol = 0;                      // 0: any
  std::optional<std::uint16_t> source_port;       // or type; only with a protocol that has them
  std::optional<std::uint16_t> destination_port;  // or code
};

struct Packet {
  Address source;
  Address destination;
  std::uint8_t protocol = 0;
  // Ports, or type and code. None where the packet has no such thing, or is a fragment, the first one included.
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
  std::optional<Selector> selector;  // `sel`; none: it carries packets of both families, whatever they are
};

/// An ESP template (`tmpl`) of a policy.
struct Template {
  Address source;  // `src` and `dst`; of one family
  Address destination;
  std::uint32_t spi = 0;
  std::uint32_t reqid = 0;
  Mode mode = Mode::tunnel;
  bool use = false;  // `level use`; else `level required`
};

enum class Direction : std::uint8_t { in, out, forward };

struct Policy {
  Direction direction = Direction::out;
  Selector selector;
  std::uint32_t priority = 0;
  bool block = false;               // `action block`; else `allow`
  std::vector<Template> templates;  // none or one
};

/// All that there is. Of policies with equal priorities the one that comes first here was added first.
struct Database {
  std::vector<Policy> policies;
  std::vector<State> states;
};

/// What becomes of a packet on its way in, or through. The drops are named for the counters in /proc/net/xfrm_stat.
enum class Inbound : std::uint8_t { accept, state_mismatch, no_policy, policy_block, template_mismatch };

/// `applied`: indices of the states that have been removed from the packet, the outermost first; none for a packet that
/// came in the clear. The tests give none or one. `packet` is what was inside. Only policies of `direction` are used,
/// which is `in` or `forward`. The default policy action is to allow (`ip xfrm policy setdefault` was not used).
[[nodiscard]] Inbound check_inbound(const Database& database, Direction direction, const Packet& packet,
                                    const std::vector<std::size_t>& applied);

/// What is done with a packet on its way out.
struct Outbound {
  enum class Action : std::uint8_t {
    clear,        // it leaves as it is
    protect,      // by one of `states`
    blocked,      // XfrmOutPolBlock
    no_state,     // dropped: there is no state that the template takes
    no_endpoint,  // dropped: the template says tunnel mode and does not name the tunnel's destination
  };
  Action action = Action::clear;
  std::vector<std::size_t> states;  // indices of all states that would do, in rising order; any of them may be used
};

/// All states are valid, with no limit reached. The kernel would find a tunnel's source by its routes where the
/// template leaves it open; there are no routes here, so that any source will do.
[[nodiscard]] Outbound decide_outbound(const Database& database, const Packet& packet);

}  // namespace penstock::ipsec::model
