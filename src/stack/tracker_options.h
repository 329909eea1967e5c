// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of the tracker (policies, limits, timeouts), and its counters.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::stack {

/// UDP destination ports of tunnels (for Teredo and Geneve, source ports as well); 0: unused.
struct TunnelPorts {
  using Ports = std::array<std::uint16_t, 8>;
  Ports vxlan{4789, 4790, 8472};  // IANA; VXLAN-GPE; the former default of Linux and flannel
  Ports geneve{6081};
  Ports teredo{3544};

  bool operator==(const TunnelPorts&) const = default;
};

/// Which operating system's treatment of overlapping bytes to follow (Shankar & Paxson 2003; Novak & Sturges 2007).
enum class OverlapPolicy : std::uint8_t { first, last, bsd, bsd_right, linux_host, windows, solaris };

struct TrackerOptions {
  OverlapPolicy fragment_policy = OverlapPolicy::linux_host;
  OverlapPolicy stream_policy = OverlapPolicy::linux_host;
  /// Passive mode: where segments or fragments contradict each other, offer each version in addition to the one that
  /// the policy keeps.
  bool every_version = true;
  bool verify_checksums = false;  // keep packets with a wrong IPv4 or TCP checksum out of reassembly and streams
  bool midstream = false;         // pick up sessions whose handshake was not seen
  bool async_oneside = false;     // track sessions of which only one direction is seen
  bool inline_streams = false;    // IPS: inspect stream data on arrival, before it is acknowledged
  bool refuse_when_full = false;  // refuse packets when memory is full; else they pass without tracking
  bool keep_flows = true;         // false: packets only, without flows and streams
  bool keep_streams = true;       // false: follow TCP connections without storing their data

  /// Do not inspect the payloads of a session once it is encrypted (TLS, SSH), as Suricata's encryption-handling.
  bool pass_over_encrypted = true;

  std::size_t flow_memory = std::size_t{64} << 20;
  std::size_t stream_memory = std::size_t{128} << 20;  // sessions and segments
  std::size_t fragment_memory = std::size_t{16} << 20;
  std::uint32_t stream_depth = 1 << 20;  // bytes per direction that are reassembled; 0: unlimited
  std::uint32_t chunk_bytes = 2560;      // of a stream to collect before inspection, unless it ends
  std::uint32_t seam_bytes = 0;          // inspected bytes to offer again before new ones
  std::uint32_t flow_id_seed = 0;        // per worker, so that no two workers use the same flow ids

  std::uint32_t fragment_timeout_s = 60;
  std::uint32_t new_timeout_s = 30, established_timeout_s = 300, closed_timeout_s = 10;  // flows
  std::uint32_t tcp_new_timeout_s = 60, tcp_established_timeout_s = 600, tcp_closed_timeout_s = 60;
  std::uint8_t most_tunnels = 8;  // nesting depth
  TunnelPorts tunnel_ports{};
  bool refuse_undecodable = false;  // inline: refuse frames that may hide an undecoded packet
  std::uint8_t flow_slots = 1;      // per flow (Flow::slots)
  bool frames_are_parsed = false;   // descriptors hold the layouts, also of observed frames: do not parse
  /// Use fast paths for expected frames and segments. The result is the same; tests turn them off to compare.
  bool shortcuts = true;

  bool operator==(const TrackerOptions&) const = default;
};

struct TrackerCounters {
  std::uint64_t packets = 0, not_ip = 0, tunnelled = 0;
  std::uint64_t fragments = 0, reassembled = 0, fragments_timed_out = 0, fragments_dropped = 0;
  std::uint64_t fragment_memory_refused = 0;       // of fragments_dropped: memory was full
  std::uint64_t contested_fragments = 0;           // overlap other fragments
  std::uint64_t contested_fragments_given_up = 0;  // not all versions of their datagrams were tried
  std::uint64_t flows = 0, flows_ended = 0, flow_memory_refused = 0, flows_evicted = 0;
  std::uint64_t tcp_sessions = 0, stream_bytes = 0, stream_gaps = 0, stream_memory_refused = 0,
                stream_depth_reached = 0, stream_invalid = 0;  // inline: segments that must not pass
  std::uint64_t contested_segments = 0;                        // contradict earlier bytes, or rejected by the session
  std::uint64_t contested_given_up = 0;                        // of these: no room to keep all versions
  std::uint64_t tcp_segments = 0, tcp_invalid_checksums = 0, ipv4_invalid_checksums = 0;
  std::uint64_t undecodable = 0;             // frames that may hide an undecoded packet
  std::uint64_t tcp_idle_timeouts = 0;       // established connections that timed out
  std::uint64_t handshake_timeouts = 0;      // connections that timed out before they were established
  std::uint64_t tcp_unknown_connection = 0;  // packets of connections whose start was not seen, or that timed out
};

}  // namespace penstock::stack
