// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/text_table.h"

namespace penstock::run {

using Json = nlohmann::ordered_json;
using report::TrafficSum;

namespace {

Json traffic_json(const TrafficSum& traffic) { return {{"packets", traffic.packets}, {"bytes", traffic.bytes}}; }

/// The sum over workers of what `of` picks from each one's counters.
template <typename Pick>
TrafficSum traffic_sum(std::span<const std::unique_ptr<Worker>> workers, Pick of) {
  TrafficSum sum;
  for (const auto& worker : workers) sum += of(worker->counters());
  return sum;
}

template <typename Pick>
std::uint64_t count_sum(std::span<const std::unique_ptr<Worker>> workers, Pick of) {
  std::uint64_t sum = 0;
  for (const auto& worker : workers) sum += of(worker->counters()).get();
  return sum;
}

double seconds(auto ns) { return static_cast<double>(ns) / 1e9; }

/// Empty where the function has all of the GPU, and nothing was measured.
Json share_json(const plan::GpuShares& shares, std::size_t index) {
  Json json = Json::object();
  if (const std::uint32_t share = shares.of(index); share != 0) json["multiprocessors"] = share;
  if (index >= shares.functions.size()) return json;
  for (const plan::MeasuredTime& time : shares.functions[index].times)
    json["measured"].push_back({{"multiprocessors", time.multiprocessors}, {"us", time.us}});
  return json;
}

Json function_json(const NamedFunction& named, std::size_t index, const plan::GpuShares& shares,
                   std::span<const std::unique_ptr<Worker>> workers, TrafficSum& dropped_in_all) {
  const auto sum = [&](auto pick) {
    return traffic_sum(workers,
                       [&](const WorkerCounters& c) -> const report::Traffic& { return pick(c.functions[index]); });
  };
  const function::NfTraits& traits = named.function->traits();
  Json dropped = Json::object();
  TrafficSum dropped_here;
  for (std::size_t r = 0; r < traits.drop_reasons.size(); ++r) {
    const TrafficSum of_reason = sum([&](const FunctionCounters& f) -> const report::Traffic& { return f.dropped[r]; });
    dropped[std::string(traits.drop_reasons[r])] = of_reason.packets;
    dropped_here += of_reason;
  }
  dropped_in_all += dropped_here;
  const TrafficSum in = sum([](const FunctionCounters& f) -> const report::Traffic& { return f.in; });
  const std::uint64_t time_ns =
      count_sum(workers, [&](const WorkerCounters& c) -> const report::Counter& { return c.functions[index].time_ns; });
  Json json;
  json["name"] = named.name;
  json["description"] = named.function->description();
  json["in"] = traffic_json(in);
  json["forwarded"] =
      traffic_json(sum([](const FunctionCounters& f) -> const report::Traffic& { return f.forwarded; }));
  json["consumed"] = traffic_json(sum([](const FunctionCounters& f) -> const report::Traffic& { return f.consumed; }));
  json["dropped"] = {{"packets", dropped_here.packets}, {"bytes", dropped_here.bytes}, {"reasons", std::move(dropped)}};
  json["time_s"] = seconds(time_ns);
  json["ns_per_packet"] = in.packets == 0 ? 0.0 : static_cast<double>(time_ns) / static_cast<double>(in.packets);
  const auto count = [&](report::Counter FunctionCounters::*counter) {
    return count_sum(workers,
                     [&](const WorkerCounters& c) -> const report::Counter& { return c.functions[index].*counter; });
  };
  if (const std::uint64_t segments = count(&FunctionCounters::segments); segments > 0) {
    const double sum_ns = static_cast<double>(count(&FunctionCounters::segment_time_ns));
    json["segments"] = {{"count", segments}, {"mean_us", sum_ns / static_cast<double>(segments) / 1e3}};
  }
  if (const Json share = share_json(shares, index); !share.empty()) json["gpu_share"] = share;
  nlohmann::json own = nlohmann::json::object();
  named.function->report(own);
  if (!own.empty()) json["details"] = own;
  return json;
}

Json latency_json(std::span<const std::unique_ptr<Worker>> workers) {
  const auto all = std::make_unique<report::LatencyHistogram>();
  for (const auto& worker : workers) all->merge(worker->counters().latency);
  const auto us = [&](double fraction) { return static_cast<double>(all->quantile(fraction).count()) / 1e3; };
  return {{"p1", us(0.01)}, {"p10", us(0.1)},  {"p25", us(0.25)}, {"p50", us(0.5)},     {"p75", us(0.75)},
          {"p90", us(0.9)}, {"p95", us(0.95)}, {"p99", us(0.99)}, {"p99.9", us(0.999)}, {"max", us(1.0)}};
}

}  // namespace

Json make_report(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers,
                 std::chrono::nanoseconds elapsed) {
  using C = WorkerCounters;
  const auto traffic = [&](auto pick) { return traffic_sum(workers, pick); };
  const TrafficSum in = traffic([](const C& c) -> const report::Traffic& { return c.in; });
  const TrafficSum forwarded = traffic([](const C& c) -> const report::Traffic& { return c.forwarded; });
  TrafficSum consumed = traffic([](const C& c) -> const report::Traffic& { return c.consumed; });
  const TrafficSum generated = traffic([](const C& c) -> const report::Traffic& { return c.generated; });
  const TrafficSum generated_lost = traffic([](const C& c) -> const report::Traffic& { return c.generated_lost; });
  TrafficSum dropped;

  Json functions = Json::array();
  const plan::GpuShares shares =
      chain.settings.processor == function::Processor::gpu ? chain.settings.gpu_shares : plan::GpuShares{};
  for (std::size_t i = 0; i < chain.functions.size(); ++i) {
    functions.push_back(function_json(chain.functions[i], i, shares, workers, dropped));
    consumed += traffic([&](const C& c) -> const report::Traffic& { return c.functions[i].consumed; });
  }
  Json by_chain = Json::object();
  for (std::size_t r = 0; r < kChainDropCount; ++r) {
    const TrafficSum sum = traffic([&](const C& c) -> const report::Traffic& { return c.dropped_by_chain[r]; });
    by_chain[std::string(kChainDropNames[r])] = sum.packets;
    dropped += sum;
  }
  Json ports = Json::object();
  for (std::size_t p = 0; p < chain.ports.size(); ++p) {
    Json& port = ports[chain.ports[p].name] = {
        {"in", traffic_json(traffic([&](const C& c) -> const report::Traffic& { return c.port_in[p]; }))},
        {"out", traffic_json(traffic([&](const C& c) -> const report::Traffic& { return c.port_out[p]; }))}};
    if (const auto load = chain.ports[p].port->offered()) {
      port["offered"] = {{"packets", load->packets}, {"behind_s", seconds(load->behind.count())}};
    }
    if (const auto fragments = chain.ports[p].port->fragments()) {
      port["fragments"] = {{"packets", fragments->packets},
                           {"waited", fragments->waited},
                           {"not_followed", fragments->not_followed},
                           {"ambiguous", fragments->ambiguous},
                           {"copied", fragments->copied}};
    }
  }
  const auto count = [&](auto pick) { return count_sum(workers, pick); };
  const std::uint64_t batches = count([](const C& c) -> const report::Counter& { return c.batches; });
  const std::uint64_t fill = count([](const C& c) -> const report::Counter& { return c.batch_fill_permille; });
  const double elapsed_s = static_cast<double>(elapsed.count()) / 1e9;

  Json report;
  report["processor"] = chain.settings.processor == function::Processor::gpu ? "gpu" : "cpu";
  report["workers"] = workers.size();
  report["elapsed_s"] = elapsed_s;
  report["packets"] = {{"in", in.packets},
                       {"forwarded", forwarded.packets},
                       {"dropped", dropped.packets},
                       {"consumed", consumed.packets},
                       {"generated", generated.packets},
                       {"generated_lost", generated_lost.packets}};
  report["bytes"] = {{"in", in.bytes},
                     {"forwarded", forwarded.bytes},
                     {"dropped", dropped.bytes},
                     {"consumed", consumed.bytes},
                     {"generated", generated.bytes},
                     {"generated_lost", generated_lost.bytes}};
  report["rate"] = {{"packets_per_s", elapsed_s > 0 ? static_cast<double>(in.packets) / elapsed_s : 0.0},
                    {"bits_per_s", elapsed_s > 0 ? static_cast<double>(in.bytes) * 8 / elapsed_s : 0.0}};
  report["functions"] = std::move(functions);
  report["dropped_by_chain"] = std::move(by_chain);
  report["ports"] = std::move(ports);
  report["batches"] = {
      {"count", batches},
      {"closed_by_size", count([](const C& c) -> const report::Counter& { return c.closed_by_size; })},
      {"closed_by_time", count([](const C& c) -> const report::Counter& { return c.closed_by_time; })},
      {"closed_by_end", count([](const C& c) -> const report::Counter& { return c.closed_by_end; })},
      {"closed_by_idleness", count([](const C& c) -> const report::Counter& { return c.closed_by_idleness; })},
      {"mean_fill", batches == 0 ? 0.0 : static_cast<double>(fill) / 1000.0 / static_cast<double>(batches)}};
  const auto device = [&](report::Counter DeviceCounters::*counter) {
    return count([counter](const C& c) -> const report::Counter& { return c.device.*counter; });
  };
  report["pcie"] = {{"to_device_bytes", device(&DeviceCounters::bytes_to_device)},
                    {"to_host_bytes", device(&DeviceCounters::bytes_to_host)}};
  if (chain.settings.processor == function::Processor::gpu) {
    report["gpu"] = {{"devices", chain.settings.gpus},
                     {"shares", plan::kShareChoiceNames[static_cast<std::size_t>(chain.settings.gpu_shares.choice)]},
                     {"segments", device(&DeviceCounters::segments)},
                     {"punted", device(&DeviceCounters::punted)},
                     {"failures", device(&DeviceCounters::failures)},
                     {"lanes_lost", device(&DeviceCounters::lanes_lost)}};
  }
  report["cpu_s"] = seconds(count([](const C& c) -> const report::Counter& { return c.cpu_time_ns; }));
  report["time_s"] = {{"stack", seconds(count([](const C& c) -> const report::Counter& { return c.stack_time_ns; }))},
                      {"send", seconds(count([](const C& c) -> const report::Counter& { return c.send_time_ns; }))}};
  report["latency_us"] = latency_json(workers);
  return report;
}

std::string report_tables(const Json& report) {
  const auto n = [](const Json& value) { return format_count(value.get<std::uint64_t>()); };
  report::TextTable functions({"", ">packets in", ">forwarded", ">dropped", ">consumed", ">ns/packet", "drops"});
  for (const Json& f : report["functions"]) {
    std::string reasons;
    for (const auto& [reason, count] : f["dropped"]["reasons"].items()) {
      if (count != 0) reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", reason, n(count));
    }
    functions.add_row({f["name"], n(f["in"]["packets"]), n(f["forwarded"]["packets"]), n(f["dropped"]["packets"]),
                       n(f["consumed"]["packets"]), fmt::format("{:.1f}", f["ns_per_packet"].get<double>()), reasons});
  }
  std::string by_chain;
  for (const auto& [reason, count] : report["dropped_by_chain"].items()) {
    if (count != 0) by_chain += fmt::format("{}{} {}", by_chain.empty() ? "" : ", ", reason, n(count));
  }
  const Json& packets = report["packets"];
  functions.add_row({"chain", n(packets["in"]), n(packets["forwarded"]), n(packets["dropped"]), n(packets["consumed"]),
                     "", by_chain});

  report::TextTable ports({"", ">packets in", ">bytes in", ">packets out", ">bytes out"});
  for (const auto& [name, port] : report["ports"].items()) {
    ports.add_row(
        {name, n(port["in"]["packets"]), n(port["in"]["bytes"]), n(port["out"]["packets"]), n(port["out"]["bytes"])});
  }
  std::string generated;
  if (packets["generated"] != 0 || packets["generated_lost"] != 0) {
    generated = fmt::format("{} packets ({} bytes) generated by functions", n(packets["generated"]),
                            n(report["bytes"]["generated"]));
    if (packets["generated_lost"] != 0)
      generated += fmt::format("; {} more that no port accepted", n(packets["generated_lost"]));
    generated += '\n';
  }
  std::string of_functions;
  for (const Json& f : report["functions"]) {
    if (!f.contains("details")) continue;
    const Json& details = f["details"];
    const std::string name = f["name"].get<std::string>();
    if (details.contains("alerts")) {
      const auto alerts = details["alerts"].get<std::uint64_t>();
      of_functions += fmt::format("{}: {}\n", name, format_count(alerts, "alert"));
    }
    if (!details.contains("warnings")) continue;
    for (const Json& warning : details["warnings"]) {
      of_functions += fmt::format("warning: {}: {}\n", name, warning.get<std::string>());
    }
  }
  std::string not_made;
  for (const auto& [name, port] : report["ports"].items()) {
    if (!port.contains("offered")) continue;
    const auto offered = port["offered"]["packets"].get<std::uint64_t>();
    const auto made = port["in"]["packets"].get<std::uint64_t>();
    if (offered <= made) continue;
    not_made += fmt::format("{} generated {} of the {} packets that its rate requires\n", name, format_count(made),
                            format_count(offered));
  }
  std::string fragments;
  for (const auto& [name, port] : report["ports"].items()) {
    if (!port.contains("fragments")) continue;
    const auto not_followed = port["fragments"]["not_followed"].get<std::uint64_t>();
    if (not_followed == 0) continue;
    fragments +=
        fmt::format("warning: {}: {} of {} fragments were not sent to the worker of their flow\n", name,
                    format_count(not_followed), format_count(port["fragments"]["packets"].get<std::uint64_t>()));
  }
  std::string shares;
  for (const Json& f : report["functions"]) {
    const auto share = f.find("gpu_share");
    if (share == f.end()) continue;
    const auto multiprocessors = share->find("multiprocessors");
    shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", f["name"].get<std::string>(),
                          multiprocessors == share->end() ? "all" : n(*multiprocessors));
  }
  if (!shares.empty()) shares = "multiprocessors of the GPU: " + shares + '\n';
  const Json& batches = report["batches"];
  const Json& latency = report["latency_us"];
  return functions.text() + '\n' + ports.text() + generated + of_functions + shares + not_made + fragments +
         fmt::format(
             "\n{} worker{} on the {}, {:.3f} s: {}pps, {}bit/s; {} batch{} ({} full, {} by timeout, {} at the end)\n"
             "latency p50 {:.1f} us, p95 {:.1f} us, p99 {:.1f} us, p99.9 {:.1f} us\n",
             report["workers"].get<std::size_t>(), report["workers"] == 1 ? "" : "s",
             report["processor"].get<std::string>() == "cpu" ? "CPU" : "GPU", report["elapsed_s"].get<double>(),
             format_si(report["rate"]["packets_per_s"]), format_si(report["rate"]["bits_per_s"]), n(batches["count"]),
             batches["count"] == 1 ? "" : "es", n(batches["closed_by_size"]), n(batches["closed_by_time"]),
             n(batches["closed_by_end"]), latency["p50"].get<double>(), latency["p95"].get<double>(),
             latency["p99"].get<double>(), latency["p99.9"].get<double>());
}

}  // namespace penstock::run
