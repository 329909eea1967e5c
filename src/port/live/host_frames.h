// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What an XDP program leaves to the kernel of a host that forwards by an AF_XDP port: everything that is for the host
// itself, so that its addresses, ARP, neighbour discovery and routing daemons work as ever.

#pragma once

#include "base/error.h"
#include "port/live/bpf_assembler.h"
#include "port/live/file_descriptor.h"

namespace penstock::port {

/// The IP addresses of all interfaces in a network namespace, in a map that XDP programs read.
class HostAddresses {
 public:
  /// In the calling thread's network namespace.
  [[nodiscard]] static Result<HostAddresses> open();
  /// Makes the map as the addresses are now, in the calling thread's network namespace. False if there are too many, or
  /// the map cannot be changed.
  bool update() noexcept;
  [[nodiscard]] const FileDescriptor& map() const noexcept { return map_; }

 private:
  FileDescriptor map_;
};

/// Adds instructions that end an XDP program with XDP_PASS for frames that are for the host: all but IP, multicasts and
/// broadcasts, IPv6 to link-local addresses, IP to the addresses in `map`, and IP whose TTL or hop limit ends here.
/// Other frames go on to what follows. Before and after, r6 is the context. They change r0 to r5, r7 and r8, and use 16
/// bytes of the stack.
void leave_to_host(BpfAssembler& code, const FileDescriptor& map);

}  // namespace penstock::port
