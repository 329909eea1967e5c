// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/finish_stages.h"

#include <cstring>
#include <ctime>

#include "nf/ipsec/device_tables.h"

namespace penstock::ipsec {

void OutboundFinishStage::finish(std::span<const PacketView> packets,
                                 std::span<const std::byte* const> findings) noexcept {
  const SaState::Seconds now = std::time(nullptr);
  SaState* run = nullptr;  // packets of an SA without limits are counted together
  std::uint32_t run_packets = 0;
  std::uint64_t run_bytes = 0;
  const auto end_run = [&] {
    if (run != nullptr) static_cast<void>(run->carry(run_packets, run_bytes, now));
    run = nullptr;
    run_packets = 0;
    run_bytes = 0;
  };
  for (std::size_t i = 0; i < packets.size(); ++i) {
    OutboundFinding finding;
    std::memcpy(&finding, findings[i], sizeof finding);
    if (finding.sa == kNoSa) continue;
    SaState& state = *ipsec_.tables().states()[finding.sa];
    if (run != &state) end_run();
    if (state.limited() ? !state.carry(1, finding.ip_bytes, now) : state.ended()) {
      packets[i].packet->verdict = Verdict::drop(Reason::lifetime);
      ipsec_.limit_reached();
    } else if (!state.limited()) {
      run = &state;
      ++run_packets;
      run_bytes += finding.ip_bytes;
    }
  }
  end_run();
}

void InboundFinishStage::finish(std::span<const PacketView> packets,
                                std::span<const std::byte* const> findings) noexcept {
  const SaState::Seconds now = std::time(nullptr);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    InboundFinding finding;
    std::memcpy(&finding, findings[i], sizeof finding);
    if (finding.sa == kNoSa) continue;
    const Reason reason =
        ipsec_.tables().states()[finding.sa]->admit(finding.sequence, finding.authentic != 0, finding.ip_bytes, now);
    // Before all that was said of what is inside, as on the twin.
    if (reason != Reason::none) packets[i].packet->verdict = Verdict::drop(reason);
  }
}

}  // namespace penstock::ipsec
