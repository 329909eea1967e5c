// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequence numbers of SAs on which GPU stages send. Normally the SA's state (SaState) counts on the CPU. Once a GPU
// stage sends on an SA, the counter moves to device memory, and each batch takes the numbers for all its packets at
// once, whichever function's stage it is in. Packets that CPU stages still send (punted packets, batches that the
// device refuses) take their numbers from the device too, so that no number is used twice and all numbers stay close
// together. If the device is lost, the SA's state continues after the last number that the device can have given out.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "gpu/devices.h"
#include "nf/ipsec/sa/sa_state.h"

namespace penstock::ipsec {

/// The counter of one SA in device memory.
struct NumberCell {
  unsigned long long sent = 0;      // the last number given out
  unsigned long long reserved = 0;  // the last that may be given out now: the host raises it
  unsigned long long most = 0;      // the last number that the SA may use
};

/// Counters on the device that was current at construction. Borrows nothing. Kernels use only the memory that their
/// views point to, which stays where it is until `leave`: other stages may join and leave meanwhile.
class DeviceNumbers {
 public:
  /// Passed to kernels by value. `published` and `cells` are indexed by the SA's index in the stage's function.
  struct View {
    NumberCell* const* cells = nullptr;  // null if the function does not send on the SA
    /// The last number taken with this view, in host memory: survives the loss of the device.
    unsigned long long* published = nullptr;
    const unsigned* closed = nullptr;  // in host memory too: non-zero once the host itself gives out numbers
    std::uint32_t sas = 0;

    [[nodiscard]] bool is_closed() const noexcept { return *static_cast<const volatile unsigned*>(closed) != 0; }
  };
  static constexpr std::uint32_t kNoCell = ~std::uint32_t{0};

  virtual ~DeviceNumbers() = default;
  [[nodiscard]] virtual int device() const noexcept = 0;

  // Set-up, also while batches take numbers and other threads call the functions below. One thread at a time.

  /// Adds counters without numbers; their indices continue from the number of existing ones. Throws CudaError.
  virtual void add(std::uint32_t count) = 0;
  /// Makes a view for one more stage, whose batches take numbers one after another. `cells`: by SA of the stage's
  /// function, kNoCell if it does not send on the SA. Throws CudaError.
  [[nodiscard]] virtual View join(std::span<const std::uint32_t> cells) = 0;
  /// The view's stage has ended, with all its batches. What they published stays known.
  virtual void leave(const View& view) noexcept = 0;
  /// Waits until the device has seen all `start`s. Throws CudaError.
  virtual void settle() = 0;

  // Any thread.

  /// Sets a counter that no batch uses yet. Does not wait.
  virtual void start(std::uint32_t cell, const NumberCell& numbers) noexcept = 0;
  /// For CPU stages. Waits for the device, about ten microseconds. False: the device is lost.
  [[nodiscard]] virtual bool take(std::uint32_t cell, std::uint32_t count, SequenceRange& taken) noexcept = 0;
  /// Raises the limit to `end`. Does not wait; batches see it soon.
  virtual void reserve(std::uint32_t cell, std::uint64_t end) noexcept = 0;
  /// Stops giving out numbers, except to batches that are already taking theirs.
  virtual void close() noexcept = 0;
  /// The last number known to have been given out.
  [[nodiscard]] virtual std::uint64_t published(std::uint32_t cell) const noexcept = 0;
};

/// Throws CudaError.
[[nodiscard]] std::unique_ptr<DeviceNumbers> make_device_numbers();

/// All SA numbers of a process that devices count; shared by all functions. Any thread.
class DeviceCounting {
 public:
  using Make = std::unique_ptr<DeviceNumbers> (*)();
  using Reach = void (*)(int device);
  explicit DeviceCounting(Make make = make_device_numbers, Reach reach = gpu::reach_memory_of) noexcept
      : make_(make), reach_(reach) {}

  /// A GPU stage's registration, which ends with it. Borrows the DeviceCounting.
  class Joined {
   public:
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;
    /// None of the stage's batches may be on the device any more.
    ~Joined() { counting_.leave(*this); }
    [[nodiscard]] const DeviceNumbers::View& view() const noexcept { return view_; }

   private:
    friend class DeviceCounting;
    Joined(DeviceCounting& counting, DeviceNumbers& device, std::vector<std::uint32_t> cells,
           std::uint32_t batch_packets)
        : counting_(counting),
          device_(device),
          cells_(std::move(cells)),
          batch_packets_(batch_packets),
          view_(device.join(cells_)) {}

    DeviceCounting& counting_;
    DeviceNumbers& device_;
    const std::vector<std::uint32_t> cells_;  // by SA
    const std::uint32_t batch_packets_;
    const DeviceNumbers::View view_;
  };
  /// Registers a GPU stage on the current device, with batches of at most `batch_packets`, for a function with these
  /// SAs. From now on the device gives out the numbers of those SAs that were created with this object, even if CPU
  /// stages are sending on them. Throws CudaError, also if the counters are on another device whose memory this one
  /// cannot reach.
  [[nodiscard]] std::unique_ptr<Joined> join(std::span<const std::shared_ptr<SaState>> sas,
                                             std::uint32_t batch_packets);

  // For an SA state that the device counts, or counted until just now.
  [[nodiscard]] SequenceRange take(SaState& sa, std::uint32_t count) noexcept;
  [[nodiscard]] std::uint64_t sent(const SaState& sa) const noexcept;
  void reserve(const SaState& sa) noexcept;
  /// Returns counting to the host. No stage may send on the SA any more.
  void leave(SaState& sa) noexcept;

 private:
  /// A counter on the device. Reused when its SA has left, and all stages that knew it have.
  struct Cell {
    std::weak_ptr<SaState> sa;
    std::uint32_t stages = 0;
  };
  [[nodiscard]] DeviceNumbers& device_to_join();
  [[nodiscard]] std::vector<std::uint32_t> cells_for(std::span<const std::shared_ptr<SaState>> sas,
                                                     DeviceNumbers& device);
  void move_to_device(const std::shared_ptr<SaState>& sa, std::uint32_t cell) noexcept;
  void leave(const Joined& stage) noexcept;
  void lose_device() noexcept;

  const Make make_;
  const Reach reach_;
  std::mutex joining_;        // held while stages join and leave, which may allocate; taken before `mutex_`
  mutable std::mutex mutex_;  // guards the members below, and CPU stages' access to the device; held briefly
  std::unique_ptr<DeviceNumbers> device_;
  std::vector<Cell> cells_;      // resized only with both mutexes
  std::uint64_t in_flight_ = 0;  // numbers that batches on the device may take without publishing them
  bool is_lost_ = false;
  std::vector<std::unique_ptr<DeviceNumbers>> lost_;  // batches on lost devices may still write to these
};

}  // namespace penstock::ipsec
