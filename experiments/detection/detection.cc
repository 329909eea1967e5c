// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/detection/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/text_file.h"
#include "experiments/conversations.h"
#include "experiments/detection/differences.h"
#include "experiments/detection/figures.h"
#include "experiments/detection/pattern_rates.h"
#include "experiments/measured_chain.h"
#include "experiments/repeats.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/rules/rule_reader.h"

namespace penstock::experiments {
namespace {

constexpr std::array<unsigned, 5> kRules{147, 500, 2'000, 20'000, 30'000};
constexpr std::array<unsigned, 2> kQuickRules{147, 2'000};
constexpr std::array<const char*, 7> kSizes{"64", "128", "256", "512", "1024", "1518", "imix"};
constexpr std::array<const char*, 2> kQuickSizes{"64", "1518"};
constexpr std::array<unsigned, 3> kWorkers{4, 8, 16};
constexpr unsigned kFewRules = 147;  // as in the paper
constexpr unsigned kStreamsOfAWorker = 3;
constexpr unsigned kHeaderBytes = 42;  // of the generator's packets
constexpr unsigned kFrameCheckBytes = 4;
constexpr const char* kLargeSize = "1518";

/// Workers that keep one GPU busy. Whole frames cross, but only to the device.
unsigned workers_for(const std::string& size) {
  return size == "64" || size == "128" || size == "imix" ? 16 : size == "256" || size == "512" ? 12 : 6;
}

class DetectionTrial final : public Trial {
 public:
  explicit DetectionTrial(const Setting& setting) : setting_(setting), runner_(*setting.stop) {
    conversations_ = runner_.workplace().put(
        "connections.pcap", conversations_capture({.connections = setting.quick ? 500U : 8'000U, .responses = 16}));
  }

  /// Reads the user's rules, some of which must be usable.
  Result<void> take_rules() {
    if (setting_.rules.empty()) return {};
    auto text = read_lines(setting_.rules);
    if (!text) return tl::unexpected(std::move(text.error()));
    auto read = nids::read_rules_text(*text, input_name(setting_.rules));
    if (!read) return tl::unexpected(std::move(read.error()));
    if (read->rules.empty()) {
      return failure({{input_name(setting_.rules), 0, 0}, "no usable rules", "", "Suricata or Snort rules"});
    }
    own_rules_ = static_cast<unsigned>(read->rules.size());
    rules_[own_rules_] = {runner_.workplace().put("own.rules", *text), {}};
    return {};
  }

  std::vector<Point> plan() override {
    const bool quick = setting_.quick;
    const auto defaults = quick ? std::span<const unsigned>(kQuickRules) : std::span<const unsigned>(kRules);
    std::vector<unsigned> counts(defaults.begin(), defaults.end());
    if (own_rules_ != 0) counts = {own_rules_};
    for (const unsigned rules : counts) {
      add("rules", rules, kLargeSize, "gpu", workers_for(kLargeSize));
      add("rules", rules, kLargeSize, "cpu", setting_.workers);
      add("rules", rules, kLargeSize, "hyperscan", setting_.workers);
    }
    const unsigned few = own_rules_ != 0 ? own_rules_ : kFewRules;
    for (const char* const size : quick ? std::span<const char* const>(kQuickSizes) : kSizes) {
      add("size", few, size, "gpu", workers_for(size));
      add("size", few, size, "cpu", setting_.workers);
    }
    for (const unsigned workers : kWorkers) {
      if (workers > setting_.workers) continue;
      add("connections", few, kLargeSize, "gpu", workers);
      add("connections", few, kLargeSize, "cpu", workers);
    }
    return std::move(points_);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    auto measured = point.text("mode") == "hyperscan" ? measure_library(point) : measure_chain(point, limits);
    if (measured) return {};
    for (Error& error : measured.error()) error.message = describe(point) + ": " + error.message;
    return measured;
  }

 private:
  struct Rules {
    std::string packets, streams;  // files: rules that inspect packets only, and rules that inspect streams too
  };

  void add(const char* sweep, unsigned rules, const char* size, const char* mode, unsigned workers) {
    Point& point = points_.emplace_back();
    const bool on_gpu = std::string_view(mode) == "gpu";
    point.set("sweep", sweep).set("rules", rules).set("size", size).set("mode", mode);
    point.set("processor", on_gpu ? "gpu" : "cpu").set("workers", std::min(workers, setting_.workers));
  }

  const std::string& rules_file(unsigned count, bool streams) {
    Rules& rules = rules_[count];
    std::string& file = count == own_rules_ ? rules.packets : streams ? rules.streams : rules.packets;
    if (file.empty()) {
      file = runner_.workplace().put(fmt::format("{}{}.rules", streams ? "streams" : "packets", count),
                                     detection_rules_text(count, !streams));
    }
    return file;
  }

  Result<void> measure_chain(Point& point, const Point& limits) {
    const auto count = static_cast<unsigned>(*point.number("rules"));
    const bool connections = point.text("sweep") == "connections";
    MeasuredChain chain;
    chain.functions = fmt::format("[nids: {{rules: [{}], tracking: {}}}]", yaml_text(rules_file(count, connections)),
                                  connections ? "streams" : "packets");
    if (connections) {
      chain.capture = conversations_;
    } else {
      chain.payloads = conversations_;
    }
    chain.size = point.text("size");
    chain.on_gpu = point.text("processor") == "gpu";
    chain.gpus = setting_.gpu_indices();
    chain.workers = static_cast<unsigned>(*point.number("workers"));
    chain.streams = kStreamsOfAWorker;
    chain.transfer = "streamed";
    return runner_.measure(point, chain, limits, setting_);
  }

  Result<void> measure_library(Point& point) {
    nids::RuleFiles files;
    files.rules = {rules_file(static_cast<unsigned>(*point.number("rules")), false)};
    auto read = nids::read_rules(files);
    if (!read) return tl::unexpected(std::move(read.error()));
    auto detection = nids::Detection::compile(std::move(*read), {});
    if (!detection) return tl::unexpected(std::move(detection.error()));
    if ((*detection)->literals().empty()) return failure({{}, "no rule has a content", "", ""});
    if (text_.empty()) text_ = conversations_capture({.connections = 200, .responses = 16});
    const unsigned block = static_cast<unsigned>(std::stoul(kLargeSize)) - kHeaderBytes - kFrameCheckBytes;
    const auto rates = measure_hyperscan(
        (*detection)->literals(), {reinterpret_cast<const std::uint8_t*>(text_.data()), text_.size()}, block,
        static_cast<unsigned>(*point.number("workers")), {setting_.repeats, setting_.duration, setting_.stop});
    if (!rates) return tl::unexpected(rates.error());
    constexpr double kBytesOfGigabit = 1e9 / 8;
    set_repeats(point, "gbps", divided(*rates, kBytesOfGigabit));
    return {};
  }

  const Setting& setting_;
  ChainRunner runner_;
  std::string conversations_;  // capture
  std::string text_;
  unsigned own_rules_ = 0;           // number of the user's rules; 0: none given
  std::map<unsigned, Rules> rules_;  // by number of rules
  std::vector<Point> points_;
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  auto trial = std::make_unique<DetectionTrial>(setting);
  if (auto taken = trial->take_rules(); !taken) return tl::unexpected(std::move(taken.error()));
  return trial;
}

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"sweep", {"rules"}}, {"rules", {"147", "20000"}}},
      {{"sweep", {"size"}}, {"size", {"512", "1024", "1518"}}},
      {{"sweep", {"connections"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& detection_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "detection",
      .summary =
          "intrusion detection by number of rules and frame size, on a GPU, on CPU cores, and with Hyperscan alone",
      .source =
          "no figure of a paper; by rules and sizes, as Alonistioti's figures are for other functions; 147 rules: "
          "Chaurasia et al., §IV",
      .repeats = 3,
      .duration = milliseconds{200},
      .quick_duration = milliseconds{100},
      .most_gpus = 1,
      .takes_rules = true,
      .takes_routes = false,
      .figures = &detection_figures,
      .differences = &detection_differences,
      .headlines = &headlines,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
