// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/run_report.h"

#include <algorithm>

namespace penstock::report {
namespace {

using Json = nlohmann::ordered_json;

/// In nanoseconds.
double mean(std::chrono::nanoseconds time, std::uint64_t count) noexcept {
  return count == 0 ? 0.0 : static_cast<double>(time.count()) / static_cast<double>(count);
}

double seconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

template <typename Pairs>
auto find(const Pairs& pairs, std::string_view name) noexcept {
  const auto found = std::ranges::find(pairs, name, [](const auto& pair) -> std::string_view { return pair.first; });
  return found == pairs.end() ? typename Pairs::value_type::second_type{} : found->second;
}

template <typename Pairs>
Json object(const Pairs& pairs) {
  Json json = Json::object();
  for (const auto& [name, value] : pairs) json[name] = value;
  return json;
}

Json by_limit(const RunReport::LongTimes& times) {
  Json json = Json::object();
  for (const auto& [limit_us, count] : times) json[std::to_string(limit_us)] = count;
  return json;
}

Json traffic_json(const TrafficSum& traffic) { return {{"packets", traffic.packets}, {"bytes", traffic.bytes}}; }

/// Empty if the function may fill the whole GPU and nothing was measured.
Json share_json(const FunctionReport& function) {
  Json json = Json::object();
  if (function.multiprocessors != 0) json["multiprocessors"] = function.multiprocessors;
  for (const StageTiming& time : function.share_times)
    json["measured"].push_back({{"multiprocessors", time.multiprocessors}, {"us", time.us}});
  return json;
}

Json function_json(const FunctionReport& function) {
  Json json;
  json["name"] = function.name;
  json["description"] = function.description;
  json["in"] = traffic_json(function.in);
  json["forwarded"] = traffic_json(function.forwarded);
  json["consumed"] = traffic_json(function.consumed);
  json["dropped"] = traffic_json(function.dropped);
  json["dropped"]["reasons"] = object(function.drop_reasons);
  json["held"] = traffic_json(function.held);
  json["time_s"] = seconds(function.time);
  json["ns_per_packet"] = function.ns_per_packet();
  if (function.segments > 0) {
    json["segments"] = {{"count", function.segments}, {"mean_us", function.us_per_segment()}};
  }
  if (const Json share = share_json(function); !share.empty()) json["gpu_share"] = share;
  if (!function.details.is_null()) json["details"] = function.details;
  return json;
}

Json counts_json(const DropCounts& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json port_json(const PortReport& port) {
  Json json{{"in", traffic_json(port.in)}, {"out", traffic_json(port.out)}};
  if (port.offered) json["offered"] = {{"packets", port.offered->packets}, {"behind_s", seconds(port.offered->behind)}};
  if (port.fragments) {
    json["fragments"] = {{"packets", port.fragments->packets},
                         {"waited", port.fragments->waited},
                         {"not_followed", port.fragments->not_followed},
                         {"ambiguous", port.fragments->ambiguous},
                         {"copied", port.fragments->copied}};
  }
  if (port.interface) {
    json["lost"] = counts_json(port.interface->lost);
    json["events"] = counts_json(port.interface->events);
  }
  return json;
}

Json placement_json(const WorkerPlacement& placement) {
  Json json{{"cores", placement.cores}, {"bound", placement.bound}, {"gpu", nullptr}, {"memory_node", nullptr}};
  if (placement.gpu) json["gpu"] = *placement.gpu;
  if (placement.memory_node) json["memory_node"] = *placement.memory_node;
  return json;
}

Json queue_json(const QueueReport& queue) { return {{"bytes", queue.bytes}, {"capacity_bytes", queue.capacity_bytes}}; }

Json worker_json(const WorkerReport& worker) {
  return {{"in", traffic_json(worker.in)},           {"forwarded", traffic_json(worker.forwarded)},
          {"dropped", traffic_json(worker.dropped)}, {"consumed", traffic_json(worker.consumed)},
          {"held", traffic_json(worker.held)},       {"batches", worker.batches},
          {"idle_s", seconds(worker.idle)},          {"queue", queue_json(worker.queue)}};
}

}  // namespace

double FunctionReport::ns_per_packet() const noexcept { return mean(time, in.packets); }

double FunctionReport::us_per_segment() const noexcept { return mean(segment_time, segments) / 1e3; }

double RunReport::packets_per_second() const noexcept {
  return elapsed.count() > 0 ? static_cast<double>(in.packets) / elapsed_s() : 0.0;
}

double RunReport::bits_per_second() const noexcept {
  return elapsed.count() > 0 ? static_cast<double>(in.bytes) * 8 / elapsed_s() : 0.0;
}

std::uint64_t RunReport::chain_drops(std::string_view reason) const noexcept { return find(dropped_by_chain, reason); }

double RunReport::latency(std::string_view quantile) const noexcept { return find(latency_us, quantile); }

Json rate_json(const RunReport& report) {
  return {{"packets_per_s", report.packets_per_second()}, {"bits_per_s", report.bits_per_second()}};
}

Json to_json(const RunReport& report) {
  const auto totals = [&](std::uint64_t TrafficSum::*count) {
    return Json{{"in", report.in.*count},
                {"forwarded", report.forwarded.*count},
                {"dropped", report.dropped.*count},
                {"consumed", report.consumed.*count},
                {"held", report.held.*count},
                {"generated", report.generated.*count},
                {"generated_lost", report.generated_lost.*count}};
  };
  Json json;
  json["processor"] = report.processor;
  json["workers"] = report.workers;
  json["placement"] = Json::array();
  for (const WorkerPlacement& placement : report.placement) json["placement"].push_back(placement_json(placement));
  json["by_worker"] = Json::array();
  for (const WorkerReport& worker : report.by_worker) json["by_worker"].push_back(worker_json(worker));
  if (report.shared_queue) json["shared_queue"] = queue_json(*report.shared_queue);
  json["elapsed_s"] = report.elapsed_s();
  json["reloads"] = report.reloads;
  json["packets"] = totals(&TrafficSum::packets);
  json["bytes"] = totals(&TrafficSum::bytes);
  if (report.handed_over)
    json["handed_over"] = {{"packets", report.handed_over->packets}, {"bytes", report.handed_over->bytes}};
  json["rate"] = rate_json(report);
  json["functions"] = Json::array();
  for (const FunctionReport& function : report.functions) json["functions"].push_back(function_json(function));
  json["dropped_by_chain"] = object(report.dropped_by_chain);
  json["ports"] = Json::object();
  for (const PortReport& port : report.ports) json["ports"][port.name] = port_json(port);
  json["batches"] = {{"count", report.batches.count},
                     {"closed_by_size", report.batches.closed_by_size},
                     {"closed_by_time", report.batches.closed_by_time},
                     {"closed_by_end", report.batches.closed_by_end},
                     {"closed_by_idleness", report.batches.closed_by_idleness},
                     {"mean_fill", report.batches.mean_fill}};
  json["pcie"] = {{"to_device_bytes", report.bytes_to_device}, {"to_host_bytes", report.bytes_to_host}};
  if (report.gpu) {
    json["gpu"] = {{"devices", report.gpu->devices},           {"shares", report.gpu->shares},
                   {"segments", report.gpu->segments},         {"punted", report.gpu->punted},
                   {"failures", report.gpu->failures},         {"lanes_lost", report.gpu->lanes_lost},
                   {"memory_bytes", report.gpu->memory_bytes}, {"most_memory_bytes", report.gpu->most_memory_bytes}};
  }
  if (report.gpu && report.gpu->proxy) {
    const RunReport::Proxy& proxy = *report.gpu->proxy;
    json["gpu"]["proxy"] = {
        {"connected", proxy.connected}, {"losses", proxy.losses}, {"without_s", seconds(proxy.without)}};
  }
  json["cpu_s"] = seconds(report.cpu_time);
  json["time_s"] = {{"stack", seconds(report.stack_time)}, {"send", seconds(report.send_time)}};
  json["latency_us"] = object(report.latency_us);
  json["latency_longer_than_us"] = by_limit(report.long_latencies);
  json["gaps"] = {{"us", object(report.gaps.us)},
                  {"longer_than_us", by_limit(report.gaps.longer)},
                  {"longest_us_by_worker", report.gaps.longest_us}};
  return json;
}

}  // namespace penstock::report
