// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hashed filter of `nids` on a simulated device: it runs what a GPU would run.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "nf/nids/match/filter_recipe.h"
#include "nf/nids/match/flow_state.h"
#include "nf/nids/match/hashed_filter_core.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/scan_range_core.h"
#include "nf/nids/match/seam_core.h"
#include "proxy/testing/table_kernels.h"

namespace penstock::proxy::testing {

/// What the stage finds in a packet.
inline nids::PacketLiterals find_literals(const nids::HashedFilterView& filter, PacketView packet) {
  const nids::ScanRange range = nids::scan_range(packet.layout(), packet.length());
  nids::PacketLiterals finding;
  finding.flags = nids::PacketLiterals::kScanned;
  if (range.is_payload) finding.flags |= nids::PacketLiterals::kPayload;
  const auto add = [&](std::uint32_t literal) { finding.add(literal); };
  const std::uint8_t* const begin = packet.frame + range.begin;
  const std::uint8_t* const end = packet.frame + range.end;
  if (filter.pairs) {
    nids::scan_filtered<true>(filter, begin, end, add);
  } else {
    nids::scan_filtered<false>(filter, begin, end, add);
  }
  return finding;
}

inline std::unique_ptr<function::LoadedTables> load_literals(const function::StageRecipe& recipe) {
  const auto kept = std::make_shared<const function::StageRecipe>(recipe);
  const nids::FilterRecipeParts parts = *nids::read_filter_recipe(*kept);
  return tables_of(*kept, [kept, parts](PacketView packet, std::byte* finding, const std::byte* given) {
    nids::PacketLiterals found = find_literals(parts.filter.view(), packet);
    if (parts.with_states) {
      nids::FlowState state;
      std::memcpy(&state, given, sizeof state);
      const nids::ScanRange range = nids::scan_range(packet.layout(), packet.length());
      nids::scan_seam(parts.filter.view(), state, packet.frame + range.begin, packet.frame + range.end, found);
    }
    std::memcpy(finding, &found, sizeof found);
    return packet.packet->verdict;
  });
}
inline function::RemoteKernel nids_kernel() { return simulated(nids::remote_filter_kernel(), load_literals); }

}  // namespace penstock::proxy::testing
