// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/filter.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "experiments/filter/core_rates_so_far.h"
#include "experiments/filter/cpu_filters.h"
#include "experiments/filter/device_filters.h"
#include "experiments/filter/device_passes.h"
#include "experiments/filter/differences.h"
#include "experiments/filter/figures.h"
#include "experiments/filter/many_filters.h"
#include "experiments/filter/plan.h"
#include "experiments/filter/random_packets.h"
#include "experiments/filter/template_rules.h"
#include "experiments/filter/thinned.h"
#include "experiments/limits.h"
#include "experiments/offload/rates.h"
#include "experiments/repeats.h"
#include "experiments/workload.h"
#include "gpu/cuda_error.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::experiments {
namespace {

using Rates = Result<std::vector<double>>;

std::size_t whole(const Point& point, const char* key, std::size_t otherwise) {
  const auto value = point.number(key);
  return value ? static_cast<std::size_t>(*value) : otherwise;
}

Deciding deciding_of(const Point& point) { return point.text("match") == "first" ? Deciding::first : Deciding::last; }

std::string reason_of(const Errors& errors) {
  if (errors.empty()) return "";
  const Error& error = errors.front();
  return error.found.empty() ? error.message : error.message + ": " + error.found;
}

Result<classify::Ruleset> classbench_rules(std::size_t count) {
  auto read = firewall::read_rules(rules_text(count), "synthetic rules", {});
  if (!read) return tl::unexpected(std::move(read.error()));
  return std::move(read->value);
}

/// Points on keys: the paper's.
class KeyPoints {
 public:
  KeyPoints(const Setting& setting, const CoreRatesSoFar& cores) : setting_(setting), cores_(cores) {}

  Result<void> measure(Point& point, const Point& limits) {
    prepare_rules(point);
    auto rates = point.text("processor") == "cpu" ? on_cores(point) : on_gpu(point);
    if (!rates) return tl::unexpected(std::move(rates.error()));
    if (rates->empty()) return {};  // refused
    const Repeats mpps = divided(std::move(*rates), 1e6);
    set_repeats(point, "mpps", mpps);
    if (point.text("processor") != "cpu") compare(point, mpps, limits);
    return {};
  }

 private:
  [[nodiscard]] Timing timing() const { return {setting_.repeats, setting_.duration, setting_.stop}; }

  /// Makes the rules, and forgets what was made from others.
  void prepare_rules(const Point& point) {
    const std::pair name(point.text("reading"), whole(point, "rules", kTemplateRules));
    if (!rules_.empty() && name == rules_name_) return;
    rules_ = template_rules(reading_of(name.first), name.second);
    rules_name_ = name;
    cpu_keys_.clear();
    device_hits_.reset();
    expected_.clear();
    cpu_filters_.clear();
    filters_.forget();
  }

  /// The number of the right rule for every kCheckedStep-th of `keys`.
  const std::vector<std::uint32_t>& expected(std::span<const TupleKey> keys, Deciding deciding, unsigned hits) {
    std::vector<std::uint32_t>& numbers = expected_[{keys.size(), deciding, hits}];
    if (!numbers.empty()) return numbers;
    for (std::size_t i = 0; i < keys.size(); i += kCheckedStep) {
      numbers.push_back(
          deciding_rule(rules_.data(), static_cast<std::uint32_t>(rules_.size()), deciding, words_of(keys[i])));
    }
    return numbers;
  }

  Rates on_cores(const Point& point) {
    if (cpu_keys_.empty()) {
      cpu_keys_.resize(kCpuPackets);
      draw_packets(cpu_keys_, rules_, 0, setting_.workers);
    }
    const Deciding deciding = deciding_of(point);
    const std::string engine = point.text("engine");
    std::unique_ptr<CpuFilter>& filter = cpu_filters_[{engine, deciding}];
    if (filter == nullptr) {
      if (engine == "scalar") {
        filter = make_scalar_filter(rules_, deciding);
      } else if (engine == "vector") {
        filter = make_vector_filter(rules_, deciding);
      } else {
        auto made = make_engine_filter(engine, rules_, deciding);
        if (!made) return tl::unexpected(std::move(made.error()));
        filter = std::move(*made);
      }
    }
    return filter_on_cores(*filter, cpu_keys_, expected(cpu_keys_, deciding, 0),
                           static_cast<unsigned>(whole(point, "cores", 1)), timing());
  }

