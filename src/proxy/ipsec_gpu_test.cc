// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound `ipsec` in a proxy with a GPU sends byte for byte what the CPU sends, numbers included.

#include <array>

#include "nf/ipsec/outbound_recipe.h"
#include "proxy/testing/ipsec_runs.h"

namespace penstock::proxy {
namespace {

class GpuProxyIpsec : public testing::IpsecRuns {
 protected:
  void SetUp() override { start(make_gpu_backend(0, kernels_)); }

  const std::array<function::RemoteKernel, 1> kernels_{ipsec::remote_outbound_kernel()};
};

TEST_F(GpuProxyIpsec, SendsWhatTheCpuSends) {
  const Outcome cpu = run(false);
  for (const run::Transfer transfer : {run::Transfer::automatic, run::Transfer::streamed, run::Transfer::zero_copy}) {
    const Outcome proxied = run(true, transfer);
    expect_same(cpu, proxied);
    EXPECT_EQ(proxied.report.gpu->failures, 0U);
  }
}

TEST_F(GpuProxyIpsec, KeepsNumbersIfTheProxyGoes) {
  const Outcome proxied = run(true, run::Transfer::automatic, [this](std::size_t polled) {
    if (polled == 20) server_.reset();
  });
  expect_same(run(false), proxied);
  EXPECT_GT(proxied.report.gpu->failures, 0U);
}

}  // namespace
}  // namespace penstock::proxy
