// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The file that keeps a firewall's connections from one run to the next (conntrack/saved_connections.h).

#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "conntrack/connection_tables.h"

namespace penstock::firewall {

/// The worker to which the packets of this connection come: 0 .. workers - 1.
[[nodiscard]] unsigned worker_of(const conntrack::Tuple& original, unsigned workers);

/// Whether a run may begin with this file, and write it at its end: it may be missing, but not be a file of another
/// kind, which would be overwritten.
[[nodiscard]] Result<void> check_connections_file(const std::string& path);

/// Has `connections` enter those of the file when the workers begin. Nothing is entered from a file that is damaged, or
/// that other users could have written, since a firewall must start in any case; the log says so.
void load_connections(const std::string& path, conntrack::ConnectionTables& connections);

/// When the workers have ended. Logs an error.
void save_connections(const std::string& path, const conntrack::ConnectionTables& connections) noexcept;

}  // namespace penstock::firewall
