// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The worker of a single frame. Fragments are assigned by their addresses; for better results use a WorkerChooser.

#pragma once

#include <cstdint>
#include <span>

#include "port/worker_key.h"

namespace penstock::port {

/// 0 .. workers - 1; 0 for frames that are not IP, which have no hash.
[[nodiscard]] inline unsigned worker_of(std::span<const std::uint8_t> frame, std::uint32_t wire_length, LinkType type,
                                        unsigned workers) noexcept {
  if (workers == 1) return 0;
  Fragment fragment;
  return worker_of_hash(worker_key_of(frame, wire_length, type, fragment).hash, workers);
}

}  // namespace penstock::port
