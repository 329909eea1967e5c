// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of outbound `ipsec` on a simulated device.

#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/sealing_steps_for_test.h"
#include "proxy/testing/host_backend.h"

namespace penstock::proxy::testing {

inline std::unique_ptr<function::LoadedTables> load_ipsec(const function::StageRecipe& recipe) {
  const auto kept = std::make_shared<const function::StageRecipe>(recipe);
  const ipsec::SealingSpans tables = *ipsec::read_outbound_recipe(*kept);
  return std::make_unique<HostTables>(
      [kept, tables](PacketView packet, std::byte* finding, const std::byte* state) {
        ipsec::Decision decision;
        std::memcpy(&decision, state, sizeof decision);
        const ipsec::OutboundFinding found = ipsec::testing::carry_out_on_host(decision, packet, tables);
        std::memcpy(finding, &found, sizeof found);
        return packet.packet->verdict;
      },
      tables.sas.size_bytes() + tables.keys.size_bytes());
}

inline function::RemoteKernel ipsec_kernel() {
  function::RemoteKernel kernel = ipsec::remote_outbound_kernel();
  kernel.load = load_ipsec;
  return kernel;
}

}  // namespace penstock::proxy::testing
