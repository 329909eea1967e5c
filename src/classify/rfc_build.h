// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds the RFC tables of a rule set. The tables own their memory and are immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "classify/rfc_layout.h"
#include "classify/rule.h"

namespace penstock::classify {

struct RfcLimits {
  std::size_t memory_bytes = std::size_t{1} << 30;  // of all tables, and of the builder's lists; below 4 GiB
  std::uint64_t steps = std::uint64_t{3} << 30;     // of the builder; a step takes a few nanoseconds
};

struct RfcTables {
  RfcFamily ipv4, ipv6;
  std::uint32_t port_count = 0;
  std::vector<std::uint64_t> memory;  // of all tables

  [[nodiscard]] RfcView view() const noexcept {
    return {ipv4, ipv6, port_count, {reinterpret_cast<const std::byte*>(memory.data())}};
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory.size() * sizeof(std::uint64_t); }
};

/// Fails if the tables would exceed a limit; the error names the phase.
[[nodiscard]] Result<RfcTables> build_rfc(const Ruleset& rules, const RfcLimits& limits = {});

}  // namespace penstock::classify
