// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function's programs and actions on a device, shared by all its GPU stages there. Owns the device memory; immutable.

#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "gpu/stage.h"
#include "nf/filter/filter_list.h"

namespace penstock::filter {

/// automatic: generated code if NVRTC is there, else the interpreter.
enum class DeviceEngine : std::uint8_t { automatic, interpreter, generated };

/// "auto", "interpreter" or "generated".
[[nodiscard]] DeviceEngine device_engine_of(std::string_view name);
[[nodiscard]] std::string_view name(DeviceEngine engine) noexcept;

class DeviceTables {
 public:
  /// For the current device. Throws CudaError, also if the engine cannot be used.
  DeviceTables(const FilterList& list, DeviceEngine engine);
  DeviceTables(const DeviceTables&) = delete;
  DeviceTables& operator=(const DeviceTables&) = delete;
  ~DeviceTables();

 private:
  friend class FilterGpuStage;
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Borrows the tables, which must be on the current device. `findings_bytes` per packet hold the bitmap.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_filter_gpu_stage(const DeviceTables& tables,
                                                                   std::uint32_t findings_bytes);

}  // namespace penstock::filter
