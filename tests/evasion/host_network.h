// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network namespace for one host: its settings, the devices by which packets come and go, its addresses and routes.
// The thread that makes it is in it until it is destroyed, or until it makes or enters another one. Nothing outside of
// the namespace is touched.

#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "evasion/packet_writer.h"

struct sockaddr_storage;

namespace penstock::evasion {

/// Where a process may not make a network namespace (it is not root), puts it into a user namespace in which it may.
/// Once, before there are threads. Without effect where neither is allowed: HostNetwork::make will tell.
void allow_network_namespaces();

/// Closes what it holds.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// How the host's administrator has set it up: the settings that differ from the kernel's defaults.
enum class HostProfile : std::uint8_t {
  standard,
  syn_cookies,  // always, as under a flood
  fast_open,    // servers take data with the SYN, with and without a cookie
  no_timestamps,
  no_window_scaling,
  no_sack,
  quick_timers,  // what lasts half a minute lasts a second: for Step::Kind::host_waits
};
inline constexpr std::size_t kHostProfiles = 7;
[[nodiscard]] std::string_view name_of(HostProfile profile);
[[nodiscard]] std::vector<HostProfile> all_profiles();

class HostNetwork {
 public:
  /// An error says what cannot be had here: namespaces, TUN devices, a setting.
  static Result<std::unique_ptr<HostNetwork>> make(HostProfile profile, const Address& ipv4, const Address& ipv6);
  ~HostNetwork();
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;

  /// Sockets that the thread makes from now on are in it.
  void enter();
  [[nodiscard]] bool has_ipv6() const noexcept { return has_ipv6_; }

  /// Received by the host, processed when the call returns. `in_page`: by the TAP device, else by the TUN device.
  void deliver(BytesView packet, bool in_page);
  /// The next packet that the host has sent, by the TUN device; valid until the next call. Empty: there is none.
  [[nodiscard]] BytesView sent();

 private:
  HostNetwork() = default;
  Result<void> open_devices();
  Result<void> configure_ipv4(const Address& address) const;
  [[nodiscard]] bool configure_ipv6(const Address& address) const;

  Descriptor namespace_;
  Descriptor device_;       // TUN
  Descriptor page_device_;  // TAP
  bool has_ipv6_ = false;
  Bytes frame_;  // for the TAP device; begins with its Ethernet header
  Bytes packet_;
};

/// The system's reason is in `errno`.
[[nodiscard]] tl::unexpected<Errors> refused(std::string what);
[[nodiscard]] sockaddr_storage socket_address(const Endpoint& endpoint);

}  // namespace penstock::evasion
