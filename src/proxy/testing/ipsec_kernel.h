// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of outbound `ipsec` on a simulated device.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/sealing_steps_for_test.h"
#include "proxy/testing/host_backend.h"

namespace penstock::proxy::testing {

inline std::unique_ptr<function::LoadedTables> load_ipsec(const function::StageRecipe& recipe) {
  const auto kept = std::make_shared<const function::StageRecipe>(recipe);
  const auto tables = std::make_shared<ipsec::testing::SealingOnHost>(*ipsec::read_outbound_recipe(*kept));
  const std::uint64_t bytes = ipsec::remote_outbound_kernel().load_bytes(*kept);
  return std::make_unique<HostTables>(
      [kept, tables](PacketView packet, std::byte* finding, const std::byte* state) {
        const ipsec::SealingView view = tables->view();
        const ipsec::OutboundFinding found =
            ipsec::testing::carry_out_on_host(ipsec::decision_of(state, 0, view), packet, tables->spans, view);
        std::memcpy(finding, &found, sizeof found);
        return packet.packet->verdict;
      },
      bytes);
}

inline function::RemoteKernel ipsec_kernel() {
  function::RemoteKernel kernel = ipsec::remote_outbound_kernel();
  kernel.load = load_ipsec;
  return kernel;
}

}  // namespace penstock::proxy::testing
