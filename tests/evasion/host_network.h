// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network namespace for one host: its settings, devices, addresses and routes. The thread that creates it is in it
// until it is destroyed, or until the thread creates or enters another one. Nothing outside the namespace is changed.

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

/// If the process may not create network namespaces (it is not root), moves it into a user namespace in which it may.
/// Call it once, before threads are started. If neither is allowed, it has no effect, and HostNetwork::make fails.
void allow_network_namespaces();

/// A file descriptor, closed by the destructor.
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

/// The host's configuration: settings that differ from the kernel's defaults.
enum class HostProfile : std::uint8_t {
  standard,
  syn_cookies,  // always sent, as under a flood
  fast_open,    // servers accept data in the SYN, with and without a cookie
  no_timestamps,
  no_window_scaling,
  no_sack,
  quick_timers,  // timers of 30 s run for 1 s, for Step::Kind::host_waits
};
inline constexpr std::size_t kHostProfiles = 7;
[[nodiscard]] std::string_view name_of(HostProfile profile);
[[nodiscard]] std::vector<HostProfile> all_profiles();

class HostNetwork {
 public:
  /// The error says what is not available: namespaces, TUN devices, a setting.
  static Result<std::unique_ptr<HostNetwork>> make(HostProfile profile, const Address& ipv4, const Address& ipv6);
  ~HostNetwork();
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;

  /// Moves the thread into the namespace, where it then creates its sockets.
  void enter();
  [[nodiscard]] bool has_ipv6() const noexcept { return has_ipv6_; }

  /// The host receives the packet, and has processed it when the call returns. `in_page`: by the TAP device, else by
  /// the TUN device.
  void deliver(BytesView packet, bool in_page);
  /// The next packet that the host has sent by the TUN device; valid until the next call. Empty: there is none.
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
  Bytes frame_;  // for the TAP device; begins with the Ethernet header
  Bytes packet_;
};

/// The reason is taken from `errno`.
[[nodiscard]] tl::unexpected<Errors> refused(std::string what);
[[nodiscard]] sockaddr_storage socket_address(const Endpoint& endpoint);

}  // namespace penstock::evasion
