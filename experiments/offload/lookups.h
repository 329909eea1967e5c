// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The look-ups of the experiment `offload` and their engines: keys with a sample of correct answers, and the tables
// that answer them on the CPU and on a device.

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

inline constexpr std::size_t kKeys = std::size_t{1} << 21;  // a power of two, like batches
inline constexpr std::size_t kSampleStep = 997;             // every 997th key is checked

/// What the keys are those of: the patterns of Alonistioti §II.A and §III.
enum class Traffic : std::uint8_t {
  spread,    // routing: addresses of random routes. A firewall: three of four keys match a random rule
  bursts,    // routing: runs of up to 32 keys with one address, as of UDP flows and TCP bursts
  tcp,       // a firewall: as `spread`, but nine of ten keys are of TCP, and the others of UDP
  balanced,  // half and half
  udp,       // the other way round
  flood,  // denial of service. Routing: nine of ten keys have one address. A firewall: nine of ten are UDP packets from
          // random sources to one host, which only the last rule matches
};
[[nodiscard]] std::string_view name_of(Traffic traffic) noexcept;

/// The copy of a table on the device that was current when it was made.
struct DeviceTable {
  TableView view;
  std::vector<gpu::DeviceBuffer<std::uint32_t>> arrays;    // of a routing table
  std::unique_ptr<const classify::DeviceTables> firewall;  // of a firewall
};

/// One engine with its table. Immutable, and may be used by several threads. Borrows its LookupWork.
class LookupEngine {
 public:
  virtual ~LookupEngine() = default;
  /// Looks up the work's keys [first, first + count) with the CPU twin's bulk interface.
  virtual void look_up(std::size_t first, std::size_t count, std::uint32_t* values) const noexcept = 0;
  /// Throws gpu::CudaError.
  [[nodiscard]] virtual DeviceTable to_device() const = 0;
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
};

/// The contents of a table (routes or rules), and kKeys keys for it. Immutable.
class LookupWork {
 public:
  virtual ~LookupWork() = default;
  /// In the form in which they cross PCIe, contiguous. A value has four bytes.
  [[nodiscard]] virtual std::span<const std::byte> keys() const noexcept = 0;
  [[nodiscard]] std::size_t key_bytes() const noexcept { return keys().size() / kKeys; }
  /// Fails if the table would be too large for the engine.
  [[nodiscard]] virtual Result<std::unique_ptr<LookupEngine>> engine(std::string_view name) const = 0;
  /// The correct value of key `index`, from the reference engine.
  [[nodiscard]] virtual std::uint32_t expected(std::size_t index) const noexcept = 0;
};

/// Look-ups in these routes, with engines `dir24`, `trie4` and `trie1`. Values are those of the routes.
[[nodiscard]] Result<std::unique_ptr<LookupWork>> make_routing(std::span<const router::Route4> routes,
                                                               Traffic traffic = Traffic::spread);

/// Classification by these rules, with engines `bitvector` and `linear`. Values are entries, as in
/// classify::Classifier.
[[nodiscard]] Result<std::unique_ptr<LookupWork>> make_firewall(classify::Ruleset rules,
                                                                Traffic traffic = Traffic::spread);

}  // namespace penstock::experiments
