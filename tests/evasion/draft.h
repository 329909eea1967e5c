// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A script under construction, and the moves that change it. The moves are listed at the end of moves_*.cc, with their
// weights.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evasion/random.h"
#include "evasion/script.h"

namespace penstock::evasion {

/// Lower-case letters.
[[nodiscard]] Bytes filler(Random& random, std::size_t count);
/// Parts of the signature, one after another, but never the whole: places where a match begins and then fails.
[[nodiscard]] Bytes pieces_of(const std::string& signature, Random& random, std::size_t count);

[[nodiscard]] inline std::int64_t length_of(const Packet& packet) {
  return static_cast<std::int64_t>(packet.payload.size());
}
[[nodiscard]] Packet segment(std::uint8_t connection, std::int64_t at, std::uint8_t flags, std::string_view text = {});

/// A script, with helpers by which moves find positions in it.
struct Draft {
  Random& random;
  Script script{};
  std::uint8_t attacked = 0;  // index of the connection that carries the signature

  [[nodiscard]] bool is_server() const { return script.role == HostRole::server; }  // the host is a server
  [[nodiscard]] const Connection& connection() const { return script.connections[attacked]; }
  [[nodiscard]] std::int64_t stream_size() const { return static_cast<std::int64_t>(connection().stream.size()); }
  /// Data of the stream from `at` on; bytes outside the stream are '.'.
  [[nodiscard]] Packet data(std::int64_t at, std::int64_t length) const;
  /// A packet at the same positions, with other bytes.
  [[nodiscard]] Packet decoy(std::int64_t at, std::int64_t length) const;
  [[nodiscard]] Packet decoy_of(const Packet& packet) const {
    return decoy(packet.at, static_cast<std::int64_t>(packet.payload.size()));
  }

  /// Positions of the steps that are genuine data.
  [[nodiscard]] std::vector<std::size_t> genuine() const;
  /// A random one of these; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> any_genuine() const;
  /// One that has bytes of the signature if there is one, else any.
  [[nodiscard]] std::optional<std::size_t> signature_step() const;
  /// `handshake`: the attacked connection's SYN, or the SYN/ACK if the host is a client. `established`: the first step
  /// after the handshake.
  [[nodiscard]] std::size_t handshake() const;
  [[nodiscard]] std::size_t established() const;
  /// The step that sends unacknowledged data again.
  [[nodiscard]] std::size_t resend() const;

  /// The step's packet, to be changed by `move`.
  [[nodiscard]] Packet& change(std::size_t position, std::string_view move) {
    script.steps[position].move = move;
    return script.steps[position].packet;
  }
  void insert(std::size_t position, Packet packet, std::string_view move);
  void insert(std::size_t position, Step::Kind kind, std::uint32_t number, std::string_view move);
  void insert_write(std::size_t position, std::string text, std::string_view move);
  void erase(std::size_t position);
  /// Adds a connection with the same addresses and ports, usually also with the same options.
  std::uint8_t add_connection(Bytes stream = {});
  /// Makes the packet die before the host, or makes the host discard it.
  void hide(Packet& packet) const;
  /// Inserts bytes into the stream, and into segments that send that position; later positions move.
  void lengthen_stream(std::int64_t at, const Bytes& bytes);
};

struct Move {
  std::string_view name;
  unsigned weight;  // 0: only used if requested
  enum class For : std::uint8_t { tcp, udp, both } protocol;
  void (*apply)(Draft& draft, std::string_view name);
};

// Each is defined in the file of this name: moves_segments.cc, …
[[nodiscard]] std::span<const Move> segment_moves();
[[nodiscard]] std::span<const Move> decoy_moves();
[[nodiscard]] std::span<const Move> field_moves();
[[nodiscard]] std::span<const Move> handshake_moves();
[[nodiscard]] std::span<const Move> course_moves();
[[nodiscard]] std::span<const Move> ip_moves();
[[nodiscard]] std::vector<const Move*> all_moves();

}  // namespace penstock::evasion
