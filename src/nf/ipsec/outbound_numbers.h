// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Who gives out the sequence numbers that SAs send with. On the CPU the SAs' counters do. Once GPU stages do the work,
// the counters lie in device memory, where a batch takes the numbers of all its packets at once; what still has to be
// done by the CPU twins (packets that are punted, batches that the device refuses) asks the device for its own, so that
// no number is used twice and none is far from those around it. If the device is lost, the SAs' counters go on, behind
// all that it can have given out.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "nf/ipsec/sa_state.h"

namespace penstock::ipsec {

/// The counters of all SAs on the device that was current when this was made. Borrows nothing.
class DeviceNumbers {
 public:
  /// What kernels get, by value; by SA.
  struct View {
    unsigned long long* sent = nullptr;  // the last number given out
    const unsigned long long* most = nullptr;
    unsigned long long* published = nullptr;  // the last one taken with this view, in the host's memory: what is known
                                              // if the device is lost
    const unsigned* closed = nullptr;         // there too: not 0 once the host gives numbers out itself
    std::uint32_t sas = 0;

    [[nodiscard]] bool is_closed() const noexcept { return *static_cast<const volatile unsigned*>(closed) != 0; }
  };

  virtual ~DeviceNumbers() = default;
  /// For one more stage, whose batches take numbers one behind the other. Before packets flow. Throws CudaError.
  [[nodiscard]] virtual View join() = 0;
  [[nodiscard]] virtual int device() const noexcept = 0;
  /// One for the twins: waits for the device, some ten microseconds. False: the device is lost.
  [[nodiscard]] virtual bool take(std::uint32_t sa, std::uint32_t count, SequenceRange& taken) noexcept = 0;
  /// From here on it gives out none but to batches that are at it already.
  virtual void close() noexcept = 0;
  /// The last number known to have been given out.
  [[nodiscard]] virtual std::uint64_t published(std::uint32_t sa) const noexcept = 0;
};

/// Throws CudaError.
[[nodiscard]] std::unique_ptr<DeviceNumbers> make_device_numbers(std::span<const std::shared_ptr<SaState>> sas);

class OutboundNumbers {
 public:
  /// Shares the SAs' counters.
  explicit OutboundNumbers(std::vector<std::shared_ptr<SaState>> sas) : sas_(std::move(sas)) {}

  /// For the CPU twins. Any thread.
  [[nodiscard]] SequenceRange take(std::uint32_t sa, std::uint32_t count) noexcept;

  /// For a GPU stage on the current device, of batches of at most `batch_packets`: from now on, numbers come from
  /// there. Before packets flow. Throws CudaError, also where another device gives them out whose memory this one
  /// cannot count in.
  [[nodiscard]] DeviceNumbers::View join_device(std::uint32_t batch_packets);

  /// The last number given out, as far as is known. Any thread.
  [[nodiscard]] std::uint64_t sent(std::uint32_t sa) const noexcept;

 private:
  void lose_device() noexcept;

  const std::vector<std::shared_ptr<SaState>> sas_;
  std::mutex mutex_;  // guards joining, and the twins' way to the device
  std::unique_ptr<DeviceNumbers> device_;
  std::uint64_t in_flight_ = 0;  // numbers that batches on the device may take and nobody hear of
  std::atomic<bool> on_device_ = false;
};

}  // namespace penstock::ipsec
