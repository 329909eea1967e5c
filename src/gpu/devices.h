// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that this process can use, or the reason if there are none. Listing them changes nothing on the machine. A
// machine without a driver is a normal result, not an error.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::gpu {

enum class Availability {
  kUsable,            // at least one device that this build supports
  kBuiltWithoutCuda,  // this program has no GPU code
  kNoDriver,          // the CUDA driver's library is not installed
  kDriverTooOld,      // older than the CUDA runtime in this program
  kNoDevice,          // there is a driver, but it shows no device
  kTooOldDevice,      // there are devices, but none that this build supports
  kFailed,            // the driver returned another error
};

struct PcieLink {
  unsigned generation = 0;  // the best that the device and the slot support; an idle link may run slower
  unsigned width = 0;
};

struct Device {
  int index = 0;  // CUDA's index, from 0
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  bool supported = false;  // this build has code for it
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  std::string pci_bus_id;  // "0000:17:00.0"
  std::optional<PcieLink> link;
  std::optional<unsigned> numa_node;  // of the host; empty if Linux does not know it
};

struct DeviceList {
  Availability availability = Availability::kBuiltWithoutCuda;
  std::string reason;        // one sentence; empty if usable
  std::string driver;        // the driver's own version, "580.65.06"; empty if unknown
  std::string driver_cuda;   // the newest CUDA version that the driver supports, "13.0"; empty without a driver
  std::string runtime_cuda;  // the CUDA version of this program, "13.0"; empty without CUDA
  std::vector<Device> devices;
};

/// From now on, the driver loads all kernels of the program when it first uses a device, unless the environment says
/// otherwise (CUDA_MODULE_LOADING). By default it loads a kernel when that is first used, for which it may stop the
/// device: a reload whose tables need other kernels would hold up packets. Call it before all other functions here,
/// while the process has one thread.
void load_kernels_at_once() noexcept;

/// Does not throw if there are no usable devices.
[[nodiscard]] DeviceList list_devices();

/// Selects or returns the device for this thread's buffers, streams and kernels. Throw CudaError.
void use_device(int index);
[[nodiscard]] int current_device();
/// Whether an error of a kernel or of the device has ended this process's use of it: everything there fails from now
/// on. Selects the device. Does not wait for it.
[[nodiscard]] bool is_lost(int index) noexcept;
/// Lets kernels of the current device access (including atomics) the memory of another device, over NVLink. Throws
/// CudaError if the two devices cannot do that.
void reach_memory_of(int device);

}  // namespace penstock::gpu
