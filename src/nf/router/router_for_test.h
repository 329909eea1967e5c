// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: makes routers from text, and sends packets through their CPU twin.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/router/route_reader.h"
#include "nf/router/router.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::router {

inline const std::vector<std::string> kTestPorts{"lan", "wan", "dmz"};
inline constexpr PortIndex kLan = 0, kWan = 1, kDmz = 2;

inline RouterConfig config_of(std::string_view routes) {
  RouterConfig config;
  config.devices = Devices(kTestPorts);
  config.ports.resize(kTestPorts.size());
  auto read = parse_routes(routes, "routes.txt", config.devices);
  EXPECT_TRUE(read) << to_string(read.error());
  if (read) config.routes = std::move(read->value);
  return config;
}

inline Neighbours neighbours_of(std::string_view text) {
  Devices devices(kTestPorts);
  auto read = parse_neighbours(text, "neigh.txt", devices);
  EXPECT_TRUE(read) << to_string(read.error());
  return read ? std::move(read->value) : Neighbours{};
}

inline std::unique_ptr<Router> build(RouterConfig config) {
  auto router = Router::build(std::move(config));
  EXPECT_TRUE(router) << to_string(router.error());
  return router ? std::move(*router) : nullptr;
}

/// A frame with its descriptor, parsed.
struct TestPacket {
  testing::Bytes bytes;
  PacketDescriptor descriptor;

  explicit TestPacket(testing::Bytes frame, LinkType link = LinkType::ethernet, std::size_t captured = ~std::size_t{0})
      : bytes(std::move(frame)) {
    descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
    if (captured < bytes.size()) bytes.resize(captured);
    descriptor.length = static_cast<std::uint32_t>(bytes.size());
    descriptor.link_type = link;
    parse(view());
    descriptor.flow_hash = flow_hash(view());
  }
  explicit TestPacket(const testing::PacketBuilder& builder) : TestPacket(builder.bytes()) {}

  [[nodiscard]] PacketView view() { return {bytes.data(), &descriptor}; }
  [[nodiscard]] MacAddress destination_mac() { return view().ethernet().destination; }
  [[nodiscard]] MacAddress source_mac() { return view().ethernet().source; }
};

/// "lan", or the drop reason.
inline std::string name_of(Verdict verdict) {
  if (verdict.kind == VerdictKind::drop) return std::string(kDropReasons[verdict.value]);
  if (verdict.kind != VerdictKind::forward) return "neither forwarded nor dropped";
  return verdict.value < kTestPorts.size() ? kTestPorts[verdict.value] : "no port";
}

inline std::string send_one(Router& router, TestPacket& packet) {
  const auto stage = router.make_cpu_stage();
  std::vector<PacketView> views{packet.view()};
  stage->begin_batch();
  stage->process(views);
  return name_of(packet.descriptor.verdict);
}

/// Explains with the newest tables.
inline std::string explain_one(Router& router, TestPacket& packet) {
  return router.make_cpu_stage()->explain(packet.view());
}

}  // namespace penstock::router
