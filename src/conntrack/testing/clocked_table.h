// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A table with a clock, for tests.

#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/nanoseconds.h"
#include "conntrack/table.h"
#include "conntrack/testing/packets.h"

namespace penstock::conntrack {

inline constexpr std::uint64_t kSecond = kNsPerSecond;

struct ClockedTable {
  explicit ClockedTable(const Options& options = {}, std::shared_ptr<PortBlocks> blocks = nullptr)
      : table(options, std::move(blocks)) {}

  /// Tracks a packet that passes.
  Tracked pass(const Packet& packet) {
    const Tracked tracked = drop(packet);
    if (tracked.connection != nullptr) table.confirm(*tracked.connection);
    return tracked;
  }
  /// Tracks a packet, and does nothing else.
  Tracked drop(const Packet& packet) {
    ParsedPacket parsed(packet);
    return table.track(parsed.view(), now_ns);
  }
  void wait(std::uint64_t seconds) { now_ns += seconds * kSecond; }
  /// Until nothing is left to do.
  void expire() {
    for (int calls = 0; calls < 1000; ++calls) table.expire(now_ns);
  }
  [[nodiscard]] std::uint64_t invalid(Reason reason) const {
    return table.counters().invalid[static_cast<unsigned>(reason)];
  }

  Table table;
  std::uint64_t now_ns = 1'700'000'000 * kSecond;
};

/// A client and a server whose handshake is done.
struct OpenTcp {
  OpenTcp(ClockedTable& tracking, Ends of) : ends(std::move(of)) {
    tracking.pass(client({.flags = TcpHeader::kSyn}));
    ++client_next;
    tracking.pass(server({.flags = TcpHeader::kSyn | TcpHeader::kAck}));
    ++server_next;
    tracking.pass(client({}));
  }
  [[nodiscard]] Packet client(TcpFields fields) const {
    fields.sequence += client_next;
    if ((fields.flags & TcpHeader::kAck) != 0) fields.ack += server_next;
    return tcp_packet(ends, fields);
  }
  [[nodiscard]] Packet server(TcpFields fields) const {
    fields.sequence += server_next;
    if ((fields.flags & TcpHeader::kAck) != 0) fields.ack += client_next;
    return tcp_packet(ends.reversed(), fields);
  }

  Ends ends;
  std::uint32_t client_next = 1000, server_next = 5000;
};

}  // namespace penstock::conntrack
