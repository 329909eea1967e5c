// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the GPU stage of each function in the catalog does to a packet, run on the host.

#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <type_traits>
#include <utility>
#include <variant>

#include "classify/bitvector_build.h"
#include "nf/filter/filter.h"
#include "nf/filter/filter_core.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/translating_core.h"
#include "nf/ipsec/device_steps_for_test.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/match/host_scan_for_test.h"
#include "nf/nids/nids.h"
#include "nf/router/router.h"
#include "property/access_runs.h"

namespace penstock::property {

inline firewall::TranslatingState random_translation(std::mt19937_64& random) {
  firewall::TranslatingState state;
  state.address = {random(), random()};
  state.port = static_cast<std::uint16_t>(random());
  state.sides = static_cast<std::uint8_t>(random() % 3);
  state.connection = number_of(classify::Connection{classify::ConnectionState::established});
  return state;
}

inline DeviceCore device_core_of(firewall::Firewall& firewall) {
  auto built = classify::build_bitvectors(firewall.rules());
  EXPECT_TRUE(built);
  auto tables = std::make_shared<const classify::BitVectorTables>(std::move(*built));
  const firewall::JudgeCore<classify::BitVectorView> core{tables->view(firewall.rules().entries.data()),
                                                          classify::view_of(firewall.rules())};
  const bool translates = firewall.translates();
  // Without a worker that knows connections, packets get translations that are independent of what is in them.
  auto random = std::make_shared<std::mt19937_64>(1);
  return [tables, core, random, translates](PacketView& packet, std::byte* finding, const std::byte* given) {
    std::uint32_t counter = 0;
    if (translates) {
      firewall::TranslatingState state;
      if (given == nullptr) state = random_translation(*random);
      if (given != nullptr) std::memcpy(&state, given, sizeof state);
      packet.packet->verdict = firewall::TranslatingCore<classify::BitVectorView>{{core}}(packet, state, counter);
    } else if (given != nullptr) {
      conntrack::PacketConnection state;
      std::memcpy(&state, given, sizeof state);
      packet.packet->verdict = firewall::TrackedJudgeCore<classify::BitVectorView>{core}(packet, state, counter);
    } else {
      packet.packet->verdict = core(packet, counter);
    }
    std::memcpy(finding, &counter, sizeof counter);
  };
}

inline DeviceCore device_core_of(filter::Filter& filter) {
  auto tables = std::make_shared<const filter::FilterTables>(filter.list());
  return [tables, &filter](PacketView& packet, std::byte* finding, const std::byte* /*state*/) {
    std::uint32_t words[filter::kMostFilters / 32] = {};
    packet.packet->verdict = filter::interpret_all(tables->view(filter.list()), packet, words);
    std::memcpy(finding, words, filter.traits().findings_bytes);
  };
}

inline DeviceCore device_core_of(router::Router& router) {
  auto reader = std::make_shared<function::Snapshot<router::RouterTables>::Reader>(router.tables());
  return [reader, &router](PacketView& packet, std::byte* /*finding*/, const std::byte* /*state*/) {
    const router::RouterTables& tables = reader->table();
    std::visit(
        [&]<typename View>(const View& v4) {
          const router::ForwardCore<View, router::Fib6View> core{v4, tables.v6.view(), tables.view(), router.rules()};
          packet.packet->verdict = core(packet);
        },
        tables.v4.view());
  };
}

inline DeviceCore device_core_of(ipsec::Ipsec& ipsec) {
  auto steps = std::make_shared<ipsec::testing::DeviceSteps>(ipsec);
  return [steps](PacketView& packet, std::byte* finding, const std::byte* /*state*/) { (*steps)(packet, finding); };
}

inline DeviceCore device_core_of(nids::Nids& nids) {
  auto detection = nids::Detection::compile(nids.rules(), {});
  EXPECT_TRUE(detection);
  auto scan = std::make_shared<const nids::testing::HostScan>((*detection)->literals());
  return [scan](PacketView& packet, std::byte* finding, const std::byte* /*state*/) {
    const nids::PacketLiterals found = (*scan)(packet);
    std::memcpy(finding, &found, sizeof found);
  };
}

/// Null: this test does not know the function.
inline DeviceCore device_core_of(function::NetworkFunction& function) {
  DeviceCore core;
  const auto try_as = [&]<typename Function>(std::type_identity<Function>) {
    if (auto* const as = dynamic_cast<Function*>(&function)) core = device_core_of(*as);
  };
  try_as(std::type_identity<filter::Filter>{});
  try_as(std::type_identity<firewall::Firewall>{});
  try_as(std::type_identity<router::Router>{});
  try_as(std::type_identity<ipsec::Ipsec>{});
  try_as(std::type_identity<nids::Nids>{});
  return core;
}

}  // namespace penstock::property
