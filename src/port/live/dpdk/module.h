// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the port `dpdk` uses of DPDK, without its headers. module.cc and eth_device.cc implement it, as a library of its
// own that is loaded when a chain has such a port: so the program runs where DPDK is not installed, and does not load
// DPDK's libraries for anything else.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace penstock::port::dpdk {

inline constexpr const char* kModuleFile = "libpenstock_dpdk.so";

/// A DPDK buffer (`rte_mbuf`), which may be the first of several that hold a frame.
using Buffer = void*;

/// A frame that was received. Its buffer is the caller's until it gives it back.
struct Received {
  Buffer buffer = nullptr;
  std::uint8_t* bytes = nullptr;  // null: the frame is in several buffers (Device::join)
  std::uint32_t length = 0;
  std::uint32_t headroom = 0;
  std::uint32_t tailroom = 0;
};

struct DeviceSettings {
  std::string name;      // of the device, as DPDK knows it
  std::string device;    // a vdev with its arguments, or an address of a bus
  unsigned workers = 1;  // the most queues to use in each direction
  bool reads = true, writes = true;
  bool promiscuous = true;
  std::uint16_t receive_slots = 0, send_slots = 0;  // descriptors of a queue; the device's limits apply
  std::uint32_t kept_buffers = 0;                   // per receive queue: how many the caller keeps, at most
  std::uint16_t mtu = 0;
};

struct DeviceCounts {
  std::uint64_t missed = 0, receive_errors = 0, no_buffer = 0, send_errors = 0;
  std::vector<std::pair<std::string, std::uint64_t>> errors;  // of the driver, by its names; only those that are not 0
};

/// A device of DPDK's. Each queue is used by one thread at a time; different queues by different threads.
class Device {
 public:
  virtual ~Device() = default;  // stops the device. All buffers have been given back

  [[nodiscard]] virtual unsigned receive_queues() const noexcept = 0;
  [[nodiscard]] virtual unsigned send_queues() const noexcept = 0;
  /// The memory in which most buffers of received frames are; empty if it is not contiguous.
  [[nodiscard]] virtual std::span<std::uint8_t> receive_memory() const noexcept = 0;

  /// Lets packets in. Returns what went wrong, or nothing.
  [[nodiscard]] virtual std::string start() = 0;
  /// No queue is used any more. Counts stay.
  virtual void stop() noexcept = 0;

  /// Returns how many frames it has received.
  virtual std::size_t receive(unsigned queue, std::span<Received> to) noexcept = 0;
  /// Copies a frame that is in several buffers; `to` has room for it.
  virtual void join(const Received& frame, std::uint8_t* to) noexcept = 0;
  virtual void give_back(std::span<const Buffer> buffers) noexcept = 0;

  /// A copy of the frame in a buffer for `send`; null if there is no buffer.
  [[nodiscard]] virtual Buffer copy(std::span<const std::uint8_t> frame) noexcept = 0;
  /// Returns how many of the frames, from the first on, the device has taken, with their buffers. Does not block.
  virtual std::size_t send(unsigned queue, std::span<Buffer> frames) noexcept = 0;
  /// Whether the link is up, as of a few milliseconds ago. Any thread may ask.
  [[nodiscard]] virtual bool is_up() noexcept = 0;

  /// Thread-safe.
  [[nodiscard]] virtual DeviceCounts counts() const = 0;
};

/// What the library exports, by the function `penstock_dpdk_module`.
struct Module {
  static constexpr std::uint32_t kVersion = 2;  // changes with this file
  std::uint32_t version = kVersion;
  struct Started {
    std::string failure;  // "": it has started
    std::string warnings;
  };
  /// Starts DPDK, once per process. Texts are in DPDK's words.
  Started (*start)(const std::vector<std::string>& arguments) = nullptr;
  /// The error is DPDK's.
  tl::expected<std::unique_ptr<Device>, std::string> (*open)(const DeviceSettings& settings) = nullptr;
};
using ModuleFunction = const Module*();

}  // namespace penstock::port::dpdk
