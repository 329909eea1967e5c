// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/measured_chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "experiments/limits.h"
#include "experiments/repeats.h"
#include "experiments/transfers.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "port/capture_reader.h"
#include "run/run.h"

namespace penstock::experiments {
namespace {

constexpr unsigned kFlows = 10'000;
constexpr unsigned kCheckedPackets = 20'000;
constexpr double kFrameCheckBits = 32;

std::string run_section(const MeasuredChain& chain) {
  std::string text = fmt::format("run:\n  workers: {}\n  processor: {}\n", chain.workers, chain.on_gpu ? "gpu" : "cpu");
  if (!chain.latency.empty()) text += "  latency: " + chain.latency + "\n";
  if (!chain.on_gpu) return text;
  // The queue holds only a few batches: it is pinned, which takes time.
  text += fmt::format(
      "  queue: {{bytes: 32MiB}}\n  gpus: \"{}\"\n  frames: {}\n  sharing: {}\n  transfer: {}\n"
      "  launches: {}\n  finish: {}\n  streams: {}\n  gpu_shares: \"{}\"\n",
      fmt::join(chain.gpus, ","), chain.frames, chain.sharing, chain.transfer, chain.launches, chain.finish,
      chain.streams, chain.gpu_shares);
  if (!chain.rate.empty()) text += "  rate: " + chain.rate + "\n";
  std::vector<std::string> batch;
  if (!chain.batch_bytes.empty()) batch.push_back("bytes: " + chain.batch_bytes);
  if (chain.batch_packets > 0)
    batch.push_back(fmt::format("packets: {}, timeout: 10s, close: full", chain.batch_packets));
  if (!batch.empty()) text += fmt::format("  batch: {{{}}}\n", fmt::join(batch, ", "));
  return text;
}

std::string dmz(const MeasuredChain& chain) { return chain.to_dmz ? "  dmz: {'null': {}}\n" : ""; }

std::string memory(const std::string& capture, unsigned times) {
  return fmt::format("ports:\n  lan: {{memory: {{read: {}, loop: {}}}}}\n", yaml_text(capture), times);
}

std::string generator(const MeasuredChain& chain, const std::string& more) {
  if (!chain.capture.empty()) return memory(chain.capture, 0);
  std::string text = fmt::format("ports:\n  lan: {{generator: {{size: {}, transport: {}, flows: {}, {}", chain.size,
                                 chain.tcp ? "tcp" : "udp", kFlows, more);
  if (!chain.destinations.empty()) text += fmt::format(", destinations: {}", yaml_text(chain.destinations));
  if (!chain.payloads.empty()) text += fmt::format(", payload: capture, capture: {}", yaml_text(chain.payloads));
  return text + "}}\n";
}

/// Ports and functions of a chain for a measurement. `more`: further parameters of the generator.
std::string to_null(const MeasuredChain& chain, const std::string& more) {
  return generator(chain, "frames: kept" + more) + "  wan: {'null': {}}\n" + dmz(chain) + "chain: " + chain.functions +
         "\n";
}

/// Sets each result from all runs. `results` must not be empty.
void set_results(Point& point, const std::vector<Point>& results) {
  for (const auto& [name, value] : results.back()) {
    if (std::holds_alternative<std::string>(value)) {
      point.set(name, value);
      continue;
    }
    std::vector<double> values;
    values.reserve(results.size());
    for (const Point& of_run : results) values.push_back(of_run.number(name).value_or(0));
    set_repeats(point, name, values);
  }
}

/// Removes Ethernet's padding of short packets, which ESP does not carry.
std::span<const std::uint8_t> without_padding(std::span<const std::uint8_t> frame) {
  constexpr std::size_t kIp = sizeof(EthernetHeader);
  if (frame.size() < kIp + sizeof(Ipv4Header)) return frame;
  if (reinterpret_cast<const EthernetHeader*>(frame.data())->type.value() != ether_type::kIpv4) return frame;
  const auto& ip = *reinterpret_cast<const Ipv4Header*>(frame.data() + kIp);
  return frame.first(std::min<std::size_t>(frame.size(), kIp + ip.total_length.value()));
}

/// Adds the counters of a function that follows connections, if this one does.
void set_tracked(Point& results, const nlohmann::ordered_json& details, double packets) {
  const auto stack = details.find("stack");
  if (stack == details.end() || stack->value("flows", 0.0) == 0) return;
  for (const char* const name : {"flows", "tcp_sessions", "stream_gaps"}) results.set(name, stack->value(name, 0.0));
  results.set("stream_bytes", stack->value("stream_bytes", 0.0) / packets);
  results.set("unknown_connections", stack->value("tcp_unknown_connection", 0.0));
  const auto inspection = details.find("inspection");
  if (inspection == details.end() || inspection->value("flow_states", 0.0) == 0) return;
  for (const char* const name : {"flow_states", "seams_known"}) {
    results.set(name, inspection->value(name, 0.0) / packets);
  }
}

}  // namespace

std::string yaml_text(const std::string& path) {
  return nlohmann::json(path).dump();
}  // a JSON string is also a YAML
   // string

Result<config::LoadedChain> ChainRunner::load(const std::string& yaml, bool only_plan) {
  auto loaded = config::load_chain(workplace_.put("chain.yaml", yaml), {.overrides = {}, .only_plan = only_plan});
  if (loaded && !loaded->unsupported.empty()) return tl::unexpected(std::move(loaded->unsupported));
  return loaded;
}

Result<void> ChainRunner::try_out(const MeasuredChain& chain) {
  const auto loaded = load(to_null(chain, ""), true);
  if (!loaded) return tl::unexpected(loaded.error());
  return {};
}

/// Runs a chain file. If `timeline` is not null, stores the run's timeline there.
Result<report::RunReport> ChainRunner::run_file(const std::string& yaml, std::unique_ptr<ring::Timeline>* timeline) {
  constexpr std::size_t kBatches = 1000;  // per stream; half a second has about a hundred
  auto loaded = load(yaml, false);
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  if (timeline != nullptr) loaded->chain.timeline = std::make_unique<ring::Timeline>(kBatches);
  auto result = run::run(loaded->chain, {}, stop_);
  if (!result) return tl::unexpected(std::move(result.error()));
  if (!result->errors.empty()) return tl::unexpected(std::move(result->errors));
  if (const auto& gpu = result->report.gpu; gpu && gpu->failures != 0) {
    return failure({{}, "batches failed on the GPU", std::to_string(gpu->failures), "0"});
  }
  if (timeline != nullptr) *timeline = std::move(loaded->chain.timeline);
  return std::move(result->report);
}

Result<void> ChainRunner::measure(Point& point, const MeasuredChain& chain, const Point& limits,
                                  const Setting& setting) {
  const std::string rate = chain.offered_mpps ? fmt::format(", rate: {:.4f}Mpps", *chain.offered_mpps) : "";
  const std::string yaml =
      to_null(chain, rate) + run_section(chain) + fmt::format("  duration: {}ns\n", setting.duration.count());
  std::vector<Point> results;
  for (unsigned i = 0; i < setting.repeats; ++i) {
    std::unique_ptr<ring::Timeline> timeline;
    const auto report = run_file(yaml, chain.timeline ? &timeline : nullptr);
    if (!report) return tl::unexpected(report.error());
    results.push_back(results_of(*report, limits, chain.gpus.size()));
    if (timeline == nullptr) continue;
    for (const auto& [name, value] : transfers_of(*timeline)) results.back().set(name, value);
  }
  set_results(point, results);
  return {};
}

/// With one worker, so that the order is defined, and with frames that do not depend on how batches are filled.
Result<std::string> ChainRunner::output_of(const MeasuredChain& chain, const std::string& name) {
  const std::string path = workplace_.path(name);
  const auto run = run_file((chain.capture.empty() ? generator(chain, fmt::format("packets: {}", kCheckedPackets))
                                                   : memory(chain.checked_capture, 1)) +
                            fmt::format("  wan: {{pcap: {{write: {}, precision: ns}}}}\n{}chain: {}\n", yaml_text(path),
                                        dmz(chain), chain.functions) +
                            run_section(chain));
  if (!run) return tl::unexpected(run.error());
  return path;
}

/// On the CPU, in the same order.
Result<std::string> ChainRunner::undo(const MeasuredChain& chain, const std::string& output) {
  const std::string path = workplace_.path("undone.pcap");
  const auto run =
      run_file(fmt::format("ports:\n  lan: {{pcap: {{read: {}}}}}\n  wan: {{pcap: {{write: {}, precision: ns}}}}\n"
                           "chain: {}\nrun: {{workers: 1, processor: cpu}}\n",
                           yaml_text(output), yaml_text(path), chain.undone_by));
  if (!run) return tl::unexpected(run.error());
  return path;
}

Result<void> ChainRunner::check(const MeasuredChain& given) {
  MeasuredChain chain = given;
  chain.workers = 1;
  chain.latency.clear();
  const bool undone = !chain.undone_by.empty();
  if (!chain.on_gpu && !undone) return {};
  if (!checked_.insert(generator(chain, "") + chain.functions + run_section(chain)).second) return {};
  auto ours = output_of(chain, "ours.pcap");
  if (ours && undone) ours = undo(chain, *ours);
  if (!ours) return tl::unexpected(std::move(ours.error()));
  MeasuredChain twin = chain;
  twin.on_gpu = false;
  if (undone) twin.functions = chain.undone;
  std::string& theirs = expected_[generator(twin, "") + twin.functions];
  if (theirs.empty()) {
    auto output = output_of(twin, fmt::format("expected{}.pcap", expected_.size()));
    if (!output) return tl::unexpected(std::move(output.error()));
    theirs = std::move(*output);
  }
  port::ReadControl control;
  auto output = port::CaptureSequence::open({*ours}, control);
  auto expected = port::CaptureSequence::open({theirs}, control);
  if (!output) return tl::unexpected(std::move(output.error()));
  if (!expected) return tl::unexpected(std::move(expected.error()));
  port::CapturedFrame here;
  port::CapturedFrame there;
  for (std::size_t packet = 1;; ++packet) {
    const bool any_here = output->next(here);
    const bool any_there = expected->next(there);
    if (!any_here && !any_there) break;
    if (any_here != any_there || !std::ranges::equal(without_padding(here.bytes), without_padding(there.bytes))) {
      return failure({{},
                      !undone ? "the GPU's output differs from the CPU's"
                      : chain.undone == "[]"
                          ? "the output, undone, differs from the input"
                          : "the output, undone, differs from the output of the earlier functions on the CPU",
                      fmt::format("at packet {}", packet),
                      "the same"});
    }
  }
  return {};
}

Point results_of(const report::RunReport& report, const Point& limits, std::size_t gpus) {
  Point results;
  const auto packets = static_cast<double>(report.in.packets);
  const double elapsed = report.elapsed_s();
  const double bits = static_cast<double>(report.in.bytes) * 8 + packets * kFrameCheckBits;
  results.set("mpps", packets / elapsed / 1e6).set("gbps", bits / elapsed / 1e9);
  const auto up = static_cast<double>(report.bytes_to_device);
  const auto down = static_cast<double>(report.bytes_to_host);
  if (up > 0 && packets > 0) {
    results.set("to_device", up / elapsed / 1e9).set("to_host", down / elapsed / 1e9);
    results.set("bytes_up", up / packets).set("bytes_down", down / packets);
    if (const auto limit = pcie_limit_mpps(limits, up / packets, down / packets, gpus)) {
      const double share = *results.number("mpps") / *limit;
      results.set("limit_mpps", *limit).set("limit_gbps", *results.number("gbps") / share).set("of_limit", share);
    }
  }
  results.set("busy_cores", static_cast<double>(report.cpu_time.count()) / 1e9 / elapsed);
  if (report.cpu_time.count() > 0) {
    const double stack_ns = static_cast<double>(std::chrono::nanoseconds(report.stack_time).count());
    results.set("stack_percent", 100 * stack_ns / static_cast<double>(report.cpu_time.count()));
  }
  results.set("packets_in_batch", packets / std::max(1.0, static_cast<double>(report.batches.count)));
  const auto lost = static_cast<double>(report.chain_drops("queue_full"));
  const auto dropped = static_cast<double>(report.dropped.packets);
  results.set("lost", packets > 0 ? lost / packets : 0.0);
  results.set("dropped", packets > 0 ? (dropped - lost) / packets : 0.0);
  for (const report::FunctionReport& function : report.functions) {
    if (function.segments > 0) results.set("segment_us_" + function.name, function.us_per_segment());
    // A function without a share may use all multiprocessors, which are the first number that it was timed with.
    std::uint32_t share = function.multiprocessors;
    if (share == 0 && !function.share_times.empty()) share = function.share_times.front().multiprocessors;
    if (share != 0) results.set("share_" + function.name, static_cast<double>(share));
    set_tracked(results, function.details, packets);
  }
  for (const auto& [name, us] : report.latency_us) results.set("latency_" + name, us);
  return results;
}

}  // namespace penstock::experiments
