// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: runs what a GPU would run of a recipe, on the host.

#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "function/testing/recipe_lies.h"
#include "nf/router/expanded_for_test.h"
#include "nf/router/recipe.h"

namespace penstock::router {

/// Whether a proxy would load it: a few runs can be tables of many gigabytes.
inline bool can_be_loaded(const function::StageRecipe& recipe) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
  return check_recipe(recipe) && remote_kernel().load_bytes(recipe) <= kMostBytes;
}

/// The verdicts of packets with the tables of a recipe that has been checked.
inline std::vector<Verdict> run_on_host(const function::StageRecipe& recipe, std::span<testing::LonePacket> packets) {
  const RecipeParts parts = *read_recipe(recipe);
  const ExpandedTables tables(parts.tables);
  std::vector<Verdict> verdicts;
  std::visit(
      [&]<typename View>(const View& v4) {
        const ForwardCore<View, Fib6View> core{v4, tables.spans().v6.view(), tables.spans().view(), parts.rules};
        for (testing::LonePacket& packet : packets) verdicts.push_back(core(packet.view()));
      },
      tables.spans().v4_view());
  return verdicts;
}

/// Packets of every kind, to addresses that tables know and to others.
template <typename Choices>
std::vector<testing::LonePacket> packets_for_router(std::size_t count, testing::RandomFrames& draw, Choices& choose) {
  std::vector<testing::LonePacket> packets;
  for (std::size_t i = 0; i < count; ++i) {
    testing::LonePacket packet(draw.frame());
    const PacketLayout& layout = packet.view().layout();
    if (layout.has(PacketLayout::kNetworkHeader) && layout.is_ip()) {
      std::uint8_t* const frame = packet.view().frame + layout.network_offset;
      std::uint8_t* const to = frame + (layout.network == NetworkLayer::ipv4 ? 16 : 24);
      const std::size_t length = layout.network == NetworkLayer::ipv4 ? 4 : 16;
      for (std::size_t byte = 0; byte < length; ++byte) {
        if (choose.below(3) == 0) to[byte] = static_cast<std::uint8_t>(choose.below(256));
      }
    }
    packet.descriptor().flow_hash ^= choose.below(1U << 31);
    packet.descriptor().in_port = static_cast<PortIndex>(choose.below(4));
    packets.push_back(std::move(packet));
  }
  return packets;
}

}  // namespace penstock::router
