// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/make_report.h"

#include <nlohmann/json.hpp>

#include "gpu/memory.h"
#include "run/hand_over.h"

namespace penstock::run {
namespace {

using report::TrafficSum;

/// The counters of the workers, and of the receiver if there is one. `pick` selects what is added up.
class Sums {
 public:
  Sums(std::span<const std::unique_ptr<Worker>> workers, const Receiver* receiver) {
    for (const auto& worker : workers) all_.push_back(&worker->counters());
    if (receiver != nullptr) all_.push_back(&receiver->counters());
  }

  template <typename Pick>
  [[nodiscard]] TrafficSum traffic(Pick pick) const {
    TrafficSum sum;
    for (const WorkerCounters* const counters : all_) sum += pick(*counters);
    return sum;
  }
  template <typename Pick>
  [[nodiscard]] std::uint64_t count(Pick pick) const {
    std::uint64_t sum = 0;
    for (const WorkerCounters* const counters : all_) sum += pick(*counters).get();
    return sum;
  }
  [[nodiscard]] TrafficSum traffic(report::Traffic WorkerCounters::*of) const {
    return traffic([of](const WorkerCounters& c) -> const report::Traffic& { return c.*of; });
  }
  [[nodiscard]] std::uint64_t count(report::Counter WorkerCounters::*of) const {
    return count([of](const WorkerCounters& c) -> const report::Counter& { return c.*of; });
  }
  [[nodiscard]] std::uint64_t count(report::Counter DeviceCounters::*of) const {
    return count([of](const WorkerCounters& c) -> const report::Counter& { return c.device.*of; });
  }
  [[nodiscard]] std::chrono::nanoseconds time(report::Counter WorkerCounters::*of) const {
    return std::chrono::nanoseconds(count(of));
  }
  // Counters of one function.
  [[nodiscard]] TrafficSum traffic(std::size_t function, report::Traffic FunctionCounters::*of) const {
    return traffic([=](const WorkerCounters& c) -> const report::Traffic& { return c.functions[function].*of; });
  }
  [[nodiscard]] std::uint64_t count(std::size_t function, report::Counter FunctionCounters::*of) const {
    return count([=](const WorkerCounters& c) -> const report::Counter& { return c.functions[function].*of; });
  }

  [[nodiscard]] TrafficSum held(std::size_t function) const {
    TrafficSum sum;
    for (const WorkerCounters* const counters : all_) sum += counters->functions[function].held.get();
    return sum;
  }

