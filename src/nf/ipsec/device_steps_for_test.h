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

#include "classify/bitvector_build.h"
#include "classify/bitvector_core.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/inbound_steps_for_test.h"
#include "nf/ipsec/ipsec.h"

namespace penstock::ipsec::testing {

class DeviceSteps {
 public:
  /// Borrows the function, whose run must have begun.
  explicit DeviceSteps(Ipsec& ipsec)
      : tables_(ipsec.tables()),
        growth_(ipsec.traits().growth),
        engine_(tables_.selection().classifier().bitvectors()->view(tables_.selection().rules().entries.data())),
        received_(tables_),
        in_(spans_of(tables_, received_), engine_, WrongIcv::drop) {}

  /// Processes a forwarded packet and writes its finding.
  void operator()(PacketView& packet, std::byte* finding) {
    if (tables_.settings().inbound) {
      const InboundFinding found = in_(packet);
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

  const Tables& tables_;
  const FrameRoom growth_;
  const classify::BitVectorView engine_;
  const ReceivedSoFar received_;
  InboundSteps in_;
};

}  // namespace penstock::ipsec::testing
