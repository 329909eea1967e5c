// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/selection/device_selection.h"

#include <span>
#include <vector>

namespace penstock::ipsec {

namespace {

template <typename T>
gpu::DeviceBuffer<T> copy_of(const std::vector<T>& host) {
  return gpu::DeviceBuffer<T>(std::span<const T>(host));
}

}  // namespace

DeviceSelection::DeviceSelection(const Selection& host)
    : engine_(host.rules(), host.classifier()),
      policies_(copy_of(host.policies())),
      candidates_(copy_of(host.candidates())),
      sas_(copy_of(host.sas())),
      selectors_(copy_of(host.selectors())) {}

DeviceInboundTable::DeviceInboundTable(const InboundTable& host)
    : slots_(copy_of(host.slots())), other_ports_(copy_of(host.other_ports())) {}

}  // namespace penstock::ipsec
