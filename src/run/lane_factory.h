// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a run uses a kind of processor that is not the host. lane_factory.cc has the table of them.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/error.h"
#include "ring/lane.h"
#include "ring/timeline.h"
#include "run/chain.h"

namespace penstock::run {

/// Makes lanes on one device.
class LaneFactory {
 public:
  LaneFactory() = default;
  LaneFactory(const LaneFactory&) = delete;
  LaneFactory& operator=(const LaneFactory&) = delete;
  virtual ~LaneFactory() = default;

  /// "GPU 0"
  [[nodiscard]] virtual std::string device() const = 0;
  /// For the user: what to do if the device does not respond.
  [[nodiscard]] virtual std::string advice() const = 0;
  /// Selects the device for the calling thread. Call it before stages or lanes are made, and before lanes are used.
  /// Throws CudaError.
  virtual void select() const = 0;
  /// Whether an error has ended this process's use of the device, so that everything there fails from now on.
  [[nodiscard]] virtual bool is_lost() const noexcept = 0;
  /// Makes a stage of the function for one more batch in flight. Null if this program has none for the device. Throws
  /// CudaError.
  [[nodiscard]] virtual std::unique_ptr<DeviceStage> make_stage(function::NetworkFunction& function,
                                                                const StageUse& use) const = 0;
  /// Whether lanes are in another process, so that packets, with their descriptors, must be in memory that it can map.
  [[nodiscard]] virtual bool is_remote() const noexcept { return false; }
  /// Lets the device access this memory until the result is destroyed. Throws CudaError.
  [[nodiscard]] virtual std::shared_ptr<void> open(std::span<std::uint8_t> memory) const = 0;
  /// Lets lanes in another process read descriptors there, until the result is destroyed. Throws CudaError.
  [[nodiscard]] virtual std::shared_ptr<void> open_descriptors(std::span<std::uint8_t> memory) const {
    return open(memory);
  }
  /// Makes lane `lane` of a worker. If `timeline` is not null, the lane records its times there. Throws CudaError.
  [[nodiscard]] virtual std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages,
                                                              unsigned worker, unsigned lane,
                                                              ring::Timeline* timeline) const = 0;
};

/// A worker's lanes on a device, and what they need.
struct LaneSet {
  std::unique_ptr<LaneFactory> factory;
  std::vector<std::shared_ptr<void>> memory;       // of the worker, open to the device
  std::vector<ring::LaneStages> unused;            // that no lane has taken from an epoch
  std::vector<std::unique_ptr<ring::Lane>> lanes;  // with their stages; destroyed first. Null: the device is lost
};

/// Why a process that owns a device does not run the lanes of this run.
struct NotConnected {
  Errors errors;
  bool incompatible = false;  // it is of another release, so that trying again soon is of no use
  bool silent = false;        // it does not answer
};

/// The device of another process. It is lost when that process ends, and can be connected again. Thread-safe.
class RemoteDevice {
 public:
  RemoteDevice() = default;
  RemoteDevice(const RemoteDevice&) = delete;
  RemoteDevice& operator=(const RemoteDevice&) = delete;
  virtual ~RemoteDevice() = default;

  /// "the proxy at /run/penstock/proxy.sock"
  [[nodiscard]] virtual std::string name() const = 0;
  /// Of a worker's lanes, on the connection that there is now.
  [[nodiscard]] virtual std::unique_ptr<LaneFactory> make_factory(unsigned worker) = 0;
  /// Whether the connection has ended, and with it all that was made on it.
  [[nodiscard]] virtual bool is_lost() noexcept = 0;
  /// For the log, once it is lost: "the proxy at /run/penstock/proxy.sock has gone".
  [[nodiscard]] virtual std::string loss() const = 0;
  /// Replaces the connection, which is lost. Waits for an answer unless `stop` is requested.
  [[nodiscard]] virtual tl::expected<void, NotConnected> connect(std::stop_token stop) = 0;
  /// Ends the connection: it is lost, and whatever waits for an answer fails.
  virtual void disconnect() noexcept = 0;
};

/// For the device that the worker uses. Null on the CPU.
[[nodiscard]] std::unique_ptr<LaneFactory> make_lane_factory(const RunSettings& settings, unsigned worker);

}  // namespace penstock::run
