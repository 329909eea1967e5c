// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A conversation before it is played: what the attacker sends and what the host's application does, step by step.
// Numbers are relative to those that the host chooses, so that a script can be replayed and steps can be removed.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evasion/packet_writer.h"

namespace penstock::evasion {

/// The rule that must find the signature, and who sends it (the texts are in signatures.h).
enum class SignatureKind : std::uint8_t {
  any,
  established,  // with flow:established,to_server
  two_parts,
  pcre,
  to_client,  // from the attacker's server to the host's client
  udp,
  from_host,  // from the host's server: the attacker's client reads it
};
inline constexpr std::size_t kSignatureKinds = 7;

enum class HostRole : std::uint8_t {
  server,  // the attacker connects to a server on the host
  client,  // a client on the host connects to the attacker's server
};

/// One TCP connection of a conversation. Later ones use the same addresses and ports.
struct Connection {
  std::uint32_t isn = 0;  // the attacker's
  Bytes stream;           // what the attacker wants the application to read
  bool timestamps = true, sack = true, window_scale = true;
  std::uint8_t scale = 7;
};

struct Fragment {
  static constexpr std::uint32_t kToEnd = 0xffffffff;
  std::uint32_t begin = 0, end = 0;  // range in the IP payload; `begin` is a multiple of 8
  bool more = true;
  std::uint32_t id_shift = 0;
  bool decoy = false;  // other bytes than the packet's after the transport header
  bool dies = false;
  bool wrong_checksum = false;
  bool spoiled_header = false;  // decoys only: the transport header has other bytes too
  bool dont_fragment = false;
  std::uint8_t tos = 0;
};

enum class Acknowledges : std::uint8_t {
  latest,  // everything that the host has sent
  first,   // only the host's SYN
  zero,    // the field is 0
};

enum class TimestampOption : std::uint8_t { as_agreed, absent, present };

/// One packet of the attacker, possibly fragmented.
struct Packet {
  std::uint8_t protocol = 6;
  std::uint8_t connection = 0;
  std::int64_t at = 0;  // of the first byte in the connection's stream; the SYN is at -1
  Bytes payload;

  std::uint8_t flags = tcp::kAck | tcp::kPsh;
  std::uint8_t reserved = 0;
  Acknowledges acknowledges = Acknowledges::latest;
  std::int64_t ack_shift = 0;
  std::uint16_t window = 65535, urgent = 0;
  TimestampOption timestamp = TimestampOption::as_agreed;
  std::int64_t timestamp_shift = 0;  // milliseconds
  bool timestamp_zero = false, echo_zero = false;
  std::int64_t echo_shift = 0;
  bool handshake_options = false;  // MSS, and the options that the connection offers
  Bytes options{};                 // before the other options
  std::optional<std::uint8_t> data_offset{};
  bool wrong_checksum = false;
  bool no_checksum = false;  // UDP: the field is 0
  bool minus_zero = false;   // IPv4 and TCP: the checksums are 0, written as 0xffff, which is equally valid

  std::optional<std::uint16_t> udp_length{};

  std::uint8_t tos = 0;
  bool dies = false;     // expires between sensor and host, because of its TTL
  bool spoofed = false;  // appears to come from the host, which never sees it
  bool wrong_ip_checksum = false;
  bool dont_fragment = false;
  int ip_length_shift = 0;
  Bytes ip_options{};  // IPv6: extension headers
  std::uint8_t first_extension = 0;
  Bytes trailer{};  // after the IP packet in the frame
  std::vector<Fragment> fragments{};
};

struct Step {
  enum class Kind : std::uint8_t {
    packet,         // the attacker sends `packet`
    resend,         // the attacker sends the data of connection `number` that the host has not acknowledged
    pause,          // `number` seconds pass for the sensor
    host_waits,     // likewise, and host timers of this length, which are set to a second, expire
    clock,          // the attacker's timestamps advance by `number` milliseconds
    host_connects,  // HostRole::client: the application connects
    host_reads,     // the application accepts, and reads all available data
    host_writes,    // the application writes `text` to its latest connection
    host_shuts,     // … sends a FIN, and continues reading
    host_closes,    // … closes it
  };
  Kind kind = Kind::packet;
  std::uint32_t number = 0;
  std::string text{};
  Packet packet{};
  bool genuine = false;     // bytes of the stream at their own positions
  bool handshake = false;   // the attacked connection's SYN, or the SYN/ACK of the attacker's server
  std::string_view move{};  // the attack that it belongs to; static
};

struct Script {
  SignatureKind signature = SignatureKind::any;
  HostRole role = HostRole::server;
  bool v6 = false;
  std::uint64_t timing = 0;                            // seed of the times between packets
  bool in_pages = false;                               // see KernelHost::deliver
  bool reads_at_once = false;                          // the application reads after each packet
  std::uint16_t host_port = 80, attacker_port = 4000;  // host_port is also the local port of a client on the host,
                                                       // unless it is 80
  std::uint8_t ttl = 64, ttl_dying = 2;  // of packets that reach the host, and of packets that expire before it
  std::vector<Connection> connections;
  std::vector<Step> steps;
  std::string signature_text;
  std::vector<std::string_view> moves;  // the attacks, in the order in which they were applied; static
};

}  // namespace penstock::evasion
