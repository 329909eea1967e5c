// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "report/exposition.h"
#include "report/function_metrics.h"

namespace penstock::report {

namespace {

using Type = Exposition::Type;

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

void add_process(Exposition& out, const RunFacts& facts) {
  out.family("penstock_build_info", Type::gauge, "The program; always 1.");
  out.sample(std::uint64_t{1}, {{"version", facts.version}, {"commit", facts.commit}});
  out.gauge("process_start_time_seconds", "When the process started, as Unix time.", facts.started_s);
  out.counter("process_cpu_seconds_total", "Processor time of the process.", facts.cpu_s);
  out.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.", facts.resident_bytes);
  out.family("penstock_state", Type::gauge, "Whether the run is in this state.");
  for (const std::string_view state : kRunStates) out.sample(std::uint64_t{state == facts.state}, {{"state", state}});
  if (!facts.last_reload) return;
  out.gauge("penstock_last_reload_successful", "Whether the last reload or rollback was carried out.",
            std::uint64_t{facts.last_reload->successful});
  out.gauge("penstock_last_reload_timestamp_seconds", "When it was asked for, as Unix time.", facts.last_reload->at_s);
}

/// Packets and bytes of many things. `of` returns a TrafficSum, `labels` is called with the thing.
struct TrafficNames {
  std::string_view packets, bytes;
  std::string_view packets_help, bytes_help;
};

template <typename Things, typename Of, typename WithLabels>
void add_traffic(Exposition& out, const TrafficNames& names, const Things& things, Of of, WithLabels with_labels) {
  out.family(names.packets, Type::counter, names.packets_help);
  for (const auto& thing : things) with_labels(thing, [&](auto labels) { out.sample(of(thing).packets, labels); });
  out.family(names.bytes, Type::counter, names.bytes_help);
  for (const auto& thing : things) with_labels(thing, [&](auto labels) { out.sample(of(thing).bytes, labels); });
}

void add_totals(Exposition& out, const RunReport& report) {
  const auto add = [&](const TrafficNames& names, const TrafficSum& sum) {
    out.counter(names.packets, names.packets_help, sum.packets);
    out.counter(names.bytes, names.bytes_help, sum.bytes);
  };
  add({"penstock_received_packets_total", "penstock_received_bytes_total",
       "Packets that came to the chain. Each of them ends as forwarded, dropped or consumed, and may be held before.",
       "Bytes of the frames that came to the chain."},
      report.in);
  add({"penstock_forwarded_packets_total", "penstock_forwarded_bytes_total", "Packets that ports have sent.",
       "Bytes of the frames that ports have sent."},
      report.forwarded);
  add({"penstock_dropped_packets_total", "penstock_dropped_bytes_total", "Packets that functions or the chain dropped.",
       "Bytes of the frames that functions or the chain dropped."},
      report.dropped);
  add({"penstock_consumed_packets_total", "penstock_consumed_bytes_total",
       "Packets that ended in the chain, neither sent nor dropped.",
       "Bytes of the frames that ended in the chain, neither sent nor dropped."},
      report.consumed);
  add({"penstock_generated_packets_total", "penstock_generated_bytes_total",
       "Packets that functions made and ports have sent.", "Bytes of frames that functions made and ports have sent."},
      report.generated);
  add({"penstock_generated_lost_packets_total", "penstock_generated_lost_bytes_total",
       "Packets that functions made and no port accepted.",
       "Bytes of frames that functions made and no port accepted."},
      report.generated_lost);
  if (report.handed_over) {
    add({"penstock_handed_over_packets_total", "penstock_handed_over_bytes_total",
         "Packets that workers have handed over to the workers of their connections.",
         "Bytes of the frames that workers have handed over to the workers of their connections."},
        *report.handed_over);
  }
  out.family("penstock_chain_dropped_packets_total", Type::counter, "Packets dropped outside the functions.");
  for (const auto& [reason, count] : report.dropped_by_chain) out.sample(count, {{"reason", reason}});
}

void add_ports(Exposition& out, const RunReport& report, const RunFacts& facts) {
  const auto by_port = [](const PortReport& port, auto use) { use(Exposition::Labels{{"port", port.name}}); };
  add_traffic(
      out,
      {"penstock_port_received_packets_total", "penstock_port_received_bytes_total",
       "Packets that came to the chain by this port.", "Bytes of the frames that came to the chain by this port."},
      report.ports, [](const PortReport& port) { return port.in; }, by_port);
  add_traffic(
      out,
      {"penstock_port_sent_packets_total", "penstock_port_sent_bytes_total", "Packets that this port has sent.",
       "Bytes of the frames that this port has sent."},
      report.ports, [](const PortReport& port) { return port.out; }, by_port);
  out.family("penstock_port_lost_packets_total", Type::counter,
             "Packets that came to the interface but not to the chain, by the place where they were lost.");
  for (const PortReport& port : report.ports) {
    if (!port.interface) continue;
    for (const auto& [place, count] : port.interface->lost) out.sample(count, {{"port", port.name}, {"place", place}});
  }
  out.family("penstock_port_events_total", Type::counter, "What else happened at the interface.");
  for (const PortReport& port : report.ports) {
    if (!port.interface) continue;
    for (const auto& [event, count] : port.interface->events)
      out.sample(count, {{"port", port.name}, {"event", event}});
  }
  out.family("penstock_port_link_up", Type::gauge, "Whether the interface can send frames.");
  for (const auto& [port, up] : facts.links) out.sample(std::uint64_t{up}, {{"port", port}});
  out.family("penstock_port_offered_packets_total", Type::counter,
             "Packets that a generator with a rate should have made.");
  for (const PortReport& port : report.ports) {
    if (port.offered) out.sample(port.offered->packets, {{"port", port.name}});
  }
  out.family("penstock_port_behind_seconds", Type::gauge, "How far a generator is behind its rate.");
  for (const PortReport& port : report.ports) {
    if (port.offered) out.sample(seconds_of(port.offered->behind), {{"port", port.name}});
  }
  out.family("penstock_port_fragments_total", Type::counter, "Fragments that came by this port.");
  for (const PortReport& port : report.ports) {
    if (port.fragments) out.sample(port.fragments->packets, {{"port", port.name}});
  }
  out.family("penstock_port_fragments_not_followed_total", Type::counter,
             "Fragments that could not follow their flow to its worker.");
  for (const PortReport& port : report.ports) {
    if (port.fragments) out.sample(port.fragments->not_followed, {{"port", port.name}});
  }
}

void add_functions(Exposition& out, const RunReport& report) {
  const auto by_function = [](const FunctionReport& function, auto use) {
    use(Exposition::Labels{{"function", function.name}});
  };
  const auto add = [&](const TrafficNames& names, TrafficSum FunctionReport::*of) {
    add_traffic(
        out, names, report.functions, [of](const FunctionReport& function) { return function.*of; }, by_function);
  };
  add({"penstock_function_received_packets_total", "penstock_function_received_bytes_total",
       "Packets that came to this function.", "Bytes of the frames that came to this function."},
      &FunctionReport::in);
  add({"penstock_function_forwarded_packets_total", "penstock_function_forwarded_bytes_total",
       "Packets that this function passed on.", "Bytes of the frames that this function passed on."},
      &FunctionReport::forwarded);
  add({"penstock_function_consumed_packets_total", "penstock_function_consumed_bytes_total",
       "Packets that ended in this function, neither passed on nor dropped.",
       "Bytes of the frames that ended in this function, neither passed on nor dropped."},
      &FunctionReport::consumed);
  out.family("penstock_function_held_packets", Type::gauge,
             "Packets that wait for what this function lacks, such as the MAC address of a next hop.");
  for (const FunctionReport& function : report.functions)
    out.sample(function.held.packets, {{"function", function.name}});
  out.family("penstock_function_held_bytes", Type::gauge, "Bytes of the frames that this function holds.");
  for (const FunctionReport& function : report.functions)
    out.sample(function.held.bytes, {{"function", function.name}});
  out.family("penstock_function_dropped_packets_total", Type::counter,
             "Packets that this function dropped, by reason.");
  for (const FunctionReport& function : report.functions) {
    for (const auto& [reason, count] : function.drop_reasons)
      out.sample(count, {{"function", function.name}, {"reason", reason}});
  }
  out.family("penstock_function_dropped_bytes_total", Type::counter, "Bytes of the frames that this function dropped.");
  for (const FunctionReport& function : report.functions)
    out.sample(function.dropped.bytes, {{"function", function.name}});
  out.family("penstock_function_cpu_seconds_total", Type::counter,
             "Time of workers in this function, where it ran on the CPU.");
  for (const FunctionReport& function : report.functions)
    out.sample(seconds_of(function.time), {{"function", function.name}});
  out.family("penstock_function_gpu_segments_total", Type::counter,
             "GPU segments that began with this function and are done.");
  for (const FunctionReport& function : report.functions) {
    if (report.gpu) out.sample(function.segments, {{"function", function.name}});
  }
  out.family("penstock_function_gpu_segment_seconds_total", Type::counter,
             "Time of these segments from their start to when a worker saw their end, added up.");
  for (const FunctionReport& function : report.functions) {
    if (report.gpu) out.sample(seconds_of(function.segment_time), {{"function", function.name}});
  }
}

void add_workers(Exposition& out, const RunReport& report) {
  out.gauge("penstock_workers", "Number of worker threads.", std::uint64_t{report.workers});
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < report.by_worker.size(); ++i) numbers.push_back(std::to_string(i));
  const auto number_of = [&](const WorkerReport& worker) -> std::string_view {
    return numbers[static_cast<std::size_t>(&worker - report.by_worker.data())];
  };
  const auto by_worker = [&](const WorkerReport& worker, auto use) {
    use(Exposition::Labels{{"worker", number_of(worker)}});
  };
  add_traffic(
      out,
      {"penstock_worker_received_packets_total", "penstock_worker_received_bytes_total",
       "Packets that this worker received; 0 with a shared queue.",
       "Bytes of the frames that this worker received; 0 with a shared queue."},
      report.by_worker, [](const WorkerReport& worker) { return worker.in; }, by_worker);
  const auto add = [&](std::string_view name, Type type, std::string_view help, auto of) {
    out.family(name, type, help);
    for (const WorkerReport& worker : report.by_worker) out.sample(of(worker), {{"worker", number_of(worker)}});
  };
  add("penstock_worker_batches_total", Type::counter, "Batches that this worker has closed.",
      [](const WorkerReport& worker) { return worker.batches; });
  add("penstock_worker_idle_seconds_total", Type::counter,
      "Time in which this worker had nothing to do. 1 less its rate is how busy the worker is.",
      [](const WorkerReport& worker) { return seconds_of(worker.idle); });
  add("penstock_worker_queue_bytes", Type::gauge, "Bytes of the frames in this worker's waiting queue.",
      [](const WorkerReport& worker) { return worker.queue.bytes; });
  add("penstock_worker_queue_capacity_bytes", Type::gauge, "The most bytes that this worker's waiting queue holds.",
      [](const WorkerReport& worker) { return worker.queue.capacity_bytes; });
  if (!report.shared_queue) return;
  out.gauge("penstock_shared_queue_bytes", "Bytes of packets in the queue that all workers share.",
            report.shared_queue->bytes);
  out.gauge("penstock_shared_queue_capacity_bytes", "The most bytes that the shared queue holds.",
            report.shared_queue->capacity_bytes);
}

void add_batches(Exposition& out, const RunReport& report) {
  const RunReport::Batches& batches = report.batches;
  out.family("penstock_batches_total", Type::counter, "Batches, by what closed them.");
  out.sample(batches.closed_by_size, {{"closed_by", "size"}});
  out.sample(batches.closed_by_time, {{"closed_by", "time"}});
  out.sample(batches.closed_by_end, {{"closed_by", "end"}});
  out.sample(batches.closed_by_idleness, {{"closed_by", "idleness"}});
  out.summary("penstock_batch_fill_ratio", "How full batches were when they were closed, 0 to 1.",
              batches.mean_fill * static_cast<double>(batches.count), batches.count);
}

void add_times(Exposition& out, const RunReport& report) {
  out.gauge("penstock_elapsed_seconds", "Time since the workers are ready for packets.", report.elapsed_s());
  out.counter("penstock_stack_cpu_seconds_total", "Time of workers in parsing.", seconds_of(report.stack_time));
  out.counter("penstock_send_cpu_seconds_total", "Time of workers in sending.", seconds_of(report.send_time));
  out.histogram("penstock_latency_seconds",
                "Time of packets from their arrival until their batch was handed to the ports.", report.latencies);
  out.histogram("penstock_forwarding_gap_seconds",
                "Times in which a worker had packets and sent none, one for each batch.", report.gaps.times);
  out.counter("penstock_reloads_total", "Reloads and rollbacks that were put in use.", report.reloads);
}

void add_gpu(Exposition& out, const RunReport& report, const RunFacts& facts) {
  if (!report.gpu) return;
  out.counter("penstock_pcie_to_device_bytes_total", "Bytes that crossed PCIe to GPUs.", report.bytes_to_device);
  out.counter("penstock_pcie_to_host_bytes_total", "Bytes that crossed PCIe from GPUs.", report.bytes_to_host);
  out.counter("penstock_gpu_segments_total", "Segments that were started on GPUs.", report.gpu->segments);
  out.counter("penstock_gpu_punted_packets_total", "Packets that GPU stages left to the CPU.", report.gpu->punted);
  out.counter("penstock_gpu_failed_segments_total", "Segments that failed on a GPU; the CPU processed them instead.",
              report.gpu->failures);
  out.counter("penstock_gpu_lost_lanes_total", "Lanes that were disabled after repeated failures.",
              report.gpu->lanes_lost);
  if (const auto& proxy = report.gpu->proxy) {
    out.gauge("penstock_gpu_proxy_connected", "Whether the run has its lanes in the proxy now, 0 or 1.",
              proxy->connected ? 1.0 : 0.0);
    out.counter("penstock_gpu_proxy_losses_total", "How often the run has lost the proxy.", proxy->losses);
    out.counter("penstock_gpu_proxy_lost_seconds_total", "Time on the CPU because the proxy was lost.",
                seconds_of(proxy->without));
  }
  out.gauge("penstock_gpu_memory_bytes", "GPU memory that the run holds.", report.gpu->memory_bytes);
  out.gauge("penstock_gpu_memory_most_bytes", "The most GPU memory that the run held so far.",
            report.gpu->most_memory_bytes);
  out.family("penstock_gpu_busy_ratio", Type::gauge,
             "Part of the driver's last sampling period in which a kernel of any process was running.");
  for (const auto& [gpu, use] : facts.gpu_use) out.sample(use, {{"gpu", std::to_string(gpu)}});
}

}  // namespace

std::string metrics_text(const RunReport* report, const RunFacts& facts) {
  Exposition out;
  add_process(out, facts);
  if (report == nullptr) return std::move(out).take();
  add_totals(out, *report);
  add_ports(out, *report, facts);
  add_functions(out, *report);
  add_function_details(out, report->functions);
  add_workers(out, *report);
  add_batches(out, *report);
  add_times(out, *report);
  add_gpu(out, *report, facts);
  return std::move(out).take();
}

}  // namespace penstock::report
