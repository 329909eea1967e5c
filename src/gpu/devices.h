// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs this process can use, and why not if it can use none. Looking changes nothing on the machine, and a
// machine without a driver is an answer, not an error.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::gpu {

enum class Availability {
  kUsable,            // at least one device that this build has code for
  kBuiltWithoutCuda,  // this program has no GPU code at all
  kNoDriver,          // the CUDA driver's library is not installed
  kDriverTooOld,      // older than the CUDA runtime in this program
  kNoDevice,          // a driver, and no device that it shows us
  kTooOldDevice,      // devices, and none that this build has code for
  kFailed,            // the driver answers with another error
};

struct PcieLink {
  unsigned generation = 0;  // as the device and the slot allow; an idle link may run slower
  unsigned width = 0;
};

struct Device {
  int index = 0;  // as CUDA counts them, from 0
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  bool supported = false;  // this build has code for it
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  std::string pci_bus_id;  // "0000:17:00.0"
  std::optional<PcieLink> link;
};

struct DeviceList {
  Availability availability = Availability::kBuiltWithoutCuda;
  std::string reason;        // one sentence; empty when usable
  std::string driver;        // the driver's own version, "580.65.06"; empty when unknown
  std::string driver_cuda;   // the newest CUDA that the driver serves, "13.0"; empty without a driver
  std::string runtime_cuda;  // the CUDA in this program, "13.0"; empty without CUDA
  std::vector<Device> devices;
};

/// Never throws for what it finds.
[[nodiscard]] DeviceList list_devices();

/// The device that this thread's buffers, streams and kernels go to; throw CudaError.
void use_device(int index);
[[nodiscard]] int current_device();
/// Lets kernels of the current device read, write and count in the memory of another one, over NVLink. Throws CudaError
/// where the two cannot.
void reach_memory_of(int device);

}  // namespace penstock::gpu
