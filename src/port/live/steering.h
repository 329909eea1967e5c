// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An eBPF program by which the kernel spreads frames to queues as a WorkerChooser does: for packet sockets in a fanout
// group (PACKET_FANOUT_EBPF) and for the queues of a TUN/TAP device (TUNSETSTEERINGEBPF). It knows plain TCP and UDP
// over IPv4 and IPv6; all other frames go to queue 0. It only saves copies: an Exchange corrects what it does not know.

#pragma once

#include <cstddef>

#include "port/live/file_descriptor.h"

namespace penstock::port {

/// Null, with errno set, if the kernel refuses the program (without CAP_BPF or CAP_SYS_ADMIN).
[[nodiscard]] FileDescriptor load_steering_program(unsigned workers) noexcept;

}  // namespace penstock::port
