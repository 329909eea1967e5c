// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random rules, and random keys that cluster at the edges of the rules, for tests that compare engines.

#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "classify/key.h"
#include "classify/rule.h"

namespace penstock::classify {

/// Draws from few values, so that they often collide: rules with few addresses and ports, and keys near their ends.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  /// From here on, rules test no connections.
  Draw& without_connections() { return tests_connections_ = false, *this; }

  Ruleset rules(std::uint32_t entries) {
    Ruleset rules;
    for (std::uint32_t i = 0; i < entries; ++i) {
      rules.rules.push_back({i + 1, Target::accept, false, ""});
      Entry entry;
      entry.rule = i;
      entry.family = one_of({NetworkLayer::ipv4, NetworkLayer::ipv6, NetworkLayer::none});
      entry.action = chance(8) ? Action::skip : Action::accept;
      entry.skip_to = i + 1 + below(entries - i);
      std::vector<Condition> conditions;
      for (std::uint32_t n = 1 + below(4); n > 0; --n) conditions.push_back(condition(rules, entry.family));
      add_entry(rules, conditions, entry);
    }
    return rules;
  }

  Key key() {
    Key key;
    key.family = one_of({NetworkLayer::ipv4, NetworkLayer::ipv6});
    key.source = address(key.family);
    key.destination = address(key.family);
    const std::uint32_t protocol = this->protocol();
    key.kind = one_of({protocol << kKindDetailBits | (protocol == 6 ? below(256) : below(4) << 8 | below(4)),
                       kKindNoDetail + protocol, kKindAnyDetail + protocol});
    if (!chance(4)) {
      key.source_port = port();
      key.destination_port = port();
    }
    key.in_port = one_of<PortIndex>({0, 1, 5, 62, 63, 200, kNoPort});
    key.out_port = one_of<PortIndex>({0, 1, 5, 62, 63, 200, kNoPort});
    key.later_fragment = chance(3);
    key.connection =
        number_of({static_cast<ConnectionState>(below(kConnectionStates)), chance(2), chance(4), chance(4)});
    return key;
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t n) { return below(n) == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<std::uint32_t>(choices.size()))];
  }

  std::uint32_t protocol() { return one_of<std::uint32_t>({1, 6, 6, 17, 58, 0, 255}); }
  std::uint16_t port() {
    return static_cast<std::uint16_t>(one_of<std::uint32_t>({0, 1, 79, 80, 81, 255, 256, 1023, 1024, 65535}));
  }
  std::uint32_t word() {
    const std::uint32_t base = one_of<std::uint32_t>({0, 0x0a000000, 0x0a010000, 0x0a0100ff, 0xffff0000, 0xffffffff});
    return base + below(3) - 1;
  }
  Ipv6Address address(NetworkLayer family) {
    if (family == NetworkLayer::ipv4) return {0, word()};
    const std::uint64_t edge = one_of<std::uint64_t>({0, 1, ~std::uint64_t{0}, std::uint64_t{1} << 63});
    return {chance(2) ? edge : std::uint64_t{0x20010db8} << 32 | below(3), chance(2) ? edge : word()};
  }
  std::uint64_t connections() {
    const std::uint32_t states = below(1U << kConnectionStates);
    const bool either = chance(2), reply = chance(2);
    return connections_where([&](const Connection& connection) {
      return (states >> static_cast<unsigned>(connection.state) & 1) != 0 && (either || connection.reply == reply);
    });
  }
  std::uint64_t ports() { return one_of<std::uint64_t>({0, 1, 2, 3, 0x21, std::uint64_t{1} << 62}); }

  Condition condition(Ruleset& rules, NetworkLayer family) {
    const bool negated = chance(3);
    const bool source = chance(2);
    switch (below(tests_connections_ ? 9 : 8)) {
      case 0:
      case 1:
        if (family == NetworkLayer::ipv6) {
          const auto [low, high] = std::minmax({address(family), address(family)});
          return ipv6_condition(rules, source ? Subject::source6 : Subject::destination6, low, high, negated);
        }
        if (family == NetworkLayer::ipv4) {
          const auto [low, high] = std::minmax({word(), word()});
          return ipv4_condition(source ? Subject::source4 : Subject::destination4, {low}, {high}, negated);
        }
        [[fallthrough]];
      case 2: {
        std::vector<PortRange> ranges;
        for (std::uint32_t n = 1 + below(3); n > 0; --n) {
          const auto [low, high] = std::minmax({port(), port()});
          ranges.push_back({low, high});
        }
        return port_condition(rules, source ? Subject::source_port : Subject::destination_port, ranges, negated);
      }
      case 3:
        return protocol_condition(static_cast<std::uint8_t>(protocol()), one_of<std::uint8_t>({0xff, 0xff, 0x0f, 0}),
                                  negated);
      case 4: return tcp_flags_condition(0x02, one_of<std::uint8_t>({0x02, 0x12, 0x17, 0}), negated);
      case 5:
        return icmp_condition(one_of<std::uint8_t>({1, 58}), static_cast<std::uint16_t>(below(4) << 8 | below(4)),
                              one_of<std::uint16_t>({0xff00, 0xffff, 0x00ff, 0}), negated);
      case 6:
        if (chance(2)) return {Subject::transport, negated, 0, 0, 0, 0};
        return {Subject::later_fragment, negated, 0, 0, 0, 0};
      case 8: return connection_condition(connections());
      default: return interface_condition(source ? Subject::in_port : Subject::out_port, ports(), negated);
    }
  }

  std::mt19937_64 random_;
  bool tests_connections_ = true;
};

}  // namespace penstock::classify
