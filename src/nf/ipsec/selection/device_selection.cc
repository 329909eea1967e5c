// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/selection/device_selection.h"

namespace penstock::ipsec {

DeviceSelection::DeviceSelection(const SelectionSpans& host)
    : engine_(host.engine),
      policies_(host.policies),
      candidates_(host.candidates),
      sas_(host.sas),
      selectors_(host.selectors) {}

std::size_t DeviceSelection::bytes() const noexcept {
  return engine_.bytes() + policies_.size_bytes() + candidates_.size_bytes() + sas_.size_bytes() +
         selectors_.size_bytes();
}

DeviceInboundTable::DeviceInboundTable(const InboundSpans& host) : slots_(host.slots), other_ports_(host.other_ports) {}

}  // namespace penstock::ipsec
