// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/offload/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "base/text_file.h"
#include "experiments/limits.h"
#include "experiments/measured_chain.h"
#include "experiments/offload/differences.h"
#include "experiments/offload/figures.h"
#include "experiments/offload/lookups.h"
#include "experiments/offload/rates.h"
#include "experiments/repeats.h"
#include "experiments/workload.h"
#include "nf/firewall/rule_reader.h"
#include "nf/router/devices.h"
#include "nf/router/route_reader.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kFullTable = 1'000'000;
constexpr std::size_t kBatchOfSizes = std::size_t{1} << 16;  // used where table sizes vary; the paper's heavy load
constexpr std::size_t kRulesOfBatches = 1024;                // used where batch sizes vary; the paper's largest set
constexpr unsigned kStreamsOfSizes = 4;

constexpr std::array kFrameSizes{"64", "512", "1518"};
constexpr unsigned kWorkersOfSmall = 12, kWorkersOfLarge = 4;  // that keep a GPU busy with frames, as in `chain`

struct Function {
  const char* name;
  const char* size_key;
  std::vector<const char*> engines;
  std::vector<Traffic> traffic;
};
const std::vector<Function>& functions() {
  static const std::vector<Function> kFunctions{
      {"router", "routes", {"dir24", "trie4", "trie1"}, {Traffic::spread, Traffic::bursts, Traffic::flood}},
      {"firewall",
       "rules",
       {"bitvector", "linear"},
       {Traffic::spread, Traffic::tcp, Traffic::balanced, Traffic::udp, Traffic::flood}}};
  return kFunctions;
}

std::vector<std::size_t> batches(bool quick) {
  std::vector<std::size_t> batches;
  for (unsigned bits = 8; bits <= 20; bits += quick ? 4 : 1) batches.push_back(std::size_t{1} << bits);
  return batches;
}

/// Shuffles the routes, so that the first n are a smaller table with the same length distribution.
Result<std::vector<router::Route4>> shuffled(Result<Read<router::RouteTable>> read, const std::string& file) {
  if (!read) return tl::unexpected(std::move(read.error()));
  std::vector<router::Route4> routes = std::move(read->value.v4);
  if (routes.empty()) return failure({{file, 0, 0}, "no IPv4 routes", "", "at least one"});
  std::mt19937_64 random(4);
  for (std::size_t i = routes.size(); i > 1; --i) std::swap(routes[i - 1], routes[random() % i]);
  return routes;
}

Result<std::vector<router::Route4>> read_table(const std::string& file) {
  router::Devices devices;
  return shuffled(router::read_routes(std::vector<std::string>{file}, devices), input_name(file));
}

Result<std::vector<router::Route4>> make_table() {
  router::Devices devices;
  const std::string name = "synthetic routes";
  return shuffled(router::parse_routes(routes_text(kFullTable), name, devices), name);
}

/// As `ip route` prints them; the generator's flows go to them, too.
std::string text_of(std::span<const router::Route4> routes) {
  std::string text;
  for (const router::Route4& route : routes)
    fmt::format_to(std::back_inserter(text), "{} via 192.0.2.1 dev wan\n", to_string(route.prefix));
  return text;
}

/// By its name; spread if there is none.
Traffic traffic_of(std::string_view name) {
  for (const Function& function : functions()) {
    for (const Traffic traffic : function.traffic) {
      if (name_of(traffic) == name) return traffic;
    }
  }
  return Traffic::spread;
}

Result<classify::Ruleset> read_ruleset(const std::string& text, const std::string& file) {
  auto read = firewall::read_rules(text, file, {});
  if (!read) return tl::unexpected(std::move(read.error()));
  return std::move(read->value);
}

class Offload final : public Trial {
 public:
  explicit Offload(const Setting& setting) : setting_(setting), runner_(*setting.stop) {}

  /// Reads the user's files.
  Result<void> read() {
    if (!setting_.routes.empty()) {
      auto routes = read_table(setting_.routes);
      if (!routes) return tl::unexpected(std::move(routes.error()));
      routes_ = std::move(*routes);
    }
    if (setting_.rules.empty()) return {};
    auto text = read_lines(setting_.rules);
    if (!text) return tl::unexpected(text.error());
    auto rules = read_ruleset(*text, input_name(setting_.rules));
    if (!rules) return tl::unexpected(std::move(rules.error()));
    rules_ = std::move(*rules);
    rules_text_ = std::move(*text);
    return {};
  }

