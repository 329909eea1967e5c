// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Traces and captures of a chain on a GPU: the paths are those of the CPU twins, and dropped frames are as they came
// into their function, though only the GPU has seen them so.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/way.h"
#include "property/conservation_check.h"
#include "run/taps.h"

namespace penstock::on_gpu {
namespace {

class TapsOfAChain : public property::Chains, public ::testing::WithParamInterface<Way> {
 protected:
  /// Half of the packets are dropped, after the router has changed them.
  [[nodiscard]] config::LoadedChain load(const std::string& packets, std::vector<std::string> settings) {
    put("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --sport 0:32767 -j DROP\nCOMMIT\n");
    put("routes", "default dev out\n198.18.0.0/16 dev out\n");
    put("chain.yaml",
        fmt::format("ports:\n  in: {{generator: {{size: 512, flows: 500{}}}}}\n  out: {{\"null\": {{}}}}\n"
                    "chain:\n  - router: {{routes: routes, ipv4: trie4}}\n  - firewall: {{rules: rules}}\n",
                    packets));
    config::LoadOptions options;
    options.overrides = overrides_of(settings);
    auto loaded = config::load_chain(folder_ / "chain.yaml", options);
    EXPECT_TRUE(loaded) << penstock::to_string(loaded.error());
    return std::move(*loaded);
  }

  /// The paths of the first packets, without what the processors need not have in common.
  [[nodiscard]] std::string paths_with(std::vector<std::string> settings) {
    // A trace follows at most 32 packets of a batch.
    settings.insert(settings.end(), {"run.workers=1", "run.batch.packets=32", "run.queue.bytes=8MiB"});
    config::LoadedChain loaded = load(", packets: 2000", std::move(settings));
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* const out = ::open_memstream(&text, &length);
    run::RunOptions options;
    options.trace_packets = 1000;
    options.trace_out = out;
    const auto result = run::run(loaded.chain, options, kNever);
    std::fclose(out);
    EXPECT_TRUE(result) << penstock::to_string(result.error());
    const std::string paths(text, length);
    std::free(text);
    return std::regex_replace(paths, std::regex(" \\(gpu\\)|  [0-9]+\\.[0-9]{9}"), "");
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, TapsOfAChain, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return test_name(way.param); });

TEST_P(TapsOfAChain, TracesTheSamePathsAsTheCpu) {
  const std::string on_gpu = paths_with(settings_of(GetParam()));
  EXPECT_NE(on_gpu.find("packet 1000 "), std::string::npos);
  EXPECT_NE(on_gpu.find("drop: denied"), std::string::npos);
  EXPECT_EQ(on_gpu, paths_with({"run.processor=cpu"}));
}

TEST_P(TapsOfAChain, CapturesDroppedFramesAsTheyCameIntoTheFunction) {
  auto settings = settings_of(GetParam());
  settings.insert(settings.end(), {"run.workers=2", "run.batch.packets=256", "run.queue.bytes=8MiB"});
  config::LoadedChain loaded = load(", rate: 100kpps", std::move(settings));
  auto running = run::start(loaded.chain, {}, kNever);
  ASSERT_TRUE(running) << penstock::to_string(running.error());
  struct Frame {
    unsigned ttl, source_port;
  };
  std::mutex mutex;
  std::vector<Frame> frames;
  const auto take = [&](const run::DroppedFrame& dropped) {
    const std::lock_guard lock(mutex);
    ASSERT_EQ(dropped.packet.length(), 508U);
    const std::uint8_t* const frame = dropped.packet.frame;
    frames.push_back({frame[22], frame[34] * 256U + frame[35]});
  };
  constexpr std::size_t kFrames = 500;
  ASSERT_TRUE((*running)->taps().capture.begin(1, std::nullopt, {kFrames, {}, take}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((*running)->taps().capture.wanted() != run::Capture::kNone && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  (*running)->stop();
  const run::RunResult result = (*running)->wait();
  property::expect_conserved(report::to_json(result.report));
  ASSERT_EQ(frames.size(), kFrames);
  for (const Frame& frame : frames) {
    EXPECT_EQ(frame.ttl, 63U) << "the router has decremented it";
    EXPECT_LE(frame.source_port, 32'767U);
  }
}

}  // namespace
}  // namespace penstock::on_gpu
