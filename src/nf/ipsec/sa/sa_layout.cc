// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa/sa_layout.h"

#include <algorithm>

#include "nf/ipsec/sa/addresses.h"
#include "nf/ipsec/sa/sa.h"

namespace penstock::ipsec {

SaView sa_view(const SecurityAssociation& sa, std::uint32_t mtu) {
  SaView view;
  view.source = table_address(sa.source);
  view.destination = table_address(sa.destination);
  view.outer = family_of(sa.destination);
  view.spi = sa.spi;
  view.reqid = sa.reqid;
  view.udp = sa.udp.has_value();
  if (sa.udp) {
    view.udp_source_port = sa.udp->source_port;
    view.udp_destination_port = sa.udp->destination_port;
  }
  view.iv_bytes = static_cast<std::uint8_t>(iv_bytes(sa.cipher));
  view.block_bytes = static_cast<std::uint8_t>(text_unit(sa.cipher));
  view.icv_bytes = sa.icv_bytes;
  view.tunnel = sa.mode == Mode::tunnel;
  view.esn = sa.esn;
  view.no_ecn = sa.no_ecn;
  view.decap_dscp = sa.decap_dscp;
  view.dont_encap_dscp = sa.dont_encap_dscp;
  view.no_pmtu_discovery = sa.no_pmtu_discovery;
  constexpr std::uint32_t kMostIpBytes = 0xffff;
  view.tfc_bytes = std::min(sa.tfc_bytes, inner_mtu(view, mtu == 0 ? kMostIpBytes : mtu));
  return view;
}

}  // namespace penstock::ipsec
