// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequence numbers of SAs that GPU stages send by. On the CPU the SA's state counts (SaState). Once a GPU stage sends
// by an SA, its counter lies in device memory, where a batch takes the numbers of all its packets at once, whichever
// function's stage it is in. What CPU twins still have to send (packets that are punted, batches that the device
// refuses) takes its numbers from the device too, so that no number is used twice and none is far from those around it.
// If the device is lost, the SA's state counts on after all that the device can have given out.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/devices.h"
#include "nf/ipsec/sa/sa_state.h"

namespace penstock::ipsec {

/// The counter of one SA in device memory.
struct NumberCell {
  unsigned long long sent = 0;      // the last number given out
  unsigned long long reserved = 0;  // the last that may be given out now: the host raises it
  unsigned long long most = 0;      // the last that there is
};

/// Counters on the device that was current when this was made. Borrows nothing.
class DeviceNumbers {
 public:
  /// What kernels get, by value. `published` and `cells` are indexed by the SA's place in the stage's function.
  struct View {
    NumberCell* const* cells = nullptr;       // null where the function does not send by the SA
    unsigned long long* published = nullptr;  // the last number taken with this view, in the host's memory: what is
                                              // known if the device is lost
    const unsigned* closed = nullptr;         // there too: not 0 once the host gives numbers out itself
    std::uint32_t sas = 0;

    [[nodiscard]] bool is_closed() const noexcept { return *static_cast<const volatile unsigned*>(closed) != 0; }
  };
  static constexpr std::uint32_t kNoCell = ~std::uint32_t{0};

  virtual ~DeviceNumbers() = default;
  [[nodiscard]] virtual int device() const noexcept = 0;
  /// New counters, numbered from how many there were before. Before their packets flow. Throws CudaError.
  virtual void add(std::span<const NumberCell> cells) = 0;
  /// For one more stage, whose batches take numbers one after the other. `cells`: by SA of its function, kNoCell where
  /// it does not send by the SA. Before its packets flow. Throws CudaError.
  [[nodiscard]] virtual View join(std::span<const std::uint32_t> cells) = 0;
  /// For CPU twins: waits for the device, some ten microseconds. False: the device is lost.
  [[nodiscard]] virtual bool take(std::uint32_t cell, std::uint32_t count, SequenceRange& taken) noexcept = 0;
  /// Waits for nothing: batches see it soon.
  virtual void reserve(std::uint32_t cell, std::uint64_t end) noexcept = 0;
  /// From now on it gives out none, except to batches that are already taking theirs.
  virtual void close() noexcept = 0;
  /// The last number known to have been given out.
  [[nodiscard]] virtual std::uint64_t published(std::uint32_t cell) const noexcept = 0;
};

/// Throws CudaError.
[[nodiscard]] std::unique_ptr<DeviceNumbers> make_device_numbers();

/// The numbers of all SAs of a process that devices count; one for all functions. Any thread.
class DeviceCounting {
 public:
  using Make = std::unique_ptr<DeviceNumbers> (*)();
  using Reach = void (*)(int device);
  explicit DeviceCounting(Make make = make_device_numbers, Reach reach = gpu::reach_memory_of) noexcept
      : make_(make), reach_(reach) {}

  /// For a GPU stage on the current device, of batches of at most `batch_packets`, whose function has these SAs: from
  /// now on, the numbers of those among them that count here come from the device. Before packets flow. Throws
  /// CudaError, also where another device counts whose memory this one cannot reach.
  [[nodiscard]] DeviceNumbers::View join(std::span<const std::shared_ptr<SaState>> sas, std::uint32_t batch_packets);

  // Of a state that is, or just was, counted by the device.
  [[nodiscard]] SequenceRange take(SaState& sa, std::uint32_t count) noexcept;
  [[nodiscard]] std::uint64_t sent(const SaState& sa) const noexcept;
  void reserve(const SaState& sa) noexcept;
  /// No stage sends by it any more: the host counts again.
  void leave(SaState& sa) noexcept;

 private:
  void lose_device() noexcept;

  const Make make_;
  const Reach reach_;
  mutable std::mutex mutex_;  // guards all below, and the twins' way to the device
  std::unique_ptr<DeviceNumbers> device_;
  std::vector<std::weak_ptr<SaState>> cells_;
  std::uint64_t in_flight_ = 0;  // numbers that batches on the device may take without publishing that
  bool is_lost_ = false;
  std::vector<std::unique_ptr<DeviceNumbers>> lost_;  // what batches on lost devices may still write to
};

}  // namespace penstock::ipsec
