// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of the inbound GPU stage (ipsec.cu) on the host, one packet at a time, with the same cores.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "classify/bitvector_core.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/inbound_core.h"
#include "nf/ipsec/table_spans.h"
#include "packet/parse_core.h"

namespace penstock::ipsec::testing {

class InboundSteps {
 public:
  /// Borrows what the arguments borrow.
  InboundSteps(const TableSpans& tables, const classify::BitVectorView& engine, WrongIcv with_esn)
      : tables_(tables),
        selection_{tables.selection.policies.data(), nullptr, tables.selection.sas.data(),
                   tables.selection.selectors.data()},
        inbound_{tables.inbound.slots.data(), static_cast<std::uint32_t>(tables.inbound.slots.size() - 1)},
        ports_{tables.inbound.other_ports.empty() ? nullptr : tables.inbound.other_ports.data()},
        engine_(engine),
        with_esn_(with_esn),
        tops_(tables.tops.begin(), tables.tops.end()) {}

  /// Processes a forwarded packet.
  InboundFinding operator()(PacketView& packet) {
    Verdict& verdict = packet.packet->verdict;
    InboundFinding found{0, kNoSa, 0, 0};
    const auto drop = [&](Reason reason) { return verdict = Verdict::drop(reason), found; };
    const Arrival arrival = find_arrival(packet, inbound_, ports_, selection_.sas, [this](std::uint32_t sa) {
      return Received{tops_[sa], tables_.windows[sa]};
    });
    const CryptoJob job = arrival.opening.job;
    if (arrival.is_fragment()) return verdict = Verdict::punt(), found;
    if (arrival.opening.reason != Reason::none) return drop(arrival.opening.reason);
    if (job.sa != kNoSa) {
      const SaView& sa = selection_.sas[job.sa];
      const InboundFinding arrived{job.sequence, job.sa, packet.layout().ip_bytes() & 0x7fff'ffff, 0};
      if (!open(job, tables_.keys[job.sa], packet.frame - packet.packet->offset)) {
        if (sa.esn && with_esn_ == WrongIcv::punt) return verdict = Verdict::punt(), found;
        found = arrived;
        return drop(Reason::integrity);
      }
      found = arrived;
      found.authentic = 1;
      tops_[job.sa] = std::max(tops_[job.sa], job.sequence);
      const Reason reason = decapsulate(packet, sa, find_esp(packet, ports_), job);
      if (reason != Reason::none) return drop(reason);
      parse(packet);
    }
    const Reason standing = standing_of(packet.layout());
    if (standing == Reason::not_ip) return found;
    if (standing != Reason::none) return drop(standing);
    classify::Key key;
    make_selector_key(packet, key);
    const Reason reason = tables_.has_policies
                              ? check_inbound(selection_, classify::deciding_entry(engine_, key), key, job.sa)
                              : check_selector(selection_, key, job.sa);
    return reason == Reason::none ? found : drop(reason);
  }

 private:
  const TableSpans tables_;
  const SelectionView selection_;
  const InboundView inbound_;
  const NatTraversalPorts ports_;
  const classify::BitVectorView engine_;
  const WrongIcv with_esn_;
  std::vector<std::uint64_t> tops_;  // by SA: the highest authenticated sequence number
};

}  // namespace penstock::ipsec::testing
