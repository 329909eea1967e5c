// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// RSS in software: the worker that a frame belongs to, by the symmetric flow hash.

#pragma once

#include <cstdint>
#include <span>

#include "packet/flow_hash.h"
#include "packet/parse_core.h"

namespace penstock::port {

/// 0 .. workers - 1; 0 for what is not IP, which has no hash.
[[nodiscard]] inline unsigned worker_of(std::span<const std::uint8_t> frame, std::uint32_t wire_length, LinkType type,
                                        unsigned workers) noexcept {
  if (workers == 1) return 0;
  PacketDescriptor packet;
  packet.length = static_cast<std::uint32_t>(frame.size());
  packet.wire_length = wire_length;
  packet.link_type = type;
  packet.layout = parse(frame.data(), packet.length, wire_length, type);
  // The view is for reading: flow_hash changes no byte.
  const std::uint32_t hash = flow_hash(PacketView{const_cast<std::uint8_t*>(frame.data()), &packet});
  if (hash == 0) return 0;
  return static_cast<unsigned>(std::uint64_t{flow_share(hash, FlowShare::worker)} * workers >> 32);
}

}  // namespace penstock::port
