// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/streams/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "experiments/conversations.h"
#include "experiments/measured_chain.h"
#include "experiments/streams/differences.h"
#include "experiments/streams/figures.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

constexpr std::array<unsigned, 7> kSizes{64, 128, 256, 512, 1024, 1280, 1522};  // as in the paper
constexpr std::array<unsigned, 2> kQuickSizes{64, 1522};
constexpr std::array<unsigned, 6> kStreams{1, 2, 3, 4, 6, 8};
constexpr unsigned kLargeSize = 1522;
constexpr unsigned kStreamsOfOneWorker = 4;   // the fastest for one worker, as the sweep over streams shows
constexpr unsigned kStreamsOfEachWorker = 3;  // of several
constexpr unsigned kRules = 147;              // as in the paper, for intrusion detection

struct Algorithm {
  const char* name;
  const char* keys;  // in the format of `ip xfrm state`
};
constexpr std::array<Algorithm, 3> kAlgorithms{{
    {"cbc_sha1",
     "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
     "\tenc cbc(aes) 0x202122232425262728292a2b2c2d2e2f\n"},
    {"ctr_sha1",
     "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
     "\tenc rfc3686(ctr(aes)) 0x202122232425262728292a2b2c2d2e2f30313233\n"},
    {"gcm", "\taead rfc4106(gcm(aes)) 0x202122232425262728292a2b2c2d2e2f30313233 128\n"},
}};

constexpr const char* kPolicy =
    "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
    "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n";

/// The points' `algorithm` for intrusion detection: our searches, and the paper's on either processor.
constexpr std::string_view kDetection = "rules_147";
constexpr std::string_view kAhoCorasick = "rules_147_aho_corasick";

/// Workers that keep one GPU busy. Whole frames cross in both directions.
unsigned workers_for(unsigned size) { return size < 512 ? 12 : size < 1024 ? 6 : 4; }

class StreamsTrial final : public Trial {
 public:
  explicit StreamsTrial(const Setting& setting) : setting_(setting), runner_(*setting.stop) {
    const std::string policy = yaml_text(runner_.workplace().put("policy.txt", kPolicy));
    for (const Algorithm& algorithm : kAlgorithms) {
      const std::string state = yaml_text(runner_.workplace().put(
          fmt::format("{}.txt", algorithm.name), fmt::format("src 192.0.2.1 dst 198.51.100.2\n"
                                                             "\tproto esp spi 0x00000100 reqid 1 mode tunnel\n"
                                                             "\treplay-window 32 \n{}",
                                                             algorithm.keys)));
      chains_[algorithm.name] = {fmt::format("[ipsec: {{state: {}, policy: {}, state_dir: none}}]", state, policy),
                                 fmt::format("[ipsec: {{state: {}, direction: in, state_dir: none}}]", state)};
    }
    // As in the paper, each packet is scanned on its own; only findings come back.
    payloads_ = runner_.workplace().put("pages.pcap", conversations_capture({.connections = 500, .responses = 16}));
    const std::string rules = yaml_text(runner_.workplace().put("nids.rules", detection_rules_text(kRules, true)));
    chains_[std::string(kDetection)] = {fmt::format("[nids: {{rules: [{}], tracking: packets}}]", rules), {}};
    chains_[std::string(kAhoCorasick)] = {
        fmt::format("[nids: {{rules: [{}], tracking: packets, matcher: aho_corasick, gpu_matcher: aho_corasick}}]",
                    rules),
        {}};
  }

  std::vector<Point> plan() override {
    // The paper compares the default stream with several for these.
    const std::array compared{std::string_view(kAlgorithms.front().name), kDetection, kAhoCorasick};
    for (const Algorithm& algorithm : kAlgorithms) add_sizes(algorithm.name, &algorithm == kAlgorithms.data());
    for (const std::string_view algorithm : {kDetection, kAhoCorasick}) add_sizes(algorithm, true);
    for (const std::string_view algorithm : compared) {
      for (const unsigned streams : kStreams) {
        if (!setting_.quick) add("streams", algorithm, kLargeSize, "streams", 1, streams);
      }
    }
    return std::move(points_);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    auto measured = measure_rate(point, limits);
    if (measured) return {};
    for (Error& error : measured.error()) error.message = describe(point) + ": " + error.message;
    return measured;
  }

 private:
  struct Functions {
    std::string out, in;
  };

  /// `compares`: the default stream with several, with one host thread for both.
  void add_sizes(std::string_view algorithm, bool compares) {
    for (const unsigned size : setting_.quick ? std::span<const unsigned>(kQuickSizes) : kSizes) {
      if (compares) {
        add("size", algorithm, size, "default_stream", 1, 1);
        add("size", algorithm, size, "streams", 1, kStreamsOfOneWorker);
      }
      add("size", algorithm, size, "workers", workers_for(size), kStreamsOfEachWorker);
      add("size", algorithm, size, "cpu", setting_.workers, 0);
    }
  }

  void add(const char* sweep, std::string_view algorithm, unsigned size, const char* mode, unsigned workers,
           unsigned streams) {
    const bool on_gpu = streams != 0;
    Point& point = points_.emplace_back();
    point.set("function", algorithm == kDetection || algorithm == kAhoCorasick ? "nids" : "ipsec")
        .set("sweep", sweep)
        .set("algorithm", algorithm)
        .set("size", size)
        .set("mode", mode);
    point.set("processor", on_gpu ? "gpu" : "cpu").set("workers", std::min(workers, setting_.workers));
    if (on_gpu) point.set("streams", streams);
  }

  MeasuredChain chain_of(const Point& point) const {
    const Functions& functions = chains_.at(point.text("algorithm"));
    MeasuredChain chain;
    chain.functions = functions.out;
    chain.undone_by = functions.in;
    if (point.text("function") == "nids") chain.payloads = payloads_;
    chain.size = point.text("size");
    chain.on_gpu = point.text("processor") == "gpu";
    chain.gpus = setting_.gpu_indices();
    chain.workers = static_cast<unsigned>(*point.number("workers"));
    chain.frames = point.text("function") == "nids" ? "planned" : "whole";
    if (const auto streams = point.number("streams")) chain.streams = static_cast<unsigned>(*streams);
    // One batch at a time: copy to the device, kernels, copy back.
    chain.transfer = point.text("mode") == "default_stream" ? "direct" : "streamed";
    return chain;
  }

  Result<void> measure_rate(Point& point, const Point& limits) {
    const MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    if (auto measured = runner_.measure(point, chain, limits, setting_); !measured) return measured;
    point.set("checked", true);
    if (*point.number("dropped") > 0) {
      return failure({{}, "packets were dropped", fmt::format("{} of all", *point.number("dropped")), "none"});
    }
    return {};
  }

  const Setting& setting_;
  ChainRunner runner_;
  std::map<std::string, Functions> chains_;  // by algorithm
  std::string payloads_;                     // capture with the payloads for intrusion detection
  std::vector<Point> points_;
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) { return std::make_unique<StreamsTrial>(setting); }

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"sweep", {"size"}}, {"size", {"64", "512", "1522"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& streams_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "streams",
      .summary = "IPsec and intrusion detection on a GPU, with one batch at a time and with several, and on CPU cores",
      .source = "Chaurasia et al., Network functions in virtualized GPU environment, §IV and §V.A, figure 2a",
      .repeats = 3,
      .duration = milliseconds{200},
      .quick_duration = milliseconds{100},
      .most_gpus = 1,
      .takes_rules = false,
      .takes_routes = false,
      .figures = &streams_figures,
      .differences = &streams_differences,
      .headlines = &headlines,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