  std::vector<Point> plan() override {
    for (const Function& function : functions()) {
      const std::vector<std::size_t> sizes = sizes_of(function);
      const auto of_batches = setting_.rules.empty() && &function == &functions()[1] ? kRulesOfBatches : sizes.back();
      for (const char* engine : function.engines) {
        for (const std::size_t batch : batches(setting_.quick)) {
          const std::vector<unsigned> streams = setting_.quick ? std::vector{1U, 4U} : std::vector{1U, 2U, 4U};
          add({function, "batch", engine, of_batches, batch}, streams);
        }
      }
      for (const std::size_t size : sizes) {
        for (const char* engine : function.engines) {
          add({function, function.size_key, engine, size, kBatchOfSizes}, {kStreamsOfSizes});
        }
      }
      for (const char* engine : function.engines) {
        for (const Traffic traffic : function.traffic)
          add({function, "traffic", engine, of_batches, kBatchOfSizes, traffic}, {kStreamsOfSizes});
      }
      add_frames(function, of_batches);
    }
    return std::move(points_);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    if (point.text("sweep") == "frames") return measure_frames(point, limits);
    if (auto ready = prepare(point); !ready) return ready;
    const Timing timing{setting_.repeats, setting_.duration, setting_.stop};
    const auto batch = static_cast<std::size_t>(*point.number("batch"));
    const bool on_gpu = point.text("processor") == "gpu";
    auto rates = !on_gpu
                     ? measure_on_cores(*work_, *engine_, static_cast<unsigned>(*point.number("cores")), batch, timing)
                 : point.text("measured") == "kernel"
                     ? device_->kernel(table_, batch, timing)
                     : device_->end_to_end(table_, batch, static_cast<unsigned>(*point.number("streams")), timing);
    if (!rates) {
      Errors errors = std::move(rates.error());
      for (Error& error : errors) error.place.file = describe(point);
      return failure(std::move(errors));
    }
    set_repeats(point, "mpps", divided(std::move(*rates), 1e6));
    point.set("table_bytes", engine_->memory_bytes());
    if (on_gpu) {
      const auto all = static_cast<double>(setting_.gpus.front().memory_bytes);
      point.set("memory_percent", 100 * static_cast<double>(engine_->memory_bytes()) / all);
    }
    if (point.text("measured") == "end_to_end") add_limit(point, limits);
    return {};
  }

 private:
  struct Axes {
    const Function& function;
    const char* sweep;
    const char* engine;
    std::size_t size;
    std::size_t batch;
    std::optional<Traffic> traffic{};  // empty: spread
  };

  std::vector<std::size_t> sizes_of(const Function& function) const {
    const bool is_router = &function == &functions().front();
    // Part of a user's rule set is not a meaningful rule set, so there is only its own size.
    if (!is_router && !setting_.rules.empty()) return {rules_.rules.size()};
    std::vector<std::size_t> sizes;
    if (is_router) {
      const std::size_t all = setting_.routes.empty() ? kFullTable : routes_.size();
      for (std::size_t size = 1000; size < all; size *= setting_.quick ? 64 : 4) sizes.push_back(size);
      sizes.push_back(all);
    } else {
      for (std::size_t size = 32; size <= 8192; size *= setting_.quick ? 16 : 2) sizes.push_back(size);
    }
    return sizes;
  }

  void add(const Axes& axes, const std::vector<unsigned>& streams) {
    const auto point_on = [&](const char* processor) {
      Point point;
      point.set("function", axes.function.name)
          .set("processor", processor)
          .set("engine", axes.engine)
          .set("sweep", axes.sweep)
          .set(axes.function.size_key, axes.size)
          .set("batch", axes.batch);
      if (axes.traffic) point.set("traffic", name_of(*axes.traffic));
      return point;
    };
    points_.push_back(point_on("cpu").set("cores", 1));
    if (setting_.workers > 1) points_.push_back(point_on("cpu").set("cores", setting_.workers));
    for (const unsigned count : streams) {
      points_.push_back(point_on("gpu").set("measured", "end_to_end").set("streams", count));
    }
    points_.push_back(point_on("gpu").set("measured", "kernel"));
  }

  /// The function as a chain of its own: whole frames cross, or what the transfer plan names.
  void add_frames(const Function& function, std::size_t size) {
    for (const char* frame_size : kFrameSizes) {
      const auto point_on = [&](const char* processor, const char* frames, unsigned workers) {
        Point point;
        point.set("function", function.name)
            .set("processor", processor)
            .set("engine", function.engines.front())
            .set("sweep", "frames")
            .set(function.size_key, size)
            .set("size", frame_size)
            .set("frames", frames)
            .set("workers", std::min(workers, setting_.workers));
        points_.push_back(std::move(point));
      };
      point_on("cpu", "whole", setting_.workers);
      point_on("gpu", "whole", frame_size == kFrameSizes.front() ? kWorkersOfSmall : kWorkersOfLarge);
      point_on("gpu", "planned", kWorkersOfSmall);
    }
  }

  Result<void> measure_frames(Point& point, const Point& limits) {
    auto chain = chain_of(point);
    if (!chain) return tl::unexpected(std::move(chain.error()));
    if (auto checked = runner_.check(*chain); !checked) return with_point(std::move(checked), point);
    return with_point(runner_.measure(point, *chain, limits, setting_), point);
  }