  /// Empty if the device or the method refuses the point; `refused` then says why.
  Rates on_gpu(Point& point) {
    const auto refuse = [&](const std::string& reason) {
      point.set("refused", reason);
      return Rates(std::vector<double>());
    };
    const int device = setting_.gpus.front().index;
    if (passes_ == nullptr) passes_ = std::make_unique<DevicePasses>(device, packets_of(setting_.quick));
    prepare_packets(static_cast<unsigned>(whole(point, "hits", 0)));
    PassOptions options;
    options.texture = point.text("storage") == "texture";
    options.transfer = transfer_of(point.text("transfer"));
    options.result_bits = static_cast<unsigned>(whole(point, "result_bits", 16));
    options.chunk = whole(point, "chunk", 0);
    options.streams = static_cast<unsigned>(whole(point, "streams", 1));
    options.block = static_cast<unsigned>(whole(point, "block", options.block));
    options.share = static_cast<unsigned>(whole(point, "share", options.share));
    if (point.find("share") != nullptr) {
      const auto multiprocessors = passes_->multiprocessors(options.share);
      if (!multiprocessors) return refuse(reason_of(multiprocessors.error()));
      point.set("multiprocessors", *multiprocessors);
    }
    if (point.text("method") == "copies") return passes_->rates(nullptr, options, {}, timing());

    const Deciding deciding = deciding_of(point);
    const auto filter = filters_.get({.rules = rules_,
                                      .reading = reading_of(point.text("reading")),
                                      .deciding = deciding,
                                      .method = point.text("method"),
                                      .unroll = static_cast<unsigned>(whole(point, "unroll", kUnrolled))});
    if (!filter) return refuse(reason_of(filter.error()));
    if (const std::size_t bytes = filters_.table_bytes(); bytes > 0) {
      point.set("table_bytes", bytes);
      if (point.text("rules_in") == "constant") point.set("constant_bytes", std::min(bytes, kConstantBytes));
    }
    try {
      auto rates = passes_->rates(*filter, options, expected(passes_->keys(), deciding, *device_hits_), timing());
      if (!rates || options.transfer != Transfer::streamed) return rates;
      set_copies(point, options);
      return rates;
    } catch (const gpu::CudaError& error) {
      // A device may refuse to read host memory through textures, or to launch in a part of it; all else ends the run.
      const bool may_refuse = (options.texture && options.transfer == Transfer::zero_copy) || options.share != 100;
      if (!may_refuse) throw;
      return refuse(error.what());
    }
  }

  void prepare_packets(unsigned hits) {
    if (device_hits_ == hits) return;
    draw_packets(passes_->keys(), rules_, hits, setting_.workers);
    passes_->send_keys();
    device_hits_ = hits;
  }

  /// What the same copies take without a filter, measured once.
  void set_copies(Point& point, PassOptions options) {
    options.texture = false;
    options.share = 100;
    Repeats& copies = copies_[{options.chunk, options.streams, options.result_bits}];
    if (copies.empty()) {
      const auto rates = passes_->rates(nullptr, options, {}, timing());
      if (!rates) return;
      copies = divided(*rates, 1e6);
    }
    set_repeats(point, "copies_mpps", copies);
  }

