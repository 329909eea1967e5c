// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A host whose TCP/IP stack is the running kernel's, in its own network namespace, with the applications on it. A
// delivered packet has been processed when the call returns, and the host's answers are available at once. A thread may
// have several hosts, but each is used by only one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "evasion/host_network.h"
#include "evasion/packet_writer.h"

namespace penstock::evasion {

class KernelHost {
 public:
  /// The servers' ports, and the receive buffers of their connections (0: the kernel's default).
  static constexpr std::pair<std::uint16_t, int> kTcpPorts[] = {{80, 0}, {81, 2304}, {82, 8192}};
  static constexpr std::uint16_t kUdpPorts[] = {53, 4789, 3544, 6081};  // some belong to tunnels, but no tunnel is
                                                                        // configured here

  /// The error says what is not available: namespaces, TUN devices, a setting.
  static Result<std::unique_ptr<KernelHost>> make(HostProfile profile = HostProfile::standard);

  [[nodiscard]] bool has_ipv6() const noexcept { return network_->has_ipv6(); }
  [[nodiscard]] static Address address(bool v6);
  /// Address of attacker `number`, below 2^24. The host's default route leads to all attackers.
  [[nodiscard]] static Address attacker(bool v6, std::uint32_t number);
  /// The number of the attacker with this address; nothing if it is not an attacker's.
  [[nodiscard]] static std::optional<std::uint32_t> number_of(const Address& address);

  /// The host's stack processes an IP packet. `in_page`: the packet is stored in part of a page, as by a network card's
  /// driver, instead of in memory of its own. This affects how the kernel merges queued segments.
  void deliver(BytesView packet, bool in_page = false) { network_->deliver(packet, in_page); }
  /// The next packet that the host has sent; valid until the next call. Empty: there is none.
  [[nodiscard]] BytesView sent() { return network_->sent(); }

  // The applications on the host. No function here blocks.
  struct Accepted {
    Descriptor socket;
    Endpoint peer;
  };
  [[nodiscard]] std::optional<Accepted> accept(std::uint16_t port, bool v6);
  /// Starts a connection to `to` from this port (0: any).
  [[nodiscard]] Descriptor connect(const Endpoint& to, std::uint16_t from_port);
  /// Appends the data in the socket to `read`. Returns false once there will be no more.
  bool read(const Descriptor& socket, std::string& read);
  /// The next datagram of the UDP server on this port.
  struct Datagram {
    std::string text;
    Endpoint from;
  };
  [[nodiscard]] std::optional<Datagram> read_datagram(std::uint16_t port, bool v6);

  /// "6.18.44": the kernel whose behaviour is the reference.
  [[nodiscard]] static std::string kernel_release();

 private:
  explicit KernelHost(std::unique_ptr<HostNetwork> network);
  Result<void> begin();
  bool takes_datagrams(bool v6, bool in_page);
  Result<void> listen_on_ports(bool v6);

  const std::unique_ptr<HostNetwork> network_;
  std::vector<Descriptor> listeners_;  // IPv4's in the order of kTcpPorts, then IPv6's
  std::vector<Descriptor> datagrams_;  // likewise for kUdpPorts
  std::vector<char> text_;
};

/// Returns false if the socket accepts nothing.
bool write_bytes(const Descriptor& socket, std::string_view text);
void send_fin(const Descriptor& socket);
/// Closing the descriptor then ends the connection at once, with a RST if necessary.
void abort_on_close(const Descriptor& socket);

}  // namespace penstock::evasion
