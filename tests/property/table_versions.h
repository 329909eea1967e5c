// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Router tables with versions. Version v sends packets by port v % 2 to a next hop whose MAC contains v. So each packet
// that leaves shows which version decided on it, and whether it saw only half of a change.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "nf/router/router_for_test.h"

namespace penstock::property {

inline constexpr std::uint32_t kPorts = 2;

inline router::RouterChange version(std::uint32_t v) {
  router::RouterChange change;
  const char* const port = router::kTestPorts[v % kPorts].c_str();
  change.neighbours =
      router::neighbours_of(fmt::format("10.0.0.1 dev {} lladdr 02:00:{:02x}:{:02x}:{:02x}:{:02x} STALE\n", port,
                                        v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255));
  change.routes =
      router::config_of(fmt::format("192.0.0.0/16 via 10.0.0.1 dev {0}\n192.0.2.0/24 via 10.0.0.1 dev {0}\n", port))
          .routes;
  return change;
}

inline std::unique_ptr<router::Router> router_of_version_0(router::Fib4Engine engine) {
  router::RouterConfig config = router::config_of("");
  config.engine = engine;
  config.routes = version(0).routes;
  config.neighbours.emplace();
  auto made = router::build(std::move(config));
  EXPECT_TRUE(made->update(version(0)));
  return made;
}

struct Decided {
  std::uint32_t version;
  PortIndex port;

  [[nodiscard]] bool half_a_change() const { return version % kPorts != port; }
};
inline Decided decided(PacketView packet) {
  const MacAddress& mac = packet.ethernet().destination;
  return {std::uint32_t{mac.bytes[2]} << 24 | std::uint32_t{mac.bytes[3]} << 16 | std::uint32_t{mac.bytes[4]} << 8 |
              mac.bytes[5],
          packet.packet->verdict.value};
}

}  // namespace penstock::property