  void compare(Point& point, const Repeats& mpps, const Point& limits) const {
    if (point.text("sweep") == "combinations") {
      if (const Repeats cores = cores_.one_core(point); !cores.empty())
        set_quotient(point, "times_one_core", mpps, cores);
      if (const Repeats cores = cores_.best(point); !cores.empty()) set_quotient(point, "times_all_cores", mpps, cores);
    }
    if (const Repeats copies = repeats_of(point, "copies_mpps"); !copies.empty()) {
      set_quotient(point, "of_copies", mpps, copies);
    }
    if (point.text("transfer") == "none") return;
    const double down = *point.number("result_bits") / 8;
    point.set("bytes_up", sizeof(TupleKey)).set("bytes_down", down);
    const auto limit = pcie_limit_mpps(limits, sizeof(TupleKey), down);
    if (!limit) return;
    point.set("limit_mpps", *limit);
    set_repeats(point, "of_limit", divided(mpps, *limit));
  }

  const Setting& setting_;
  const CoreRatesSoFar& cores_;
  std::vector<WordRule<kKeyWords>> rules_;
  std::pair<std::string, std::size_t> rules_name_;
  std::vector<TupleKey> cpu_keys_;
  std::map<std::tuple<std::size_t, Deciding, unsigned>, std::vector<std::uint32_t>> expected_;
  std::map<std::pair<std::string, Deciding>, std::unique_ptr<CpuFilter>> cpu_filters_;

  std::unique_ptr<DevicePasses> passes_;
  std::optional<unsigned> device_hits_;  // what the device's packets were drawn for
  DeviceFilters filters_;
  std::map<std::tuple<std::size_t, unsigned, unsigned>, Repeats> copies_;  // by chunk, streams and bits
};

/// Rules in ClassBench's format, with the keys, engines and measurements of the experiment `offload`.
class ClassbenchPoints {
 public:
  explicit ClassbenchPoints(const Setting& setting) : setting_(setting) {}

  Result<void> measure(Point& point, const Point& limits) {
    if (auto ready = prepare(point); !ready) return ready;
    if (engine_ == nullptr) {
      point.set("refused", refused_);
      return {};
    }
    const Timing timing{setting_.repeats, setting_.duration, setting_.stop};
    constexpr std::size_t kBatch = std::size_t{1} << 19;
    constexpr unsigned kClassbenchStreams = 4;
    const bool on_gpu = point.text("processor") == "gpu";
    if (on_gpu && device_ == nullptr) device_ = std::make_unique<DeviceRates>(setting_.gpus.front().index, *work_);
    if (on_gpu && !table_is_there_) table_ = engine_->to_device();
    table_is_there_ |= on_gpu;
    auto rates = !on_gpu ? measure_on_cores(*work_, *engine_, static_cast<unsigned>(*point.number("cores")),
                                            std::size_t{1} << 16, timing)
                 : point.text("measured") == "kernel" ? device_->kernel(table_, kBatch, timing)
                                                      : device_->end_to_end(table_, kBatch, kClassbenchStreams, timing);
    if (!rates) return tl::unexpected(std::move(rates.error()));
    const Repeats mpps = divided(std::move(*rates), 1e6);
    set_repeats(point, "mpps", mpps);
    point.set("table_bytes", engine_->memory_bytes());
    if (point.text("measured") == "end_to_end") {
      constexpr double kValueBytes = sizeof(std::uint32_t);
      const auto limit = pcie_limit_mpps(limits, sizeof(TupleKey), kValueBytes);
      point.set("bytes_up", sizeof(TupleKey)).set("bytes_down", kValueBytes);
      if (!limit) return {};
      point.set("limit_mpps", *limit);
      set_repeats(point, "of_limit", divided(mpps, *limit));
    }
    return {};
  }