 private:
  std::vector<const WorkerCounters*> all_;
};

report::FunctionReport function_report(const NamedFunction& named, std::size_t index, const Sums& sums) {
  report::FunctionReport report;
  report.name = named.name;
  report.description = named.function->description();
  report.in = sums.traffic(index, &FunctionCounters::in);
  report.forwarded = sums.traffic(index, &FunctionCounters::forwarded);
  report.consumed = sums.traffic(index, &FunctionCounters::consumed);
  report.held = sums.held(index);
  const auto reasons = named.function->traits().drop_reasons;
  for (std::size_t r = 0; r < reasons.size(); ++r) {
    const TrafficSum dropped =
        sums.traffic([=](const WorkerCounters& c) -> const report::Traffic& { return c.functions[index].dropped[r]; });
    report.drop_reasons.emplace_back(reasons[r], dropped.packets);
    report.dropped += dropped;
  }
  report.time = std::chrono::nanoseconds(sums.count(index, &FunctionCounters::time_ns));
  report.segments = sums.count(index, &FunctionCounters::segments);
  report.segment_time = std::chrono::nanoseconds(sums.count(index, &FunctionCounters::segment_time_ns));
  nlohmann::json own = nlohmann::json::object();
  named.function->report(own);
  if (!own.empty()) report.details = own;
  return report;
}

void add_share(const plan::GpuShares& shares, std::size_t index, report::FunctionReport& report) {
  report.multiprocessors = shares.of(index);
  if (index >= shares.functions.size()) return;
  for (const plan::MeasuredTime& time : shares.functions[index].times)
    report.share_times.push_back({time.multiprocessors, time.us});
}

report::PortReport port_report(const NamedPort& named, std::size_t index, const Sums& sums) {
  report::PortReport report;
  report.name = named.name;
  report.in = sums.traffic([=](const WorkerCounters& c) -> const report::Traffic& { return c.port_in[index]; });
  report.out = sums.traffic([=](const WorkerCounters& c) -> const report::Traffic& { return c.port_out[index]; });
  if (const auto load = named.port->offered()) report.offered = {load->packets, load->behind};
  if (const auto counts = named.port->fragments()) {
    report.fragments = {counts->packets, counts->waited, counts->not_followed, counts->ambiguous, counts->copied};
  }
  if (auto counts = named.port->interface_counts())
    report.interface = {std::move(counts->lost), std::move(counts->events)};
  return report;
}

double us(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

std::vector<std::pair<std::string, double>> quantiles_us(const report::LatencyHistogram& times) {
  constexpr std::pair<const char*, double> kQuantiles[] = {{"p1", 0.01},     {"p10", 0.1}, {"p25", 0.25}, {"p50", 0.5},
                                                           {"p75", 0.75},    {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99},
                                                           {"p99.9", 0.999}, {"max", 1.0}};
  std::vector<std::pair<std::string, double>> quantiles;
  for (const auto& [name, fraction] : kQuantiles) quantiles.emplace_back(name, us(times.quantile(fraction)));
  return quantiles;
}

std::unique_ptr<report::LatencyHistogram> merged(std::span<const std::unique_ptr<Worker>> workers,
                                                 report::LatencyHistogram WorkerCounters::*of) {
  auto all = std::make_unique<report::LatencyHistogram>();
  for (const auto& worker : workers) all->merge(worker->counters().*of);
  return all;
}

report::RunReport::LongTimes long_times(const report::LatencyHistogram& times) {
  constexpr std::uint64_t kLimitsUs[] = {100,  150,  200,  300,  400,  500,  600,    700,    800,    900,    1000,
                                         1200, 1500, 2000, 3000, 5000, 7000, 10'000, 20'000, 50'000, 100'000};
  report::RunReport::LongTimes longer;
  for (const std::uint64_t limit : kLimitsUs)
    longer.emplace_back(limit, times.count_above(std::chrono::microseconds{limit}));
  return longer;
}

report::TimeHistogram histogram(const report::LatencyHistogram& times) {
  report::TimeHistogram histogram{{}, times.count(), times.sum_ns() / 1e9};
  // Prometheus interpolates between limits.
  for (std::chrono::nanoseconds decade{1000}; decade <= std::chrono::seconds{1}; decade *= 10) {
    for (const int factor : {1, 2, 5}) {
      const std::chrono::nanoseconds limit = decade * factor;
      histogram.at_most.emplace_back(limit, histogram.count - times.count_above(limit));
    }
  }
  return histogram;
}

report::RunReport::Gaps gaps_of(std::span<const std::unique_ptr<Worker>> workers) {
  const auto all = merged(workers, &WorkerCounters::gaps);
  report::RunReport::Gaps gaps{quantiles_us(*all), long_times(*all), {}, histogram(*all)};
  for (const auto& worker : workers) gaps.longest_us.push_back(us(worker->counters().gaps.quantile(1)));
  return gaps;
}

TrafficSum sum_of(const std::deque<report::Traffic>& all) {
  TrafficSum sum;
  for (const report::Traffic& traffic : all) sum += traffic;
  return sum;
}

report::WorkerReport worker_report(const Worker& worker) {
  const WorkerCounters& counters = worker.counters();
  report::WorkerReport report;
  report.in += counters.in;
  report.forwarded += counters.forwarded;
  report.consumed += counters.consumed;
  for (const FunctionCounters& function : counters.functions) {
    report.dropped += sum_of(function.dropped);
    report.consumed += function.consumed;
    report.held += function.held.get();
  }
  for (const report::Traffic& dropped : counters.dropped_by_chain) report.dropped += dropped;
  report.batches = counters.batches.get();
  report.idle = std::chrono::nanoseconds(counters.idle_time_ns.get());
  report.queue = {counters.waiting_bytes.load(std::memory_order_relaxed), worker.ring_shape().waiting_bytes};
  return report;
}

}  // namespace

report::RunReport make_report(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers,
                              std::chrono::nanoseconds elapsed, const Receiver* receiver) {
  using C = WorkerCounters;
  const Sums sums(workers, receiver);
  const bool on_gpu = chain.settings.processor == function::Processor::gpu;
  report::RunReport report;
  report.processor = name(chain.settings.processor);
  report.workers = workers.size();
  for (const auto& worker : workers) report.by_worker.push_back(worker_report(*worker));
  report.elapsed = elapsed;
  report.in = sums.traffic(&C::in);
  report.forwarded = sums.traffic(&C::forwarded);
  report.consumed = sums.traffic(&C::consumed);
  report.generated = sums.traffic(&C::generated);
  report.generated_lost = sums.traffic(&C::generated_lost);
  if (hands_over(chain)) report.handed_over = sums.traffic(&C::handed_over);
  for (std::size_t i = 0; i < chain.functions.size(); ++i) {
    report::FunctionReport& function = report.functions.emplace_back(function_report(chain.functions[i], i, sums));
    if (on_gpu) add_share(chain.settings.gpu_shares, i, function);
    report.dropped += function.dropped;
    report.consumed += function.consumed;
    report.held += function.held;
  }
  for (std::size_t r = 0; r < kChainDropCount; ++r) {
    const TrafficSum dropped =
        sums.traffic([=](const C& c) -> const report::Traffic& { return c.dropped_by_chain[r]; });
    report.dropped_by_chain.emplace_back(kChainDropNames[r], dropped.packets);
    report.dropped += dropped;
  }
  for (std::size_t p = 0; p < chain.ports.size(); ++p) report.ports.push_back(port_report(chain.ports[p], p, sums));

  const std::uint64_t batches = sums.count(&C::batches);
  const auto fill = static_cast<double>(sums.count(&C::batch_fill_permille)) / 1000.0;
  report.batches = {batches,
                    sums.count(&C::closed_by_size),
                    sums.count(&C::closed_by_time),
                    sums.count(&C::closed_by_end),
                    sums.count(&C::closed_by_idleness),
                    batches == 0 ? 0.0 : fill / static_cast<double>(batches)};
  report.bytes_to_device = sums.count(&DeviceCounters::bytes_to_device);
  report.bytes_to_host = sums.count(&DeviceCounters::bytes_to_host);
  if (on_gpu) {
    report.gpu = {chain.settings.gpus,
                  std::string(plan::kShareChoiceNames[static_cast<std::size_t>(chain.settings.gpu_shares.choice)]),
                  sums.count(&DeviceCounters::segments),
                  sums.count(&DeviceCounters::punted),
                  sums.count(&DeviceCounters::failures),
                  sums.count(&DeviceCounters::lanes_lost),
                  0,
                  0};
    for (const int device : chain.settings.gpus) {
      const gpu::MemoryUse use = gpu::memory_use(device);
      report.gpu->memory_bytes += use.bytes;
      report.gpu->most_memory_bytes += use.most_bytes;
    }
  }
  report.cpu_time = sums.time(&C::cpu_time_ns);
  report.stack_time = sums.time(&C::stack_time_ns);
  report.send_time = sums.time(&C::send_time_ns);
  const auto latency = merged(workers, &C::latency);
  report.latency_us = quantiles_us(*latency);
  report.latency_us.emplace_back("mean", us(latency->mean()));
  report.long_latencies = long_times(*latency);
  report.latencies = histogram(*latency);
  report.gaps = gaps_of(workers);
  return report;
}

}  // namespace penstock::run
