// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/catalog.h"

#include <algorithm>
#include <array>

#include "port/generator.h"
#include "port/live/af_packet.h"
#include "port/live/af_xdp.h"
#include "port/live/dpdk.h"
#include "port/live/tap.h"
#include "port/memory.h"
#include "port/null.h"
#include "port/pcap.h"

namespace penstock::port {

std::span<const PortKind> catalog() noexcept {
  static const std::array kKinds{
      pcap_kind(),      memory_kind(), generator_kind(), null_kind(),
      af_packet_kind(), af_xdp_kind(), dpdk_kind(),      tap_kind(),
  };
  return kKinds;
}

const PortKind* find_kind(std::string_view name) noexcept {
  const auto kinds = catalog();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const PortKind& k) { return k.name == name; });
  return kind == kinds.end() ? nullptr : &*kind;
}

}  // namespace penstock::port
