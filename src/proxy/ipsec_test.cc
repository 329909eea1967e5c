// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound `ipsec` in a proxy with a simulated device sends byte for byte what the CPU sends, numbers included.

#include <array>
#include <memory>

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

}  // namespace
}  // namespace penstock::proxy
