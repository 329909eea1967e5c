// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel for tests, as a function's twin and as a proxy's: drops UDP from some source ports, which are its table, and
// decrements the TTL of all other IPv4 packets by its argument.

#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "function/stage_recipe.h"
#include "proxy/problem.h"
#include "proxy/testing/host_backend.h"
#include "run/testing/fakes.h"

namespace penstock::proxy::testing {

using Ports = std::vector<std::uint16_t>;

inline constexpr FieldSet kBlockReads =
    kParsedFields | FieldSet{Field::l4_src_port, Field::ipv4_ttl, Field::ipv4_checksum, Field::verdict};
inline constexpr FieldSet kBlockWrites{Field::ipv4_ttl, Field::ipv4_checksum, Field::verdict};
inline constexpr Access kBlockAccess{kBlockReads, kBlockWrites};

inline Verdict block(PacketView packet, const Ports& ports, std::uint8_t step) {
  if (packet.has_ports()) {
    for (const std::uint16_t port : ports) {
      if (packet.udp().source_port.value() == port) return Verdict::drop(0);
    }
  }
  if (packet.layout().network == NetworkLayer::ipv4 && packet.layout().has(PacketLayout::kNetworkHeader))
    packet.ipv4().ttl = static_cast<std::uint8_t>(packet.ipv4().ttl - step);
  return packet.packet->verdict;
}

inline function::StageRecipe block_recipe(const Ports& ports, std::uint8_t step) {
  std::vector<std::byte> table(ports.size() * sizeof(std::uint16_t));
  if (!table.empty()) std::memcpy(table.data(), ports.data(), table.size());
  return {"block", {static_cast<std::byte>(step)}, {std::make_shared<const std::vector<std::byte>>(std::move(table))}};
}

inline Result<void> check_block(const function::StageRecipe& recipe) {
  if (recipe.arguments.size() == 1 && recipe.tables.size() == 1 && recipe.tables[0]->size() % 2 == 0) return {};
  return failure(problem("block: not a recipe of it", "", "one argument and one table"));
}

inline HostTables::Loaded block_of(const function::StageRecipe& recipe) {
  Ports ports(recipe.tables[0]->size() / sizeof(std::uint16_t));
  if (!ports.empty()) std::memcpy(ports.data(), recipe.tables[0]->data(), recipe.tables[0]->size());
  const auto step = static_cast<std::uint8_t>(recipe.arguments[0]);
  return {[ports = std::move(ports), step](PacketView packet, std::byte*, const std::byte*) {
            return block(packet, ports, step);
          },
          recipe.tables[0]->size()};
}

inline std::unique_ptr<function::LoadedTables> load_block(const function::StageRecipe& recipe) {
  HostTables::Loaded loaded = block_of(recipe);
  return std::make_unique<HostTables>(std::move(loaded.work), loaded.bytes, block_of);
}

inline function::StageNeeds needs_of_block(const function::StageRecipe& /*recipe*/) {
  return {kBlockAccess, 0, 0, {}, false};
}

inline constexpr function::RemoteKernel kBlockKernels[] = {{"block", check_block, load_block, needs_of_block}};

/// A function of it in a chain.
inline void add_block(run::testing::FakeChain& chain, Ports ports, std::uint8_t step = 1) {
  auto& function = chain.add_function(
      "block", run::testing::each([ports, step](PacketView packet) { return block(packet, ports, step); }));
  static constexpr std::string_view kReasons[] = {"blocked"};
  function.own_traits.drop_reasons = kReasons;
  function.own_traits.cpu = kBlockAccess;
  function.own_traits.devices[function::Processor::gpu] = kBlockAccess;
  function.recipe = [ports, step] { return std::optional(block_recipe(ports, step)); };
}

}  // namespace penstock::proxy::testing
