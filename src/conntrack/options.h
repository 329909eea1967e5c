// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be set about connection tracking. Names and defaults are those of Linux (kernel documentation,
// nf_conntrack-sysctl).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock::conntrack {

/// In seconds.
struct Timeouts {
  std::uint32_t tcp_syn_sent = 120;  // also after a simultaneous open
  std::uint32_t tcp_syn_recv = 60;
  std::uint32_t tcp_established = 432'000;
  std::uint32_t tcp_fin_wait = 120;
  std::uint32_t tcp_close_wait = 60;
  std::uint32_t tcp_last_ack = 30;
  std::uint32_t tcp_time_wait = 120;
  std::uint32_t tcp_close = 10;
  std::uint32_t tcp_max_retrans = 300;  // after `tcp_max_retrans` retransmissions, or while a side's window is closed
  std::uint32_t tcp_unacknowledged = 300;  // while a side has not acknowledged what was sent to it
  std::uint32_t udp = 30;
  std::uint32_t udp_stream = 120;
  std::uint32_t icmp = 30;
  std::uint32_t icmpv6 = 30;
  std::uint32_t gre = 30;
  std::uint32_t gre_stream = 180;
  std::uint32_t generic = 600;

  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

/// The helper for FTP (nf_conntrack_ftp): finds in control connections which data connections to expect.
struct FtpHelper {
  static constexpr std::size_t kMostPorts = 8;  // as Linux

  bool offered = false;                           // whether connections may have it
  std::array<std::uint16_t, kMostPorts> ports{};  // those of servers whose connections have it, ascending; then 0

  friend bool operator==(const FtpHelper&, const FtpHelper&) = default;
};

/// Blocks of ports for translated sources, as the NAT of a carrier has them: port_blocks.h.
struct PortBlockOptions {
  std::uint16_t size = 512;            // ports of a block: a multiple of kSizeStep
  std::uint16_t per_host = 8;          // blocks that a host has at a time, at most
  std::uint16_t first_port = 1024;     // ports below it are in no block
  std::uint32_t hold_s = 120;          // how long a block stays with its host after its last connection
  std::uint32_t most_addresses = 256;  // public addresses with blocks at a time

  static constexpr std::uint16_t kSizeStep = 64, kMostSize = 16'384;

  friend bool operator==(const PortBlockOptions&, const PortBlockOptions&) = default;
};

struct Options {
  std::uint32_t most_connections = 262'144;  // at least 1; memory for all of them is reserved at construction
  std::uint32_t most_fragments = 4'096;      // datagrams in fragments that are followed at a time
  bool checksum = true;                      // packets with a wrong TCP, UDP or ICMP checksum are invalid
  bool tcp_loose = true;                     // pick up connections whose handshake was not seen
  bool tcp_be_liberal = false;               // accept segments outside the window
  bool tcp_ignore_invalid_rst = false;       // accept RSTs before the window
  std::uint8_t tcp_max_retrans = 3;
  Timeouts timeouts{};
  FtpHelper ftp{};                                // off, as in Linux
  std::uint32_t most_expectations = 4'096;        // connections that a helper expects at a time
  std::optional<PortBlockOptions> port_blocks{};  // empty: ports of translated sources are chosen as in Linux
  std::optional<std::uint64_t> seed{};            // of the hash; random unless a test needs it

  friend bool operator==(const Options&, const Options&) = default;
};

/// In whose time connections live.
enum class Clock : std::uint8_t {
  packets,  // only packets move it
  system,   // packets come with the system's time, and time passes between them too
};

}  // namespace penstock::conntrack
