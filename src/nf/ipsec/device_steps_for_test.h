// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of the GPU stages (ipsec.cu) on the host, one packet at a time, with the same cores. For tests on machines
// without a GPU.

#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "classify/bitvector_build.h"
#include "classify/bitvector_core.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/inbound_core.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/ipsec.h"
#include "packet/parse_core.h"

namespace penstock::ipsec::testing {

class DeviceSteps {
 public:
  /// Borrows the function, whose run must have begun.
  explicit DeviceSteps(Ipsec& ipsec)
      : tables_(ipsec.tables()),
        growth_(ipsec.traits().growth),
        engine_(tables_.selection().classifier().bitvectors()->view(tables_.selection().rules().entries.data())) {
    for (const auto& state : tables_.states()) tops_.push_back(state->window.top());
  }

  /// Processes a forwarded packet and writes its finding.
  void operator()(PacketView& packet, std::byte* finding) {
    if (tables_.settings().inbound) {
      const InboundFinding found = in(packet);
      std::memcpy(finding, &found, sizeof found);
    } else {
      const OutboundFinding found = out(packet);
      std::memcpy(finding, &found, sizeof found);
    }
  }

 private:
  OutboundFinding out(PacketView& packet) {
    static constexpr OutboundFinding kNone{kNoSa, 0};
    const Settings& settings = tables_.settings();
    const SelectionView view = tables_.selection().view();
    Verdict& verdict = packet.packet->verdict;
    const auto drop = [&verdict](Reason reason) { return verdict = Verdict::drop(reason), kNone; };
    const Reason standing = standing_of(packet.layout());
    if (standing == Reason::not_ip && !drops_not_ip(packet.layout(), settings.drops_unselected)) return kNone;
    if (standing != Reason::none) return drop(standing);
    classify::Key key;
    make_selector_key(packet, key);
    const std::uint32_t policy = classify::deciding_entry(engine_, key);
    if (policy == kNoPolicy) return settings.drops_unselected ? drop(Reason::no_policy) : kNone;
    const Selected selected =
        select_outbound(view, policy, key, [this](std::uint32_t sa) { return tables_.status(sa); });
    if (selected.reason != Reason::none) return drop(selected.reason);
    if (selected.sa == kNoSa) return kNone;
    const SaView& sa = view.sas[selected.sa];
    const Encapsulation plan = plan_encapsulation(packet, sa, growth_);
    if (plan.reason != Reason::none) return drop(plan.reason);
    if (exceeds_mtu(packet, sa, plan, settings.link())) {
      if (!settings.answers) return drop(Reason::too_big);
      verdict = Verdict::punt();
      return kNone;
    }
    const SequenceRange numbers = tables_.states()[selected.sa]->take(1);
    EXPECT_EQ(numbers.count, 1U);
    const OutboundFinding found{selected.sa, packet.layout().ip_bytes()};
    const CryptoJob job = encapsulate(packet, sa, selected.sa, plan, numbers.first);
    seal(job, tables_.keys().keys()[selected.sa], packet.frame - packet.packet->offset);
    if (needs_udp_checksum(sa)) write_udp_checksum(packet, job);
    return found;
  }

  InboundFinding in(PacketView& packet) {
    const SelectionView view = tables_.selection().view();
    Verdict& verdict = packet.packet->verdict;
    InboundFinding found{0, kNoSa, 0, 0};
    const auto drop = [&](Reason reason) { return verdict = Verdict::drop(reason), found; };
    const NatTraversalPorts ports = tables_.inbound().ports();
    const Arrival arrival = find_arrival(packet, tables_.inbound().view(), ports, view.sas, [this](std::uint32_t sa) {
      return Received{tops_[sa], tables_.states()[sa]->window.packets()};
    });
    const CryptoJob job = arrival.opening.job;
    if (arrival.is_fragment()) return verdict = Verdict::punt(), found;
    if (arrival.opening.reason != Reason::none) return drop(arrival.opening.reason);
    if (job.sa != kNoSa) {
      found = {job.sequence, job.sa, packet.layout().ip_bytes() & 0x7fff'ffff, 0};
      const SaView& sa = view.sas[job.sa];
      if (!open(job, tables_.keys().keys()[job.sa], packet.frame - packet.packet->offset))
        return drop(Reason::integrity);
      found.authentic = 1;
      tops_[job.sa] = std::max(tops_[job.sa], job.sequence);
      const Reason reason = decapsulate(packet, sa, find_esp(packet, ports), job);
      if (reason != Reason::none) return drop(reason);
      parse(packet);
    }
    const Reason standing = standing_of(packet.layout());
    if (standing == Reason::not_ip) return found;
    if (standing != Reason::none) return drop(standing);
    classify::Key key;
    make_selector_key(packet, key);
    const Reason reason = tables_.has_policies()
                              ? check_inbound(view, classify::deciding_entry(engine_, key), key, job.sa)
                              : check_selector(view, key, job.sa);
    return reason == Reason::none ? found : drop(reason);
  }

  const Tables& tables_;
  const FrameRoom growth_;
  const classify::BitVectorView engine_;
  std::vector<std::uint64_t> tops_;  // by SA: the highest authenticated sequence number
};

}  // namespace penstock::ipsec::testing