 private:
  Result<void> prepare(const Point& point) {
    const auto rules = static_cast<std::size_t>(*point.number("rules"));
    if (rules != rules_) {
      forget_engine();
      device_.reset();
      auto read = classbench_rules(rules);
      if (!read) return tl::unexpected(std::move(read.error()));
      auto work = make_firewall(std::move(*read));
      if (!work) return tl::unexpected(std::move(work.error()));
      work_ = std::move(*work);
      rules_ = rules;
    }
    const std::string engine = point.text("engine");
    if (engine == engine_name_) return {};
    forget_engine();
    engine_name_ = engine;
    if (engine == "rfc" && rules > kMostForPatience) {
      const auto read = classbench_rules(rules);
      const auto built = classify::build_rfc(*read, {.steps = kFewSteps});
      if (!built) {
        refused_ = reason_of(built.error());
        return {};
      }
    }
    auto made = work_->engine(engine);
    if (made) {
      engine_ = std::move(*made);
    } else {
      refused_ = reason_of(made.error());
    }
    return {};
  }

  void forget_engine() {
    table_ = {};
    table_is_there_ = false;
    engine_.reset();
    engine_name_.clear();
  }

  // The builder may take minutes before it refuses: so large sets get fewer steps, of some 50 ns.
  static constexpr std::size_t kMostForPatience = 10'000;
  static constexpr std::uint64_t kFewSteps = std::uint64_t{1} << 27;

  const Setting& setting_;
  std::size_t rules_ = 0;
  std::string engine_name_, refused_;
  std::unique_ptr<LookupWork> work_;
  std::unique_ptr<LookupEngine> engine_;
  std::unique_ptr<DeviceRates> device_;
  DeviceTable table_;
  bool table_is_there_ = false;
};

class FilterTrial final : public Trial {
 public:
  explicit FilterTrial(const Setting& setting) : setting_(setting), thinned_(setting) {}

  std::vector<Point> plan() override {
    std::vector<Point> points = plan_filters(setting_.quick, setting_.workers);
    thinned_.plan(points);
    return points;
  }

  Result<void> measure(Point& point, const Point& limits) override {
    auto measured = measure_part(point, limits);
    cores_.note(point);
    if (measured) return {};
    for (Error& error : measured.error()) error.place.file = describe(point);
    return measured;
  }

  void remember(const Point& point) override { cores_.note(point); }

 private:
  Result<void> measure_part(Point& point, const Point& limits) {
    const std::string sweep = point.text("sweep");
    if (sweep == "classbench") {
      keys_.reset();
      if (classbench_ == nullptr) classbench_ = std::make_unique<ClassbenchPoints>(setting_);
      return classbench_->measure(point, limits);
    }
    if (sweep == "filters") {
      keys_.reset();
      classbench_.reset();
      if (filters_ == nullptr) filters_ = std::make_unique<ManyFilters>(setting_, cores_);
      return filters_->measure(point, limits);
    }
    if (sweep == "thinned") {
      keys_.reset();
      classbench_.reset();
      filters_.reset();
      return thinned_.measure(point, limits);
    }
    if (keys_ == nullptr) keys_ = std::make_unique<KeyPoints>(setting_, cores_);
    return keys_->measure(point, limits);
  }

  const Setting& setting_;
  CoreRatesSoFar cores_;
  // Made when first needed; only one at a time, since each has gigabytes.
  std::unique_ptr<KeyPoints> keys_;
  std::unique_ptr<ClassbenchPoints> classbench_;
  std::unique_ptr<ManyFilters> filters_;
  Thinned thinned_;
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) { return std::make_unique<FilterTrial>(setting); }

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"sweep", {"combinations"}}, {"match", {"last"}}},
      {{"sweep", {"devices"}}},
      {{"sweep", {"filters"}}, {"filters", {"1", "1024"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& filter_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "filter",
      .summary = "linear matching, RFC and many BPF filters on one core, all cores and a GPU",
      .source = "Hung & Guo, Fast Parallel Network Packet Filter System based on CUDA, tables 2 to 4, figures 9 to 14",
      .repeats = 3,
      .duration = milliseconds{60},
      .quick_duration = milliseconds{20},
      .most_gpus = 1,
      .takes_rules = false,
      .takes_routes = false,
      .figures = &filter_figures,
      .differences = &filter_differences,
      .headlines = &headlines,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
