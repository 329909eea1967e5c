// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How traffic is tracked: policies, limits, timeouts. What was counted.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::stack {

/// Destination ports of tunnels over UDP (Teredo, Geneve: source ports too); 0: none.
struct TunnelPorts {
  using Ports = std::array<std::uint16_t, 8>;
  Ports vxlan{4789, 4790, 8472};  // IANA's; that of its generic extension (GPE); what Linux and flannel had
  Ports geneve{6081};
  Ports teredo{3544};

  bool operator==(const TunnelPorts&) const = default;
};

/// Whose way of keeping overlapping bytes is followed (Shankar & Paxson 2003; Novak & Sturges 2007).
enum class OverlapPolicy : std::uint8_t { first, last, bsd, bsd_right, linux_host, windows, solaris };

struct TrackerOptions {
  OverlapPolicy fragment_policy = OverlapPolicy::linux_host;
  OverlapPolicy stream_policy = OverlapPolicy::linux_host;
  /// Off the path: where segments or fragments contradict each other, each version is offered beside that of the
  /// policy.
  bool every_version = true;
  bool verify_checksums = false;  // packets whose IPv4 or TCP checksum is wrong reach neither reassembly nor streams
  bool midstream = false;         // sessions whose handshake was not seen are picked up
  bool async_oneside = false;     // one direction alone is enough
  bool inline_streams = false;    // IPS: stream data is inspected as it comes, before it is acknowledged
  bool refuse_when_full = false;  // what memory has no room for is refused; else it goes on, unseen by streams
  bool keep_flows = true;         // else packets come by themselves: no flows, no streams
  bool keep_streams = true;       // else TCP connections are followed, but their bytes are not kept

  /// Once a session is encrypted (TLS, SSH), its payloads are not to be inspected (Suricata's encryption-handling).
  bool pass_over_encrypted = true;

  std::size_t flow_memory = std::size_t{64} << 20;
  std::size_t stream_memory = std::size_t{128} << 20;  // sessions and segments
  std::size_t fragment_memory = std::size_t{16} << 20;
  std::uint32_t stream_depth = 1 << 20;  // bytes of a direction that are reassembled
  std::uint32_t chunk_bytes = 2560;      // of a stream that are inspected at once, unless it ends
  std::uint32_t seam_bytes = 0;          // that were inspected and are offered again, ahead of what is new
  std::uint32_t flow_id_seed = 0;        // the worker's: no two have the same flow ids

  std::uint32_t fragment_timeout_s = 60;
  std::uint32_t new_timeout_s = 30, established_timeout_s = 300, closed_timeout_s = 10;  // flows
  std::uint32_t tcp_new_timeout_s = 60, tcp_established_timeout_s = 600, tcp_closed_timeout_s = 60;
  std::uint8_t most_tunnels = 8;  // in each other
  TunnelPorts tunnel_ports{};
  bool refuse_undecodable = false;  // inline: frames in which a packet may lie that was not found
  std::uint8_t flow_slots = 1;      // of each flow (Flow::slots)
  /// Frames and segments that are as expected take a shorter way to the same result. Off: to compare the two.
  bool shortcuts = true;

  bool operator==(const TrackerOptions&) const = default;
};

struct TrackerCounters {
  std::uint64_t packets = 0, not_ip = 0, tunnelled = 0;
  std::uint64_t fragments = 0, reassembled = 0, fragments_timed_out = 0, fragments_dropped = 0;
  std::uint64_t fragment_memory_refused = 0;       // of those that were dropped: there was no room for them
  std::uint64_t contested_fragments = 0;           // that overlap with others
  std::uint64_t contested_fragments_given_up = 0;  // of their datagrams, not all ways to make them were tried
  std::uint64_t flows = 0, flows_ended = 0, flow_memory_refused = 0, flows_evicted = 0;
  std::uint64_t tcp_sessions = 0, stream_bytes = 0, stream_gaps = 0, stream_memory_refused = 0,
                stream_depth_reached = 0, stream_invalid = 0;  // inline: segments that must not pass
  std::uint64_t contested_segments = 0;  // whose bytes contradict others, or are not of their session
  std::uint64_t contested_given_up = 0;  // of these: there was no room for all versions
  std::uint64_t tcp_segments = 0, tcp_invalid_checksums = 0, ipv4_invalid_checksums = 0;
  std::uint64_t undecodable = 0;             // frames in which a packet may lie that was not found
  std::uint64_t tcp_idle_timeouts = 0;       // established connections that ended because nothing came
  std::uint64_t handshake_timeouts = 0;      // connections that ended before they were established, likewise
  std::uint64_t tcp_unknown_connection = 0;  // packets of connections whose beginning was not seen, or has ended so
};

}  // namespace penstock::stack
