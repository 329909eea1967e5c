// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A firewall's key as it crosses PCIe: the 5-tuple of an IPv4 packet with its TCP flags in 16 bytes, a third of the
// engines' key. The device builds their key from it, in registers.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "classify/key.h"
#include "packet/ip.h"

namespace penstock::experiments {

struct alignas(16) TupleKey {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint16_t source_port = 0;  // meaningless for protocols without ports
  std::uint16_t destination_port = 0;
  std::uint32_t kind = 0;  // classify::Key::kind
};
static_assert(sizeof(TupleKey) == 16);

[[nodiscard]] PENSTOCK_HOST_DEVICE inline classify::Key key_of(const TupleKey& tuple) noexcept {
  classify::Key key;
  key.family = NetworkLayer::ipv4;
  key.source = {0, tuple.source};
  key.destination = {0, tuple.destination};
  key.kind = tuple.kind;
  const bool has_ports = begins_with_ports(static_cast<std::uint8_t>(key.protocol()));
  key.source_port = has_ports ? tuple.source_port : classify::kNoTransportPort;
  key.destination_port = has_ports ? tuple.destination_port : classify::kNoTransportPort;
  return key;
}

}  // namespace penstock::experiments
