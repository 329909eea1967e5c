// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a chain with functions in other processes (function/packet_sharing.h) does about memory.

#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "function/packet_sharing.h"
#include "packet/packet_memory.h"
#include "run/chain.h"

namespace penstock::run {

[[nodiscard]] inline bool shares_packets(const Chain& chain) {
  return std::ranges::any_of(chain.functions, [](const NamedFunction& named) {
    return dynamic_cast<const function::PacketSharing*>(named.function.get()) != nullptr;
  });
}

/// For such a chain: its ports lend no frames, but copy them into the ring, which is shared.
[[nodiscard]] inline PacketMemory::Register lends_nothing() {
  return [](std::span<std::uint8_t> /*memory*/) -> Result<std::shared_ptr<void>> {
    return failure(Error{{}, "functions in other processes cannot use the memory of a port", "", ""});
  };
}

}  // namespace penstock::run
