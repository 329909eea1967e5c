// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What AF_XDP can do on the interfaces of this machine. Only asks the kernel: no socket is bound, and no program is
// attached. The answers come from the netlink family `netdev` (Documentation/netlink/specs/netdev.yaml), and say what
// the drivers support. An interface may still refuse it as it is set up now, for example for its MTU.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "port/live/interface.h"

namespace penstock::port {

/// What a driver supports. Without native mode, the other members are false too.
struct XdpSupport {
  bool native = false;           // the driver runs XDP programs that hand frames to sockets; otherwise the system does
  bool zero_copy = false;        // the driver receives into the memory of sockets and sends from it
  bool several_buffers = false;  // frames in native mode may be in several of the driver's buffers
  std::uint32_t zero_copy_buffers = 0;  // the most for a frame with zero-copy; 0 without it

  [[nodiscard]] bool operator==(const XdpSupport&) const = default;
};

struct XdpInterface {
  std::string name;
  std::string driver;                 // empty if unknown
  std::optional<QueueCounts> queues;  // empty if the driver does not say
  std::optional<XdpSupport> support;  // empty if the kernel does not say: it is older than Linux 6.3
};

/// The Ethernet interfaces in the calling thread's network namespace, in the order of their indices.
[[nodiscard]] std::vector<XdpInterface> list_xdp_interfaces();

/// The number of a netlink family, from the kernel's reply to CTRL_CMD_GETFAMILY. Empty: there is no such family.
[[nodiscard]] std::optional<std::uint16_t> family_in(std::span<const std::uint8_t> reply);
/// Adds what a part of the reply to NETDEV_CMD_DEV_GET says, by index of the interface. True: more parts follow.
[[nodiscard]] bool add_xdp_support(std::span<const std::uint8_t> replies, std::map<int, XdpSupport>& found);

}  // namespace penstock::port
