// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Chains whose functions have shares of the GPU, given or chosen by measurement: shares must not affect what happens to
// packets.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/way.h"
#include "property/conservation_check.h"

namespace penstock::on_gpu {
namespace {

constexpr const char* kState =
    "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 0 \n"
    "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
    "\tenc cbc(aes) 0x202122232425262728292a2b2c2d2e2f\n";
constexpr const char* kPolicy =
    "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 0 \n"
    "\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp reqid 1 mode tunnel\n";

class GpuShares : public property::Chains {
 protected:
  void SetUp() override {
    lengths_change_ = true;
    put("ids", "alert udp any any -> any any (content:\"needle\"; sid:1;)\n");
    put("state", kState);
    put("policy", kPolicy);
  }
  Json report_of(std::vector<std::string> settings) {
    return run("ports:\n  in: {generator: {packets: 20000, size: imix, flows: 64}}\n  out: {\"null\": {}}\n"
               "chain:\n  - nids: {rules: ids}\n  - ipsec: {state: state, policy: policy, state_dir: none}\n",
               settings)
        .report;
  }
};

TEST_F(GpuShares, ChangeNothingThatIsCounted) {
  const Json expected = report_of({"run.processor=cpu"});
  ASSERT_FALSE(expected.is_null());
  for (const char* shares : {"whole", "nids=1,ipsec=1", "nids=7", "nids=33,ipsec=13", "auto"}) {
    SCOPED_TRACE(shares);
    const Json report = report_of({"run.processor=gpu", std::string("run.gpu_shares=") + shares});
    ASSERT_FALSE(report.is_null());
    expect_all_on_device(report);
    // Including the sequence numbers of SAs: measuring must not use any.
    expect_the_same_counts(expected, report);
  }
}

TEST_F(GpuShares, AreChosenByTimesThatFallWithMoreMultiprocessors) {
  const Json report = report_of({"run.processor=gpu", "run.gpu_shares=auto"});
  ASSERT_FALSE(report.is_null());
  for (const Json& function : report["functions"]) {
    ASSERT_TRUE(function.contains("gpu_share")) << function["name"];
    const Json& times = function["gpu_share"]["measured"];
    ASSERT_EQ(times.size(), 4U);
    EXPECT_GT(times[0]["multiprocessors"], times[3]["multiprocessors"]);
    EXPECT_GT(times[0]["us"], 0);
    EXPECT_LT(times[0]["us"], times[3]["us"]) << function["name"] << " on all, and on an eighth";
  }
}

TEST_F(GpuShares, AreNoLargerThanTheGpu) {
  put("chain.yaml", "ports:\n  in: {generator: {packets: 1}}\n  out: {\"null\": {}}\nchain:\n  - nids: {rules: ids}\n");
  const auto loaded = config::load_chain(
      folder_ / "chain.yaml", {overrides_of({"run.processor=gpu", "run.gpu_shares=nids=1024"}), false, false});
  ASSERT_FALSE(loaded);
  int multiprocessors = 0;
  for (const gpu::Device& device : gpu::list_devices().devices) {
    if (device.supported && multiprocessors == 0) multiprocessors = device.multiprocessors;
  }
  EXPECT_NE(penstock::to_string(loaded.error()).find(fmt::format("a whole number in 1..{}", multiprocessors)),
            std::string::npos)
      << penstock::to_string(loaded.error());
}

}  // namespace
}  // namespace penstock::on_gpu
