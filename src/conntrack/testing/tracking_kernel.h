// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel as an oracle: a network namespace that tracks the packets of a tunnel interface and forwards them to
// another one. Rules of nftables write the state of each into its DSCP; ctnetlink tells what the kernel remembers.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conntrack/tracked.h"

struct mnl_socket;

namespace penstock::conntrack {

using Packet = std::vector<std::uint8_t>;  // from the IP header on

class TrackingKernel {
 public:
  /// Moves this process into a new network namespace. Null if it may not; `why` says what is missing.
  static std::unique_ptr<TrackingKernel> start(std::string& why);

  TrackingKernel(const TrackingKernel&) = delete;
  TrackingKernel& operator=(const TrackingKernel&) = delete;
  ~TrackingKernel();

  /// Sets a parameter of nf_conntrack.
  [[nodiscard]] static bool set(const std::string& parameter, const std::string& value);

  struct Judgment {
    State state;
    Direction direction;  // of packets with a connection

    friend bool operator==(const Judgment&, const Judgment&) = default;
  };
  /// Nothing if the packet does not come out.
  [[nodiscard]] std::optional<Judgment> track(const Packet& packet);

  struct Entry {
    std::uint32_t status = 0;     // IPS_*
    std::uint32_t timeout_s = 0;  // remaining
    TcpState tcp_state = TcpState::none;
    std::array<std::uint8_t, 2> tcp_flags{}, tcp_scale{};  // by Direction
    std::array<Tuple, 2> tuples{};                         // by Direction
  };
  /// The connection with this tuple in either direction.
  [[nodiscard]] std::optional<Entry> find(const Tuple& tuple);
  /// Forgets all connections.
  void flush();

  /// The two interfaces, for tests that use them in another way; they do not block. The second one has the default
  /// route.
  [[nodiscard]] int tunnel(unsigned number) const { return tunnels_[number]; }

 private:
  TrackingKernel() = default;

  std::array<int, 2> tunnels_{-1, -1};
  mnl_socket* netlink_ = nullptr;
};

}  // namespace penstock::conntrack