  Result<MeasuredChain> chain_of(const Point& point) {
    if (auto ready = make_routes(); !ready) return tl::unexpected(std::move(ready.error()));
    const Workplace& place = runner_.workplace();
    const bool routes = point.text("function") == "router";
    const auto count = static_cast<std::size_t>(*point.number(routes ? "routes" : "rules"));
    MeasuredChain chain;
    chain.destinations = place.put("routes.txt", text_of(std::span(routes_)));
    chain.functions =
        routes ? fmt::format("[router: {{routes: {}}}]", yaml_text(chain.destinations))
               : fmt::format("[firewall: {{rules: {}}}]",
                             yaml_text(place.put("rules.txt", rules_text_.empty() ? rules_text(count) : rules_text_)));
    chain.size = point.text("size");
    chain.frames = point.text("frames");
    chain.on_gpu = point.text("processor") == "gpu";
    chain.gpus = setting_.gpu_indices();
    chain.workers = static_cast<unsigned>(*point.number("workers"));
    return chain;
  }

  /// Prepares the work, the engine and, for a point on the GPU, their copies there. Keeps those of the previous point
  /// if they are the same.
  Result<void> prepare(const Point& point) {
    const std::string function = point.text("function");
    const std::string size =
        fmt::format("{} {} {}", function, point.text(function == "router" ? "routes" : "rules"), point.text("traffic"));
    const std::string engine = point.text("engine");
    if (size != work_name_) {
      forget_engine();
      device_.reset();
      auto work = make_work(point);
      if (!work) return tl::unexpected(std::move(work.error()));
      work_ = std::move(*work);
      work_name_ = size;
    }
    if (engine != engine_name_) {
      forget_engine();
      auto made = work_->engine(engine);
      if (!made) return tl::unexpected(std::move(made.error()));
      engine_ = std::move(*made);
      engine_name_ = engine;
    }
    if (point.text("processor") != "gpu") return {};
    if (device_ == nullptr) device_ = std::make_unique<DeviceRates>(setting_.gpus.front().index, *work_);
    if (!table_is_there_) table_ = engine_->to_device();
    table_is_there_ = true;
    return {};
  }

  void forget_engine() {
    table_ = {};
    table_is_there_ = false;
    engine_.reset();
    engine_name_.clear();
  }

  Result<void> make_routes() {
    if (!routes_.empty()) return {};
    auto routes = make_table();
    if (!routes) return tl::unexpected(std::move(routes.error()));
    routes_ = std::move(*routes);
    return {};
  }

  Result<std::unique_ptr<LookupWork>> make_work(const Point& point) {
    const Traffic traffic = traffic_of(point.text("traffic"));
    if (point.text("function") == "router") {
      if (auto ready = make_routes(); !ready) return tl::unexpected(std::move(ready.error()));
      return make_routing(std::span(routes_).first(static_cast<std::size_t>(*point.number("routes"))), traffic);
    }
    if (!setting_.rules.empty()) return make_firewall(rules_, traffic);
    auto rules = read_ruleset(rules_text(static_cast<std::size_t>(*point.number("rules"))), "synthetic rules");
    if (!rules) return tl::unexpected(std::move(rules.error()));
    return make_firewall(std::move(*rules), traffic);
  }

  void add_limit(Point& point, const Point& limits) const {
    constexpr double kValueBytes = sizeof(std::uint32_t);
    point.set("bytes_up", work_->key_bytes()).set("bytes_down", kValueBytes);
    const auto limit = pcie_limit_mpps(limits, static_cast<double>(work_->key_bytes()), kValueBytes);
    if (!limit) return;
    point.set("limit_mpps", *limit);
    set_repeats(point, "of_limit", divided(repeats_of(point, "mpps"), *limit));
  }

  const Setting& setting_;
  std::vector<router::Route4> routes_;  // the user's, or generated when first needed
  classify::Ruleset rules_;             // the user's
  std::string rules_text_;
  ChainRunner runner_;
  std::vector<Point> points_;

  std::string work_name_, engine_name_;
  std::unique_ptr<LookupWork> work_;
  std::unique_ptr<LookupEngine> engine_;
  std::unique_ptr<DeviceRates> device_;
  DeviceTable table_;
  bool table_is_there_ = false;
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  auto trial = std::make_unique<Offload>(setting);
  if (const auto read = trial->read(); !read) return tl::unexpected(read.error());
  return trial;
}

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"engine", {"dir24"}}, {"sweep", {"batch"}}, {"batch", {"65536", "1048576"}}},
      {{"engine", {"bitvector"}}, {"sweep", {"batch"}}, {"batch", {"65536", "1048576"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& offload_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "offload",
      .summary = "routing look-ups and firewall classification on one core, all cores and a GPU",
      .source =
          "Alonistioti, Network Functions Evaluation of Hardware Accelerated NFV Platform in View of 5G "
          "Requirements, §III, figures 3 to 6",
      .repeats = 3,
      .duration = milliseconds{100},
      .quick_duration = milliseconds{30},
      .most_gpus = 1,
      .takes_rules = true,
      .takes_routes = true,
      .figures = &offload_figures,
      .differences = &offload_differences,
      .headlines = &headlines,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
