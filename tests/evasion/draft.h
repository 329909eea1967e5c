// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A script that is being written, and the moves that change it. The moves are listed at the end of moves_*.cc, with
// their weights.

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
/// Parts of the signature, one after another, but never all of it: where a search begins in vain.
[[nodiscard]] Bytes pieces_of(const std::string& signature, Random& random, std::size_t count);

[[nodiscard]] inline std::int64_t length_of(const Packet& packet) {
  return static_cast<std::int64_t>(packet.payload.size());
}
[[nodiscard]] Packet segment(std::uint8_t connection, std::int64_t at, std::uint8_t flags, std::string_view text = {});

/// With what moves need to find their place in it.
struct Draft {
  Random& random;
  Script script{};
  std::uint8_t attacked = 0;  // the connection that carries the signature

  [[nodiscard]] bool is_server() const { return script.role == HostRole::server; }  // the host
  [[nodiscard]] const Connection& connection() const { return script.connections[attacked]; }
  [[nodiscard]] std::int64_t stream_size() const { return static_cast<std::int64_t>(connection().stream.size()); }
  /// The stream's bytes from `at` on; what lies outside of the stream is '.'.
  [[nodiscard]] Packet data(std::int64_t at, std::int64_t length) const;
  /// Others in their place.
  [[nodiscard]] Packet decoy(std::int64_t at, std::int64_t length) const;
  [[nodiscard]] Packet decoy_of(const Packet& packet) const {
    return decoy(packet.at, static_cast<std::int64_t>(packet.payload.size()));
  }

  /// Positions of the steps that are genuine data.
  [[nodiscard]] std::vector<std::size_t> genuine() const;
  /// One of them; nothing where there is none.
  [[nodiscard]] std::optional<std::size_t> any_genuine() const;
  /// One that holds bytes of the signature, if there is one, else any.
  [[nodiscard]] std::optional<std::size_t> signature_step() const;
  /// The attacked connection's SYN (a host's client: its SYN/ACK); and the first step behind the handshake.
  [[nodiscard]] std::size_t handshake() const;
  [[nodiscard]] std::size_t established() const;
  /// The step that sends again what was not acknowledged.
  [[nodiscard]] std::size_t resend() const;

  /// The step's packet, to be changed by this move.
  [[nodiscard]] Packet& change(std::size_t position, std::string_view move) {
    script.steps[position].move = move;
    return script.steps[position].packet;
  }
  void insert(std::size_t position, Packet packet, std::string_view move);
  void insert(std::size_t position, Step::Kind kind, std::uint32_t number, std::string_view move);
  void insert_write(std::size_t position, std::string text, std::string_view move);
  void erase(std::size_t position);
  /// Another connection by the same addresses and ports, mostly with the same options.
  std::uint8_t add_connection(Bytes stream = {});
  /// Keeps the host from seeing a packet, or from taking it.
  void hide(Packet& packet) const;
  /// The stream gets more bytes, which segments there send, too; what comes after them moves.
  void lengthen_stream(std::int64_t at, const Bytes& bytes);
};

struct Move {
  std::string_view name;
  unsigned weight;  // 0: off unless asked for
  enum class For : std::uint8_t { tcp, udp, both } protocol;
  void (*apply)(Draft& draft, std::string_view name);
};

// Each of the file of this name: moves_segments.cc, …
[[nodiscard]] std::span<const Move> segment_moves();
[[nodiscard]] std::span<const Move> decoy_moves();
[[nodiscard]] std::span<const Move> field_moves();
[[nodiscard]] std::span<const Move> handshake_moves();
[[nodiscard]] std::span<const Move> course_moves();
[[nodiscard]] std::span<const Move> ip_moves();
[[nodiscard]] std::vector<const Move*> all_moves();

}  // namespace penstock::evasion
