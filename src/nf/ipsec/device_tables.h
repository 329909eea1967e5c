// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the GPU stages of one device share: the tables of one `ipsec`, and what of the SAs' state they need there. Owns
// the device's memory.

#pragma once

#include <cstdint>
#include <memory>

#include "gpu/memory.h"
#include "gpu/stage.h"
#include "gpu/stream.h"
#include "gpu/turns.h"
#include "nf/ipsec/crypto/crypto.h"
#include "nf/ipsec/numbers/device_numbers.h"
#include "nf/ipsec/selection/device_selection.h"
#include "nf/ipsec/tables.h"

namespace penstock::ipsec {

class DeviceTables {
 public:
  /// On the current device; throws CudaError. Borrows the tables.
  explicit DeviceTables(const Tables& tables);

  // To be passed by value to kernels.
  [[nodiscard]] const DeviceSelection& selection() const noexcept { return selection_; }
  [[nodiscard]] const DeviceInboundTable& inbound() const noexcept { return inbound_; }
  /// By SA; kept up to date by `tell_statuses`.
  [[nodiscard]] const SaStatus* statuses() const noexcept { return statuses_.data(); }
  /// By SA with ESN, the highest number of a packet that was authentic: as far as the device has seen them, or the host
  /// when it last told. It may be somewhat lower than the highest: what is inferred from it is the same.
  [[nodiscard]] unsigned long long* tops() const noexcept { return tops_; }
  [[nodiscard]] const std::uint32_t* windows() const noexcept { return windows_.data(); }
  [[nodiscard]] const DeviceKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] const Tables& host() const noexcept { return tables_; }

  /// The SAs' statuses have changed. Never waits for what runs on the device: batches see it soon.
  void tell_statuses() noexcept;
  /// The same of what the SAs have received: by other devices and functions too.
  void tell_tops() noexcept;

 private:
  const Tables& tables_;
  DeviceSelection selection_;
  DeviceInboundTable inbound_;
  gpu::DeviceBuffer<std::uint32_t> windows_;
  gpu::DeviceBuffer<unsigned long long> top_numbers_;
  unsigned long long* tops_;
  gpu::DeviceBuffer<SaStatus> statuses_;
  gpu::PinnedBuffer<SaStatus> host_statuses_;
  gpu::PinnedBuffer<unsigned long long> host_tops_;
  DeviceKeys keys_;
  gpu::Stream stream_;
};

/// What the GPU stage finds of a packet that an SA protects, for the finish stage.
struct OutboundFinding {
  std::uint32_t sa;        // kNoSa: none does
  std::uint32_t ip_bytes;  // of the packet as it came
};

/// The same of a packet that an SA was to open.
struct InboundFinding {
  std::uint64_t sequence;
  std::uint32_t sa;  // kNoSa: none was
  std::uint32_t ip_bytes : 31;
  std::uint32_t authentic : 1;
};
static_assert(sizeof(InboundFinding) == 16);

/// Borrow the tables, which are of the current device; those of a worker share `turns`. Throw CudaError.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_outbound_gpu_stage(const DeviceTables& tables,
                                                                     DeviceNumbers::View numbers, gpu::Turns& turns,
                                                                     FrameRoom growth, const gpu::StageUse& use);
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_inbound_gpu_stage(const DeviceTables& tables,
                                                                    const gpu::StageUse& use);

}  // namespace penstock::ipsec
