// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network function that tracks connections, which operators list, end and follow (docs/control.md).

#pragma once

#include <cstddef>
#include <memory>

#include "function/explanation.h"
#include "packet/packet.h"

namespace penstock::conntrack {
class Connections;
class ConnectionTables;
}  // namespace penstock::conntrack

namespace penstock::function {

class NetworkFunction;

/// Implemented by functions beside NetworkFunction.
class ConnectionKeeper {
 public:
  virtual ~ConnectionKeeper() = default;
  /// Those of all workers, in this epoch. Null: it tracks none. Called while no reload changes the chain's functions.
  [[nodiscard]] virtual std::shared_ptr<conntrack::ConnectionTables> connections() const noexcept = 0;
  /// NetworkFunction::explain, with connections of which only those that are explained know, so that later functions
  /// see what this one makes of the packet's connection. They come from connections_to_explain().
  [[nodiscard]] virtual Explanation explain(PacketView packet, conntrack::Connections& connections) const = 0;
};

/// One more worker's connections, in the tables that the function offers to operators, if it does. Null: the function
/// asks about none. `most_packets`: as for Connections.
[[nodiscard]] std::unique_ptr<conntrack::Connections> make_connections(const NetworkFunction& function,
                                                                       std::size_t most_packets);

/// Connections for explaining one packet, which belongs to none that is known. Its checksum is not verified. Null: the
/// function asks about none.
[[nodiscard]] std::unique_ptr<conntrack::Connections> connections_to_explain(const NetworkFunction& function);

}  // namespace penstock::function
