// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures one-way delays: sends a small UDP packet about every millisecond by one interface, and receives them at
// another one of this machine. A delay begins before the packet is sent, and ends when the system receives it, however
// late the receiving thread reads it. Owns two threads.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/ip_address.h"
#include "packet/ethernet.h"
#include "port/live/file_descriptor.h"

namespace penstock::experiments {

class Prober {
 public:
  struct End {
    std::string netns;  // as `ip netns` names it; empty: that of the calling thread
    std::string interface;
  };
  struct Path {
    End from, to;
    MacAddress gateway;  // destination of the frames
    Ipv4Address source, destination;
  };
  /// Opens the sockets and starts. Needs CAP_NET_RAW.
  [[nodiscard]] static Result<std::unique_ptr<Prober>> start(const Path& path);
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  ~Prober();

  struct Delays {
    std::uint64_t sent = 0;
    std::vector<double> us;  // of those that arrived, ascending

    [[nodiscard]] std::uint64_t lost() const noexcept { return sent - us.size(); }
    /// `part`: 0.5 for the median, 1 for the longest. There must be a delay.
    [[nodiscard]] double quantile(double part) const noexcept;
  };
  /// Stops sending, and waits for packets that are under way for as long as half a second. Call once.
  [[nodiscard]] Delays finish();

 private:
  Prober() = default;
  void send(const Path& path, const MacAddress& own);
  void receive();

  std::uint64_t number_ = 0;  // of this prober, in each packet
  port::FileDescriptor out_, in_;
  std::atomic<bool> sends_{true}, receives_{true};
  std::atomic<std::uint64_t> sent_{0}, arrived_{0};
  std::vector<double> us_;  // in the order of arrival; of the receiving thread until it ends
  std::thread sender_, receiver_;
};

}  // namespace penstock::experiments
