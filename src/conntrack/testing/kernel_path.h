// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets on their way through the kernel, with nf_conntrack and without, for the bench that compares it with ours.
// There are two network namespaces that differ only in that one has a rule about `ct state`, which no packet reaches
// but which makes the kernel track all of them. A program of eBPF writes the ports of each frame, and the kernel sends
// the frames to itself (live frames of BPF_PROG_TEST_RUN), so that nothing else comes between two packets on this core.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "conntrack/testing/packets.h"

namespace penstock::conntrack {

class KernelPath {
 public:
  /// Null if this process may not make what is needed, or this kernel has none of it; `why` says what is missing.
  static std::unique_ptr<KernelPath> make(std::string& why);

  KernelPath(const KernelPath&) = delete;
  KernelPath& operator=(const KernelPath&) = delete;
  ~KernelPath();

  enum class Way : std::uint8_t { tracked, untracked };
  /// Where packets end: in front of their route, when they have been looked up, or when they leave, after their
  /// connection is confirmed.
  enum class End : std::uint8_t { prerouting, egress };

  /// An IPv4 packet with two ports that is sent `count` times, with the ports `first`, `first` + 1, … as 32 bits, or,
  /// in a reply, exchanged.
  struct Round {
    const Packet& packet;
    std::uint32_t first = 0, count = 0;
    bool reply = false;
  };
  /// The time that they take, in ns. Negative: an error of the kernel.
  [[nodiscard]] double send(Way way, End end, const Round& round);

  /// Forgets all connections; the time that it takes, in ns.
  [[nodiscard]] double flush();
  [[nodiscard]] std::size_t connections();
  /// Since the start.
  [[nodiscard]] std::uint64_t invalid();
  /// The most connections that the kernel takes.
  [[nodiscard]] std::size_t most_connections();

 private:
  KernelPath() = default;

  [[nodiscard]] bool build(std::string& why);
  void enter(Way way) const;

  std::array<int, 2> spaces_{-1, -1};    // the network namespaces, by Way
  std::array<int, 2> programs_{-1, -1};  // for packets of the original direction, and for replies
  int next_ = -1;                        // the map with the ports of the next packet
};

}  // namespace penstock::conntrack
