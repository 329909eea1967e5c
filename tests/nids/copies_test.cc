// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker inspects fragments that another worker owns (RxStatus::copy), whatever it processed before: a port's batches
// are as large as the timing of threads makes them, and a copy reuses the memory of any of them.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nf/nids/nids.h"
#include "nf/nids/testing/nids_bed.h"
#include "packet/testing/fragments.h"
#include "run/cpu_executor.h"
#include "run/testing/fakes.h"

namespace penstock::nids {
namespace {

using penstock::testing::Bytes;
using penstock::testing::fragments_of;
using penstock::testing::packet;
using run::testing::FakeChain;

constexpr const char* kRule = R"(alert udp any any -> any any (content:"DATAGRAMATTACK"; sid:1;))";

class Copies : public testing::NidsFunction {
 protected:
  /// Whether the rule alerts on the datagram, whose fragments come as copies, each after one batch.
  bool alerts_after(const std::vector<Bytes>& batch_before, const Bytes& datagram) {
    FakeChain chain;
    chain.add_sink("out");
    chain.functions.push_back({"nids", make(kRule)});
    auto& nids = static_cast<Nids&>(*chain.functions.front().function);
    EXPECT_TRUE(nids.begin_run());
    chain.open();
    run::WorkerCounters counters(chain);
    run::CpuExecutor executor(chain, 0, counters, nullptr);
    std::vector<std::uint8_t> bytes(1 << 16);
    std::vector<PacketDescriptor> descriptors(batch_before.size() + 1);
    Batch batch(bytes, descriptors, {});
    for (const Bytes& fragment : fragments_of(datagram, {24, 48}, 7)) {
      for (const Bytes& frame : batch_before) EXPECT_TRUE(run::testing::append(batch, frame));
      EXPECT_TRUE(executor.submit(batch));
      EXPECT_EQ(executor.retire(), &batch);
      batch.reset(0);
      EXPECT_TRUE(run::testing::append(batch, fragment));
      executor.observe(batch.view(0));
      batch.reset(0);
    }
    executor.end();
    const std::vector<std::uint64_t> alerts = nids.alerts_by_rule();
    nids.end_run();
    return alerts == std::vector<std::uint64_t>{1};
  }
};

TEST_F(Copies, AreInspectedAfterAnyBatch) {
  const std::string text = "DATAGRAMATTACK, and a text that is long enough for three fragments";
  const std::string segment(200, 'x');
  const std::vector<std::pair<std::string, std::vector<Bytes>>> batches = {
      {"nothing", {}},
      {"a segment of IPv4", {packet().eth().ipv4("10.0.0.9", "192.0.2.9").tcp(4000, 80).payload(segment).bytes()}},
      {"a segment of IPv6", {packet().eth().ipv6("fd00::9", "fd00::8").tcp(4000, 80).payload(segment).bytes()}},
      {"a datagram of IPv4", {packet().eth().ipv4("10.0.0.9", "192.0.2.9").udp(4000, 53).payload(segment).bytes()}},
      {"a frame that is not IP", {packet().eth().ether_type(0x88cc).payload(segment).bytes()}},
  };
  const std::vector<std::pair<std::string, Bytes>> datagrams = {
      {"IPv4", packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(4000, 53).payload(text).bytes()},
      {"IPv6", packet().eth().ipv6("fd00::1", "fd00::2").udp(4000, 53).payload(text).bytes()},
  };
  for (const auto& [before, batch] : batches) {
    for (const auto& [version, datagram] : datagrams) {
      EXPECT_TRUE(alerts_after(batch, datagram)) << version << " fragments after " << before;
    }
  }
}

}  // namespace
}  // namespace penstock::nids
