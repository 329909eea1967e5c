// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables that come from outside while the router runs. Whatever follows the kernel's tables is a TableSource; a router
// joins it for as long as its stages may run. Through a reload, the source stays the same.

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"

namespace penstock::router {

class MissingNeighbours;
class Router;

/// What a router takes from the kernel instead of files.
struct FromKernel {
  static constexpr std::uint32_t kMainTable = 254;

  bool routes = false;
  bool neighbours = false;
  std::uint32_t table = kMainTable;  // of routes
  std::string vrf;                   // its table, instead of `table`; "": none
  std::size_t most_routes = 0;       // and most neighbours

  [[nodiscard]] bool any() const noexcept { return routes || neighbours; }
  friend bool operator==(const FromKernel&, const FromKernel&) = default;
};

class TableSource {
 public:
  virtual ~TableSource() = default;
  /// Fills the router's tables, and keeps them up to date from then on, by `Router::update` in a thread of the source.
  [[nodiscard]] virtual Result<void> join(Router& router) = 0;
  /// When it returns, the source does not use the router any more. Nothing happens if the router has not joined.
  virtual void leave(Router& router) noexcept = 0;
  /// Where the stages of its routers note the neighbours that packets lacked.
  [[nodiscard]] virtual MissingNeighbours& missing() noexcept = 0;
  /// Thread-safe.
  virtual void report(nlohmann::json& into) const = 0;
};

}  // namespace penstock::router
