// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A libpcap expression that chooses packets, of any link type.

#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "nf/filter/filter_list.h"
#include "packet/packet.h"

namespace penstock::control {

class PacketFilter {
 public:
  /// Looks no names of hosts and networks up, so that it does not wait for anyone: they are an error.
  [[nodiscard]] static Result<PacketFilter> compile(const std::string& expression);

  /// Thread-safe. A packet of a link type for which the expression has no meaning does not match.
  [[nodiscard]] bool operator()(PacketView packet) const noexcept;

 private:
  explicit PacketFilter(std::shared_ptr<const filter::NamedFilter> programs) : programs_(std::move(programs)) {}

  std::shared_ptr<const filter::NamedFilter> programs_;  // shared, so that copies are cheap
};

}  // namespace penstock::control
