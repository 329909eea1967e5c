// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A host whose TCP/IP stack is the running kernel's, in a network namespace of its own, and the applications on it. A
// packet that is delivered has been processed when the call returns, and what the host answers can be taken at once. A
// thread may have several hosts, and no other thread uses them.

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
  /// The ports that servers listen on, and the receive buffers of their connections (0: the kernel's default).
  static constexpr std::pair<std::uint16_t, int> kTcpPorts[] = {{80, 0}, {81, 2304}, {82, 8192}};
  static constexpr std::uint16_t kUdpPorts[] = {53, 4789, 3544, 6081};  // tunnels have some, which here lead nowhere

  /// An error says what cannot be had here: namespaces, TUN devices, a setting.
  static Result<std::unique_ptr<KernelHost>> make(HostProfile profile = HostProfile::standard);

  [[nodiscard]] bool has_ipv6() const noexcept { return network_->has_ipv6(); }
  [[nodiscard]] static Address address(bool v6);
  /// Of attacker `number`, which is below 2^24: the host's default route leads to all of them.
  [[nodiscard]] static Address attacker(bool v6, std::uint32_t number);
  /// The number of the attacker with this address, if it is one's.
  [[nodiscard]] static std::optional<std::uint32_t> number_of(const Address& address);

  /// The host's stack processes an IP packet. `in_page`: its memory is a page's part, as with a network card's driver,
  /// where it is else of its own; how segments that wait are joined depends on it.
  void deliver(BytesView packet, bool in_page = false) { network_->deliver(packet, in_page); }
  /// The next packet that it has sent; valid until the next call. Empty: there is none.
  [[nodiscard]] BytesView sent() { return network_->sent(); }

  // The applications on the host. Nothing here waits.
  struct Accepted {
    Descriptor socket;
    Endpoint peer;
  };
  [[nodiscard]] std::optional<Accepted> accept(std::uint16_t port, bool v6);
  /// A connection to `to` that has been begun, from this port (0: any).
  [[nodiscard]] Descriptor connect(const Endpoint& to, std::uint16_t from_port);
  /// Appends what the socket has to `read`; false once there will not be more.
  bool read(const Descriptor& socket, std::string& read);
  /// The next datagram of the UDP server on this port.
  struct Datagram {
    std::string text;
    Endpoint from;
  };
  [[nodiscard]] std::optional<Datagram> read_datagram(std::uint16_t port, bool v6);

  /// "6.18.44": of the judge.
  [[nodiscard]] static std::string kernel_release();

 private:
  explicit KernelHost(std::unique_ptr<HostNetwork> network);
  Result<void> begin();
  bool takes_datagrams(bool v6, bool in_page);
  Result<void> listen_on_ports(bool v6);

  const std::unique_ptr<HostNetwork> network_;
  std::vector<Descriptor> listeners_;  // IPv4's in the order of kTcpPorts, then IPv6's
  std::vector<Descriptor> datagrams_;  // the same of kUdpPorts
  std::vector<char> text_;
};

/// False where the socket takes nothing.
bool write_bytes(const Descriptor& socket, std::string_view text);
void send_fin(const Descriptor& socket);
/// The connection is gone when the descriptor is closed, by a RST if need be.
void abort_on_close(const Descriptor& socket);

}  // namespace penstock::evasion
