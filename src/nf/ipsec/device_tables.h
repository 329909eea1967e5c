// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables that all GPU stages of one `ipsec` function share on a device, with a copy of the SA state that kernels need.
// Owns the device memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/wipe.h"
#include "gpu/memory.h"
#include "gpu/stage.h"
#include "gpu/stream.h"
#include "gpu/turns.h"
#include "nf/ipsec/crypto/crypto.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/numbers/device_numbers.h"
#include "nf/ipsec/selection/device_selection.h"
#include "nf/ipsec/table_spans.h"
#include "nf/ipsec/tables.h"

namespace penstock::ipsec {

/// Copies of tables on a device, for which the process may have no `Tables`: they may come from another process.
class DeviceCopies {
 public:
  /// Copies to the current device. Tables of another process must have been checked. Throws CudaError.
  explicit DeviceCopies(const TableSpans& tables);

  // To be passed by value to kernels.
  [[nodiscard]] const DeviceSelection& selection() const noexcept { return selection_; }
  [[nodiscard]] const DeviceInboundTable& inbound() const noexcept { return inbound_; }
  /// Indexed by SA; only for SAs with ESN: the highest authenticated sequence number that this device has seen or has
  /// been told. It may lag behind the true highest number, by less than 2^32: then the inferred upper half is the same.
  [[nodiscard]] unsigned long long* tops() const noexcept { return tops_; }
  [[nodiscard]] const std::uint32_t* windows() const noexcept { return windows_.data(); }
  [[nodiscard]] const DeviceKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] bool has_policies() const noexcept { return has_policies_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  DeviceSelection selection_;
  DeviceInboundTable inbound_;
  gpu::DeviceBuffer<std::uint32_t> windows_;
  gpu::DeviceBuffer<unsigned long long> top_numbers_;
  unsigned long long* tops_;
  DeviceKeys keys_;
  bool has_policies_;
};

/// The same for an outbound stage for which the host decides.
class SealingCopies {
 public:
  /// As DeviceCopies.
  explicit SealingCopies(const SealingSpans& tables);
  SealingCopies(const SealingCopies&) = delete;
  SealingCopies& operator=(const SealingCopies&) = delete;
  ~SealingCopies() { wipe(&key_, sizeof key_); }

  /// For kernels, passed by value.
  [[nodiscard]] SealingView view() const noexcept {
    return {sas_.data(), static_cast<std::uint32_t>(sas_.size()), growth_, are_signed_, key_, used_};
  }
  [[nodiscard]] const DeviceKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] bool has_udp_over_ipv6() const noexcept { return has_udp_over_ipv6_; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sas_.size_bytes() + keys_.bytes() + used_words_.size_bytes();
  }

 private:
  gpu::DeviceBuffer<SaView> sas_;
  DeviceKeys keys_;
  FrameRoom growth_;
  bool are_signed_;  // decisions
  SipKey key_;
  gpu::DeviceBuffer<unsigned long long> used_words_;
  UsedNumbersView used_;
  bool has_udp_over_ipv6_;
};

class DeviceTables {
 public:
  /// Copies the tables to the current device and borrows the host's. Throws CudaError.
  explicit DeviceTables(const Tables& tables);
  DeviceTables(const DeviceTables&) = delete;
  DeviceTables& operator=(const DeviceTables&) = delete;
  /// No stage may use it any more.
  ~DeviceTables();

  [[nodiscard]] const DeviceCopies& copies() const noexcept { return copies_; }
  /// For kernels. Indexed by SA; `tell_statuses` updates it.
  [[nodiscard]] const SaStatus* statuses() const noexcept { return statuses_.data(); }
  [[nodiscard]] const Tables& host() const noexcept { return tables_; }

  /// Copies the SAs' statuses to the device. Does not wait for running kernels; batches see the change soon.
  void tell_statuses() noexcept;
  /// Copies the highest received sequence numbers to the device, including those that other devices and functions
  /// received. Does not wait.
  void tell_tops() noexcept;

 private:
  const Tables& tables_;
  DeviceCopies copies_;
  gpu::DeviceBuffer<SaStatus> statuses_;
  gpu::PinnedBuffer<SaStatus> host_statuses_;
  gpu::PinnedBuffer<unsigned long long> host_tops_;
  gpu::Stream stream_;
};

/// What an outbound GPU stage registers for as long as it exists: that its batches take numbers, and how many packets
/// they may have in flight. Borrows the tables.
class Sender {
 public:
  /// Throws CudaError.
  Sender(const Tables& tables, std::uint32_t batch_packets);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  /// None of the stage's batches may be on the device any more.
  ~Sender();
  [[nodiscard]] const DeviceNumbers::View& numbers() const noexcept { return joined_->view(); }

 private:
  const Tables& tables_;
  const std::uint32_t batch_packets_;
  const std::unique_ptr<const DeviceCounting::Joined> joined_;
};

/// Per-packet result of an outbound GPU stage, for the finish stage.
struct OutboundFinding {
  std::uint32_t sa;        // kNoSa: not protected
  std::uint32_t ip_bytes;  // IP length before encapsulation
};

/// Per-packet result of the inbound GPU stage, for the finish stage.
struct InboundFinding {
  std::uint64_t sequence;
  std::uint32_t sa;  // kNoSa: not ESP for one of our SAs
  std::uint32_t ip_bytes : 31;
  std::uint32_t authentic : 1;
};
static_assert(sizeof(InboundFinding) == 16);

/// What an inbound stage does with ESP of an SA with ESN whose ICV is wrong.
enum class WrongIcv : std::uint8_t {
  drop,  // the numbers in DeviceCopies::tops are kept up to date
  punt,  // they are not, so that the upper half of the number may be wrong; the CPU knows
};

/// Borrow the tables, which must be on the current device. All stages of one worker share `turns`. Throw CudaError.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_outbound_gpu_stage(const DeviceTables& tables,
                                                                     std::unique_ptr<const Sender> sender,
                                                                     gpu::Turns& turns, FrameRoom growth,
                                                                     const StageUse& use);
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_sealing_gpu_stage(const SealingCopies& tables, const StageUse& use);
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_inbound_gpu_stage(const DeviceCopies& tables, WrongIcv with_esn,
                                                                    const StageUse& use);

}  // namespace penstock::ipsec
