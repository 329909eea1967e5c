// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network function that tracks connections, which operators list, end and follow (docs/control.md).

#pragma once

#include <memory>

namespace penstock::conntrack {
class ConnectionTables;
}

namespace penstock::function {

/// Implemented by functions beside NetworkFunction.
class ConnectionKeeper {
 public:
  virtual ~ConnectionKeeper() = default;
  /// Those of all workers, in this epoch. Null: it tracks none. Called while no reload changes the chain's functions.
  [[nodiscard]] virtual std::shared_ptr<conntrack::ConnectionTables> connections() const noexcept = 0;
};

}  // namespace penstock::function
