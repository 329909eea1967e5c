// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets as a kernel sees them, and what it has decided as packets see it. What a kernel writes is checked here: it is
// somebody else's. Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nf/kernel/launcher.h"
#include "packet/field.h"
#include "packet/packet.h"

namespace penstock::kernel {

/// What a kernel may see and do.
struct Access {
  bool sees_payload = true;  // otherwise, frames end with their headers
  bool writes_mark = false;
  std::vector<Field> writes{};  // of frames
  std::size_t reasons = 0;      // for which it drops packets
};

/// How many of the packets have room, and where their frames end.
struct Packed {
  std::size_t packets = 0;
  std::size_t frames_bytes = 0;
};
/// Copies packets into the room, as many as fit; at least one. Frames are copied once: they may change meanwhile.
[[nodiscard]] Packed pack(std::span<const PacketView> packets, const Access& access,
                          const Launcher::Room& room) noexcept;

/// What is wrong with the verdicts; "": nothing.
[[nodiscard]] std::string check_verdicts(std::span<const penstock_verdict> verdicts, const Access& access);
/// Gives the packets that were packed their verdicts, which have been checked, their marks, and the bytes of the fields
/// that the kernel writes. It can change no others. `verdicts` is a copy, and of the room only bytes of frames are
/// read: kernels of other launches may write there at any time.
void take_results(std::span<const PacketView> packets, const Access& access, std::span<const penstock_verdict> verdicts,
                  const Launcher::Room& room) noexcept;

}  // namespace penstock::kernel
