// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound `ipsec` in a proxy with a simulated device sends byte for byte what the CPU sends, numbers included.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string_view>

#include "packet/parse_core.h"
#include "process/remote_function.h"
#include "process/server.h"
#include "proxy/table_granter.h"
#include "proxy/testing/ipsec_kernel.h"
#include "proxy/testing/ipsec_runs.h"

namespace penstock::proxy {
namespace {

class ProxyIpsec : public testing::IpsecRuns {
 protected:
  void SetUp() override { start(std::make_unique<testing::HostBackend>(device_, kernels_)); }

  const std::array<function::RemoteKernel, 1> kernels_{testing::ipsec_kernel()};
  testing::HostDevice device_;
};

TEST_F(ProxyIpsec, SendsWhatTheCpuSends) {
  const Outcome proxied = run(true);
  expect_same(run(false), proxied);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
}

TEST_F(ProxyIpsec, KeepsNumbersIfTheDeviceFailsNowAndThen) {
  const Outcome proxied =
      run(true, run::Transfer::automatic, [this](std::size_t polled) { device_.fails = polled % 7 == 3; });
  expect_same(run(false), proxied);
  EXPECT_GT(proxied.report.gpu->failures, 0U);
}

TEST_F(ProxyIpsec, KeepsNumbersIfTheProxyGoes) {
  device_.polls = 50;  // batches are in flight then
  const Outcome proxied = run(true, run::Transfer::automatic, [this](std::size_t polled) {
    if (polled == 20) server_.reset();
  });
  expect_same(run(false), proxied);
  EXPECT_GT(proxied.report.gpu->failures, 0U);
}

/// In a process of its own, which has the SAs. (A server in the same process is another one.)
class GrantedIpsec : public ProxyIpsec {
 protected:
  void SetUp() override {
    ProxyIpsec::SetUp();
    mtu_ = 0;
    const auto make = [](std::string_view, const process::Surroundings&) {
      return Result<std::unique_ptr<function::NetworkFunction>>(make_ipsec({}));
    };
    process_ = process::Server::start({.path = path_ + "-ipsec", .granter = &granter_}, make).value();
  }
  /// As IpsecRuns::run. `in_proxy`: the chain has its lanes there.
  Outcome run_apart(
      bool in_proxy, const std::function<void(std::size_t polled)>& at_poll = [](std::size_t) {}) {
    make_ = [this](const ipsec::Settings& of_chain) {
      process::RemoteSettings settings;
      settings.socket = path_ + "-ipsec";
      settings.function = "ipsec";
      settings.patience = std::chrono::seconds{10};  // the machine may be busy
      settings.in_proxy = of_chain.device_is_remote;
      settings.surroundings.ports = {{.name = "in", .reads = true}, {.name = "out", .writes = true}};
      return process::connect_function(settings).value();
    };
    Outcome outcome = run(in_proxy, run::Transfer::automatic, at_poll);
    make_ = make_ipsec;
    return outcome;
  }
  static void expect_same_packets(const Outcome& one, const Outcome& other) {
    ASSERT_EQ(one.sent.size(), other.sent.size());
    for (std::size_t i = 0; i < one.sent.size(); ++i) ASSERT_EQ(one.sent[i], other.sent[i]) << i;
    EXPECT_EQ(one.report.dropped.packets, other.report.dropped.packets);
  }

  TableGranter granter_{path_, {"ipsec"}, kernels_};
  std::unique_ptr<process::Server> process_;
};

TEST_F(GrantedIpsec, SendsFromItsProcessWhatOneProcessSends) { expect_same_packets(run(false), run_apart(false)); }

TEST_F(GrantedIpsec, SendsFromADeviceWhatOneProcessSends) {
  const Outcome granted = run_apart(true);
  expect_same(run(false), granted);
  EXPECT_EQ(granted.report.gpu->failures, 0U);
  EXPECT_EQ(granted.report.gpu->punted, 0U);
}

/// Whatever was decided for a batch that fails is decided anew.
TEST_F(GrantedIpsec, UsesNoNumberTwiceIfTheDeviceFailsNowAndThen) {
  const Outcome one = run(false);
  const Outcome granted = run_apart(true, [this](std::size_t polled) { device_.fails = polled % 7 == 3; });
  EXPECT_GT(granted.report.gpu->failures, 0U);
  EXPECT_EQ(granted.report.forwarded.packets, one.report.forwarded.packets);
  EXPECT_EQ(granted.report.dropped.packets, one.report.dropped.packets);
  // ESP begins with SPI and number, after which a copy of either would be found.
  std::set<Bytes> numbers;
  std::size_t esp = 0;
  for (const Bytes& frame : granted.sent) {
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    Bytes bytes = frame;
    PacketView packet{bytes.data(), &descriptor};
    parse(packet);
    if (packet.layout().transport != ip_protocol::kEsp) continue;
    const auto at = bytes.begin() + packet.layout().transport_offset;
    numbers.insert(Bytes(at, at + 8));
    ++esp;
  }
  EXPECT_GT(esp, 1000U);
  EXPECT_EQ(numbers.size(), esp);
}

}  // namespace
}  // namespace penstock::proxy
