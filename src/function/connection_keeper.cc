// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/connection_keeper.h"

#include "conntrack/connection_tables.h"
#include "conntrack/connections.h"
#include "function/network_function.h"

namespace penstock::function {

std::unique_ptr<conntrack::Connections> make_connections(const NetworkFunction& function, std::size_t most_packets) {
  const auto& options = function.traits().connections;
  if (!options) return nullptr;
  const auto* const keeper = dynamic_cast<const ConnectionKeeper*>(&function);
  const auto tables = keeper != nullptr ? keeper->connections() : nullptr;
  if (tables == nullptr) return std::make_unique<conntrack::Connections>(*options, most_packets);
  return std::make_unique<conntrack::Connections>(tables->add_worker(), most_packets);
}

std::unique_ptr<conntrack::Connections> connections_to_explain(const NetworkFunction& function) {
  auto options = function.traits().connections;
  if (!options) return nullptr;
  options->most_connections = 1;
  options->most_fragments = 1;
  options->checksum = false;
  if (options->port_blocks) options->port_blocks->most_addresses = 1;
  options->seed = 0;  // so that the same question has the same answer
  return std::make_unique<conntrack::Connections>(*options, 1);
}

}  // namespace penstock::function
