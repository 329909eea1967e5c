// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is looked up in the experiment `offload`, in which engines: keys with a sample of right answers, and the tables
// that answer them, on the CPU as on a device.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "classify/device_tables.h"
#include "classify/rule.h"
#include "experiments/offload/lookup_kernels.h"
#include "gpu/memory.h"
#include "nf/router/fib_routes.h"

namespace penstock::experiments {

inline constexpr std::size_t kKeys = std::size_t{1} << 21;  // a power of two, as batches are
inline constexpr std::size_t kSampleStep = 997;             // every such key is checked

/// A table's copy on the device that was current when it was made.
struct DeviceTable {
  TableView view;
  std::vector<gpu::DeviceBuffer<std::uint32_t>> arrays;    // of a routing table
  std::unique_ptr<const classify::DeviceTables> firewall;  // of a firewall
};

/// One engine with its table. Immutable; used by many threads. Borrows the work that it is of.
class LookupEngine {
 public:
  virtual ~LookupEngine() = default;
  /// The values of the work's keys [first, first + count), by the CPU twin's bulk interface.
  virtual void look_up(std::size_t first, std::size_t count, std::uint32_t* values) const noexcept = 0;
  /// Throws gpu::CudaError.
  [[nodiscard]] virtual DeviceTable to_device() const = 0;
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
};

/// A table's content (routes or rules) and kKeys keys for it. Immutable.
class LookupWork {
 public:
  virtual ~LookupWork() = default;
  /// As they cross PCIe, one behind the other. A value is four bytes.
  [[nodiscard]] virtual std::span<const std::byte> keys() const noexcept = 0;
  [[nodiscard]] std::size_t key_bytes() const noexcept { return keys().size() / kKeys; }
  /// Fails where the table would be too large for it.
  [[nodiscard]] virtual Result<std::unique_ptr<LookupEngine>> engine(std::string_view name) const = 0;
  /// The right value of the key `index`, by the engine that the others are held to.
  [[nodiscard]] virtual std::uint32_t expected(std::size_t index) const noexcept = 0;
};

/// Routing by these routes, engines `dir24`, `trie4` and `trie1`; a key is an address of a random route. Values are the
/// routes' own.
[[nodiscard]] Result<std::unique_ptr<LookupWork>> make_routing(std::span<const router::Route4> routes);

/// A firewall of these rules, engines `bitvector` and `linear`; three of four keys are drawn from a random rule, and
/// the fourth from everywhere. Values are entries, as classify::Classifier gives them.
[[nodiscard]] Result<std::unique_ptr<LookupWork>> make_firewall(classify::Ruleset rules);

}  // namespace penstock::experiments
