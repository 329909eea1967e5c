// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions in processes of their own that decide by the connections of their chain. The chain's process tracks these,
// once for all functions, and says with each packet what it knows of its connection.

#pragma once

#include <span>
#include <string>

#include "conntrack/packet_connection.h"

namespace penstock::function {

/// Implemented by functions with NfTraits::connections, beside NetworkFunction.
class ConnectionReader {
 public:
  virtual ~ConnectionReader() = default;
  /// Why it needs more of the connections than is said with each packet, such as to change them. "": it does not.
  [[nodiscard]] virtual std::string why_needs_connections() const = 0;
  /// Called once, before it makes stages: they get no Connections. If these test connections, they are
  /// ConnectionReadingStages.
  virtual void read_connections() = 0;
};

/// Implemented by stages beside CpuStage.
class ConnectionReadingStage {
 public:
  virtual ~ConnectionReadingStage() = default;
  /// Called before each CpuStage::process, with what is known about each of its packets. Valid until this returns.
  /// Nothing is known of packets to which rules about headers do not apply (classify/standing.h).
  virtual void take_connections(std::span<const conntrack::PacketConnection> connections) noexcept = 0;
};

}  // namespace penstock::function
