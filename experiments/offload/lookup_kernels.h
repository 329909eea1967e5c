// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the experiment `offload`: a thread looks up one or several keys. Needs no CUDA header.

#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "classify/bitvector_layout.h"
#include "classify/linear_core.h"
#include "classify/rfc_layout.h"
#include "gpu/stream.h"
#include "nf/router/multibit_layout.h"

namespace penstock::experiments {

/// A table on a device, passed by value. Routing tables take Ipv4Address keys, firewalls TupleKeys.
using TableView = std::variant<router::Dir24View, router::Trie4View, router::Trie1View, classify::BitVectorView,
                               classify::RfcView, classify::LinearView>;

inline constexpr std::size_t kKeysPerThread = 4;

/// Enqueues the look-up of `count` keys, a multiple of kKeysPerThread. Keys and values are in device memory. Returns
/// false if the driver refuses the launch.
[[nodiscard]] bool enqueue_lookups(const TableView& table, const std::byte* keys, std::uint32_t* values,
                                   std::size_t count, const gpu::Stream& stream) noexcept;

}  // namespace penstock::experiments
