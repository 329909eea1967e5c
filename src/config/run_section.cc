// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/run_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <utility>

#include "base/cpu_topology.h"
#include "base/text_file.h"
#include "base/units.h"
#include "config/file_conflicts.h"
#include "function/granted_stage.h"
#include "plan/device_plan.h"
#include "process/remote_function.h"
#include "ring/packet_ring.h"
#include "run/device_run.h"
#include "run/placement.h"

namespace penstock::config {

namespace {

constexpr std::size_t kMostWorkers = 256;

constexpr auto kRun = std::to_array<Parameter>({
    {"processor", ParameterType::choice, "auto", function::kProcessorChoices,
     "where functions with a GPU stage run, unless they have a `processor` of their own; auto: on a GPU if there is "
     "one"},
    {"gpus", ParameterType::integers, "", "0..255", "indices of the GPUs to use; default: the first"},
    {"proxy", ParameterType::text, "", "",
     "unix socket of a `penstock proxy serve`, on whose GPU the functions run; not with `processor: cpu`"},
    {"proxy_profile", ParameterType::choice, "", "1q|2q|4q|8q|16q",
     "sixteenths of the proxy's GPU to ask for; default: what the proxy gives"},
    {"proxy_latency", ParameterType::duration, "", "1us..10s",
     "longest time that a batch should take in the proxy, waiting included, which its scheduler `deadline` tries to "
     "keep; default: no bound"},
    {"proxy_memory", ParameterType::size, "", "1MiB..16TiB",
     "most memory on the proxy's GPU; default: what the profile has"},
    {"proxy_batches", ParameterType::integer, "", "1..4096",
     "most batches on the proxy's GPU at a time; default, and never more: `streams` of all workers"},
    {"proxy_rate", ParameterType::rate, "", "100Mbps..100Tbps",
     "most bits per second to and from the proxy's GPU, both together; default: what the proxy allows"},
    {"workers", ParameterType::integer, "1", "1..256",
     "number of threads, each with its own queues, ring and stages; with `cores`, their number is the default"},
    {"cores", ParameterType::cpus, "", "",
     "logical CPUs to bind the workers to, one for each worker in this order; default: with a GPU, those of its NUMA "
     "node"},
    {"batch.bytes", ParameterType::size, "", "64KiB..1GiB",
     "maximum size of a batch; default: 512KiB, on a GPU 4MiB or less as `latency` and `rate` require"},
    {"batch.packets", ParameterType::integer, "", "1..1048576",
     "maximum number of packets in a batch; default: 512, on a GPU 16384"},
    {"batch.timeout", ParameterType::duration, "500us", "0..10s", "close a batch after this time, full or not"},
    {"batch.close", ParameterType::choice, "early", "early|full",
     "when a batch is closed. early: also when a device is idle or interfaces are quiet; full: only by its size and "
     "`batch.timeout`"},
    {"latency", ParameterType::duration, "", "1us..10s",
     "longest time that a batch waits for more packets; on a GPU, also limits batches to what arrives in this time at "
     "`rate`"},
    {"rate", ParameterType::rate, "", "1Mbps..100Tbps",
     "target rate of the whole chain, for `latency` and `gpu_shares: auto`; default: 400Gbps for each GPU"},
    {"streams", ParameterType::integer, "3", "1..64",
     "batches in flight on the GPU, for each worker; with `queueing: shared`, for all workers together; at a `proxy`, "
     "another one waits for a worker with one, unless there is a `proxy_latency` or `transfer` is direct"},
    {"transfer", ParameterType::choice, "auto", "auto|direct|streamed|zero_copy",
     "how batches cross PCIe. direct: one at a time; streamed: several at once; zero_copy: kernels access host memory; "
     "auto: streamed, and zero_copy for small batches"},
    {"frames", ParameterType::choice, "planned", "planned|whole",
     "which parts of a frame cross PCIe: those in the transfer plan, or all"},
    {"sharing", ParameterType::choice, "packets", "packets|parsing|stack|none",
     "what functions share. packets: packets on the GPU. The others are for comparison, and each function transfers "
     "its "
     "own packets. parsing: parsed headers; stack: the host's protocol stack; none: nothing"},
    {"launches", ParameterType::choice, "collected", "collected|separate",
     "how batches below 2MiB are launched on the GPU. collected: as a CUDA graph (of several workers of a "
     "GPU, only those from 256KiB on); separate: for comparison, each kernel and each copy by itself"},
    {"finish", ParameterType::choice, "deferred", "deferred|immediate",
     "when the host evaluates what the GPU has found, if that decides about no packet. deferred: once the batch has "
     "left; immediate: for comparison, before"},
    {"gpu_shares", ParameterType::text, "whole", "",
     "GPU multiprocessors for each function. whole: no limit; `nids=66,ipsec=33`: these numbers; auto: chosen by "
     "measurement at the start, for `rate` and `latency`"},
    {"queueing", ParameterType::choice, "per_worker", "per_worker|shared",
     "per_worker: each worker receives its own flows; shared: one more thread receives all packets into one queue, "
     "from "
     "which workers take them in any order, and only size and time close a batch"},
    {"queue.bytes", ParameterType::size, "128MiB", "64KiB..64GiB",
     "size of a worker's waiting queue, or of the shared one; when it is full, packets are dropped and counted"},
    {"polling", ParameterType::choice, "adaptive", "adaptive|busy",
     "how a worker waits for packets of interfaces. adaptive: sleeps while there are none; busy: polls all the time, "
     "for "
     "the lowest latency"},
    {"duration", ParameterType::duration, "0", "0..8760h", "stop after this time; 0: run until the sources end"},
});

}  // namespace

ParameterTable run_parameters() { return kRun; }

RunSection::RunSection(const ChainDescription& description, run::Chain& chain, Errors& errors, Errors& without_effect)
    : description_(description),
      run_(description.run),
      chain_(chain),
      settings_(chain.settings),
      errors_(errors),
      without_effect_(without_effect) {
  for (const RawParameter& given : description.run_given) {
    if (given.name == "processor" && given.items == std::vector<std::string>{"gpu"}) gpu_asked_ = given.place;
    if (given.name == "queue.bytes") queue_place_ = given.place;
    if (given.name == "workers") workers_place_ = given.place;
  }
}

void RunSection::set_basics() {
  if (!run_) return;
  settings_.workers = static_cast<unsigned>(run_->integer("workers"));
  if (run_->has("cores")) take_cores();
  settings_.batch_timeout = run_->duration("batch.timeout");
  settings_.closes_early = run_->text("batch.close") == "early";
  settings_.queue_bytes = run_->integer("queue.bytes");
  settings_.duration = run_->duration("duration");
  if (run_->text("polling") == "busy") settings_.polling = run::Polling::busy;
  if (run_->text("queueing") == "shared") settings_.queueing = run::Queueing::shared;
  if (run_->has("latency")) {
    settings_.latency = run_->duration("latency");
    settings_.batch_timeout = std::min(settings_.batch_timeout, settings_.latency);
  }
  if (run_->has("rate")) settings_.bits_per_second = run_->rate("rate").value;
  settings_.streams = static_cast<unsigned>(run_->integer("streams"));
  if (run_->text("transfer") == "direct") settings_.transfer = run::Transfer::direct;
  if (run_->text("transfer") == "zero_copy") settings_.transfer = run::Transfer::zero_copy;
  if (run_->text("transfer") == "streamed") settings_.transfer = run::Transfer::streamed;
  if (run_->text("sharing") == "none") settings_.sharing = plan::Sharing::none;
  if (run_->text("sharing") == "stack") settings_.sharing = plan::Sharing::stack;
  if (run_->text("sharing") == "parsing") settings_.sharing = plan::Sharing::parsing;
  settings_.collects_launches = run_->text("launches") == "collected";
  settings_.defers_finish = run_->text("finish") == "deferred";
  if (run_->text("frames") == "whole") settings_.whole_frames = plan::WholeFrames::always;
}

/// One core for each worker.
void RunSection::take_cores() {
  cores_ = run_->cpus("cores");
  const Place& place = run_->place("cores");
  if (!workers_place_) {
    settings_.workers = static_cast<unsigned>(std::min<std::size_t>(cores_.size(), kMostWorkers));
  }
  if (cores_.size() < settings_.workers) {
    errors_.push_back({place, "cores: fewer cores than workers", format_count(cores_.size(), "core"),
                       fmt::format("{}, one for each worker (workers: {})", format_count(settings_.workers, "core"),
                                   place_text(*workers_place_))});
    cores_.clear();
  } else if (cores_.size() > settings_.workers) {
    without_effect_.push_back({place, "cores: more cores than workers; the last ones are not used",
                               format_count(cores_.size(), "core"), format_count(settings_.workers, "core")});
    cores_.resize(settings_.workers);
  }
}

namespace {

/// An error for each reason for which workers cannot be bound to some of the cores.
Errors check_cores(const CpuList& cores, const CpuTopology& topology, const Place& place) {
  std::map<std::string, CpuList> by_reason;
  for (const unsigned core : cores) {
    if (std::string reason = topology.why_not_bindable(core); !reason.empty()) by_reason[reason].push_back(core);
  }
  Errors errors;
  for (const auto& [reason, wrong] : by_reason) {
    errors.push_back({place, "cores: " + reason, format_cpu_list(wrong),
                      fmt::format("cores of {}", format_cpu_list(topology.bindable()))});
  }
  return errors;
}

}  // namespace

void RunSection::place_workers(const std::filesystem::path& machine, bool only_plan) {
  if (!run_) return;
  const CpuTopology topology = read_cpu_topology(machine);
  Errors impossible = check_cores(cores_, topology, run_->has("cores") ? run_->place("cores") : Place());
  if (!impossible.empty()) {
    // A plan may be for another machine.
    append(only_plan ? settings_.placement.warnings : errors_, std::move(impossible));
    return;
  }
  settings_.placement = run::place_workers(topology, settings_.workers, cores_, gpu_places(only_plan));
  if (cores_.empty()) return;
  for (Errors* const remarks : {&settings_.placement.warnings, &settings_.placement.notes}) {
    for (Error& remark : *remarks) remark.place = run_->place("cores");
  }
}

/// The GPUs that workers use, or would use: a plan may be for a GPU that is not there.
std::vector<run::GpuPlace> RunSection::gpu_places(bool only_plan) {
  std::vector<run::GpuPlace> places;
  if (settings_.processor != function::Processor::gpu || !settings_.proxy.empty()) return places;
  if (!devices_) devices_ = gpu::list_devices();
  std::vector<int> indices = settings_.gpus;
  if (only_plan && run_->has("gpus")) {
    for (const std::uint64_t number : run_->integers("gpus")) indices.push_back(static_cast<int>(number));
  } else if (only_plan) {
    const auto supported = std::ranges::find(devices_->devices, true, &gpu::Device::supported);
    indices.push_back(supported == devices_->devices.end() ? 0 : supported->index);
  }
  for (const int index : indices) {
    const auto device = std::ranges::find(devices_->devices, index, &gpu::Device::index);
    places.push_back({index, device == devices_->devices.end() ? std::nullopt : device->numa_node});
  }
  return places;
}

void RunSection::note_without_effect(std::string_view name, std::string_view where) {
  const auto parameter = std::find_if(kRun.begin(), kRun.end(), [&](const Parameter& p) { return p.name == name; });
  if (!run_->has(name) || run_->text(name) == parameter->default_text) return;
  without_effect_.push_back(
      {run_->place(name), fmt::format("{} has no effect {}", name, where), in_quotes(run_->text(name)), ""});
}

/// A function that is to run on a device asks for one, as the whole chain does, unless the chain is to run on the CPU.
void RunSection::read_processors_of_functions() {
  const bool none_allowed = run_ && run_->text("processor") == "cpu";
  for (const FunctionDescription& function : description_.functions) {
    if (!function.parameters) continue;
    const auto processor = function::processor_named(function.parameters->text("processor"));
    if (!processor || !is_device(*processor)) continue;
    const Place& place = function.parameters->place("processor");
    if (!none_allowed) {
      if (!gpu_asked_) gpu_asked_ = place;
      continue;
    }
    errors_.push_back({place,
                       fmt::format("processor: not possible in a run on the CPU (run.processor: {})",
                                   place_text(run_->place("processor"))),
                       in_quotes(name(*processor)), "auto or cpu, or another run.processor"});
  }
}

void RunSection::choose_processor(bool only_plan, bool functions_known) {
  read_processors_of_functions();
  if (only_plan) {
    const bool proxied = run_ && run_->has("proxy") && run_->text("processor") != "cpu";
    settings_.processor = gpu_asked_ || proxied ? function::Processor::gpu : function::Processor::cpu;
  } else if (run_ && run_->has("proxy")) {
    if (run_->text("processor") != "cpu") settings_.processor = function::Processor::gpu;
  } else if (gpu_asked_ || (run_ && run_->text("processor") == "auto" && errors_.empty())) {
    if (auto gpus = usable_gpus(functions_known)) {
      settings_.processor = function::Processor::gpu;
      settings_.gpus = std::move(*gpus);
    } else if (gpu_asked_) {
      append(errors_, gpus.error());
    }
  }
  if (!run_) return;
  if (run_->has("proxy") && is_device(settings_.processor)) use_proxy(functions_known);
  const bool on_device = is_device(settings_.processor);
  settings_.batch_bytes = run_->has("batch.bytes") ? run_->integer("batch.bytes")
                          : on_device              ? most_batch_bytes_on_device()
                                                   : 512 << 10;
  settings_.batch_packets = run_->has("batch.packets") ? run_->integer("batch.packets") : on_device ? 16384 : 512;
  if (settings_.queue_bytes < settings_.batch_bytes) refuse_batch_beyond_queue();
  if (on_device) {
    if (run_->has("rate") && !run_->has("latency") && run_->text("gpu_shares") != "auto")
      note_without_effect("rate", "without latency");
    return;
  }
  for (const char* name :
       {"gpus", "proxy", "proxy_profile", "proxy_latency", "proxy_memory", "proxy_batches", "proxy_rate", "rate",
        "streams", "transfer", "frames", "sharing", "launches", "finish", "gpu_shares"})
    note_without_effect(name);
}

/// Functions whose stage cannot run in another process run on the CPU.
void RunSection::use_proxy(bool functions_known) {
  constexpr auto kGpu = function::Processor::gpu;
  const Place& place = run_->place("proxy");
  settings_.proxy = run_->text("proxy");
  if (settings_.proxy.empty()) errors_.push_back({place, "proxy: no socket", "''", "the path of a unix socket"});
  if (run_->has("proxy_profile")) settings_.proxy_profile = run_->text("proxy_profile");
  if (run_->has("proxy_latency")) settings_.proxy_latency = run_->duration("proxy_latency");
  if (run_->has("proxy_memory")) settings_.proxy_limits.memory = run_->integer("proxy_memory");
  if (run_->has("proxy_batches"))
    settings_.proxy_limits.batches = static_cast<unsigned>(run_->integer("proxy_batches"));
  if (run_->has("proxy_rate"))
    settings_.proxy_limits.bytes_per_second = static_cast<std::uint64_t>(run_->rate("proxy_rate").value / 8);
  note_without_effect("gpus", "with a proxy");
  if (run_->text("gpu_shares") == "auto") {
    errors_.push_back({run_->place("gpu_shares"), "gpu_shares: a proxy's GPU cannot be measured", "'auto'",
                       "whole, or multiprocessors for each function"});
  }
  settings_.needs_proxy = gpu_asked_.has_value();
  bool any = false;
  for (run::NamedFunction& named : chain_.functions) {
    if (named.function->traits().access_on(kGpu) == nullptr || named.processor == function::Processor::cpu) continue;
    if (function::granted_stage_of(*named.function) != nullptr || named.function->stage_recipe(kGpu)) {
      any = true;
      continue;
    }
    const bool demanded = named.processor == kGpu || run_->text("processor") == "gpu";
    if (demanded) {
      errors_.push_back({gpu_asked_.value_or(place), named.name + ": its GPU stage cannot run in a proxy", "'gpu'",
                         "auto or cpu, or a run without `proxy`"});
      any = true;
    } else {
      without_effect_.push_back({place, named.name + " runs on the CPU: its GPU stage cannot run in a proxy", "", ""});
      named.processor = function::Processor::cpu;
    }
  }
  if (any || !functions_known) return;
  settings_.processor = function::Processor::cpu;
  settings_.proxy.clear();
}

/// Reports the error at the value to correct: the one from the command line, or else the queue's if it was given. The
/// message also gives the place of the other value.
void RunSection::refuse_batch_beyond_queue() {
  const auto is_override = [](const Place& place) { return place.line == 0; };
  const auto batch_place = run_->has("batch.bytes") ? std::optional(run_->place("batch.bytes")) : std::nullopt;
  const auto in_bytes = [](std::size_t bytes) { return format_count(bytes) + " bytes"; };
  const auto other = [&](std::string_view name, std::size_t bytes, const std::optional<Place>& place) {
    return fmt::format("{} ({}; {})", name, in_bytes(bytes), place ? place_text(*place) : "its default");
  };
  if (batch_place && (!queue_place_ || (is_override(*batch_place) && !is_override(*queue_place_)))) {
    errors_.push_back({*batch_place, "batch.bytes: larger than the waiting queue", in_bytes(settings_.batch_bytes),
                       "at most " + other("queue.bytes", settings_.queue_bytes, queue_place_)});
  } else {
    errors_.push_back({queue_place_.value_or(Place{}), "queue.bytes: smaller than one batch",
                       in_bytes(settings_.queue_bytes),
                       "at least " + other("batch.bytes", settings_.batch_bytes, batch_place)});
  }
}

void RunSection::check_one_worker() {
  if (settings_.workers == 1) return;
  const auto refuse = [this](std::string why, std::string expected) {
    errors_.push_back({run_ ? run_->place("workers") : Place{}, "workers: " + std::move(why),
                       format_count(settings_.workers, "worker"), std::move(expected)});
  };
  bool is_first = true;  // that shares connections: packets are taken to their worker for all of them
  for (std::size_t f = 0; f < chain_.functions.size(); ++f) {
    const run::NamedFunction& named = chain_.functions[f];
    const function::NfTraits& traits = named.function->traits();
    if (traits.one_worker)
      refuse(named.name + " needs packets together that may come to different workers", "workers: 1");
    if (!traits.shares_connections || !std::exchange(is_first, false)) continue;
    if (const std::string why = why_not_handed_over(f); !why.empty()) {
      refuse(fmt::format("packets of {}'s connections may come to different workers, and cannot be handed over: {}",
                         named.name, why),
             is_device(settings_.processor) ? "workers: 1, or processor: cpu" : "workers: 1");
    }
    if (traits.connections && traits.connections->port_blocks) {
      // Otherwise the connections of a host that come to the workers without a block are all dropped.
      const unsigned per_host = traits.connections->port_blocks->per_host;
      if (per_host < settings_.workers)
        refuse(fmt::format("a host needs a block of ports in each, and gets {} by {}", per_host, named.name),
               fmt::format("at most {}, or a larger per_host", format_count(per_host, "worker")));
    }
  }
}

/// Why packets that come to another worker than their connection's cannot be taken there before any function has seen
/// them. Empty: they can be.
std::string RunSection::why_not_handed_over(std::size_t function) const {
  constexpr FieldSet kOfTuples{Field::ipv4_src,    Field::ipv4_dst,    Field::ipv6_src,   Field::ipv6_dst,
                               Field::l4_src_port, Field::l4_dst_port, Field::frame_shape};
  if (is_device(settings_.processor)) return "the chain runs on a GPU";
  for (const run::NamedPort& named : chain_.ports) {
    if (named.port != nullptr && named.port->reads() && named.port->is_recorded())
      return fmt::format("port {} reads a capture, in which a reply does not wait for the packet to which it replies",
                         named.name);
  }
  for (std::size_t before = 0; before < function; ++before) {
    const function::NfTraits& traits = chain_.functions[before].function->traits();
    if (!(traits.cpu.writes & kOfTuples).empty())
      return chain_.functions[before].name + ", which comes first, changes addresses or ports";
  }
  return {};
}

Errors RunSection::check_queueing() {
  Errors cautions;
  if (!run_ || settings_.queueing == run::Queueing::per_worker) return cautions;
  for (const char* name : {"polling", "batch.close"}) note_without_effect(name, "with `queueing: shared`");
  if (is_device(settings_.processor) && settings_.streams < settings_.workers) {
    cautions.push_back({run_->has("streams") ? run_->place("streams") : run_->place("queueing"),
                        "streams: fewer than workers, which have one each with `queueing: shared`",
                        std::to_string(settings_.streams), fmt::format("at least {}", settings_.workers)});
  }
  if (settings_.workers == 1) return cautions;
  for (const run::NamedFunction& named : chain_.functions) {
    const stack::StackNeed need = named.function->traits().stack;
    const bool follows_flows = need == stack::StackNeed::flow || need == stack::StackNeed::tcp_stream ||
                               named.function->traits().connections || process::follows_flows(*named.function);
    if (follows_flows) {
      errors_.push_back(
          {run_->place("queueing"),
           fmt::format("queueing: {} follows flows, whose packets would go to different workers", named.name),
           "'shared' with " + format_count(settings_.workers, "worker"),
           "per_worker, one worker, or a function without flows"});
    } else if (need == stack::StackNeed::ip_reassembly) {
      cautions.push_back(
          {run_->place("queueing"),
           fmt::format("queueing: {} joins fragments, and those of a datagram may go to different workers, "
                       "which do not join them",
                       named.name),
           "'shared' with " + format_count(settings_.workers, "worker"), "per_worker, or one worker"});
    }
  }
  return cautions;
}

void RunSection::set_gpu_shares(bool functions_known) {
  if (!run_) return;
  const std::string& text = run_->text("gpu_shares");
  plan::GpuShares& shares = settings_.gpu_shares;
  if (text == "whole") return;
  if (text == "auto") {
    shares.choice = plan::GpuShares::Choice::automatic;
    return;
  }
  shares.choice = plan::GpuShares::Choice::given;
  shares.functions.resize(chain_.functions.size());
  for (const std::string_view item : split(text, ',')) set_gpu_share(item, functions_known);
}

void RunSection::set_gpu_share(std::string_view item, bool functions_known) {
  const auto wrong = [&](const std::string& message, std::string_view found, std::string expected) {
    errors_.push_back({run_->place("gpu_shares"), "gpu_shares: " + message, in_quotes(found), std::move(expected)});
  };
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    return wrong("wrong value", item, "whole, auto, or multiprocessors per function, such as nids=66,ipsec=33");
  const std::string name(trimmed(item.substr(0, equals)));
  const std::string number(trimmed(item.substr(equals + 1)));
  const auto multiprocessors = parse_integer(number);
  if (!multiprocessors || *multiprocessors == 0 || *multiprocessors > most_multiprocessors_) {
    return wrong(fmt::format("wrong number of multiprocessors for {}", name), number,
                 fmt::format("a whole number in 1..{}", most_multiprocessors_));
  }
  const auto can_have_share = [](const run::NamedFunction& f) {
    return f.function->traits().fills_gpu && f.processor != function::Processor::cpu;
  };
  std::vector<std::string_view> all;
  std::vector<std::string_view> with_share;
  std::vector<run::NamedFunction>& functions = chain_.functions;
  for (const run::NamedFunction& function : functions) {
    all.emplace_back(function.name);
    if (can_have_share(function)) with_share.emplace_back(function.name);
  }
  const auto found = std::ranges::find(functions, name, &run::NamedFunction::name);
  if (found == functions.end()) {
    // Functions with mistakes are missing.
    if (functions_known) wrong("no such function in the chain", name, expected_name(name, all));
    return;
  }
  if (!can_have_share(*found)) {
    return wrong(
        found->processor == function::Processor::cpu ? "this function runs on the CPU"
                                                     : "shares cannot limit this function's GPU stage",
        name,
        with_share.empty() ? "whole: no function of the chain can have a share" : expected_name(name, with_share));
  }
  plan::GpuShares::Share& share = settings_.gpu_shares.functions[static_cast<std::size_t>(found - functions.begin())];
  if (share.multiprocessors != 0) return wrong("given twice", name, "each function once");
  share.multiprocessors = static_cast<std::uint32_t>(*multiprocessors);
}

/// Limited by the latency bound, and by the size beyond which PCIe does not get faster.
std::size_t RunSection::most_batch_bytes_on_device() const {
  constexpr std::size_t kMost = 4 << 20;
  constexpr std::size_t kLeast = 64 << 10;
  if (settings_.latency.count() == 0) return kMost;
  const std::size_t all = ring::ring_bytes(settings_.wished_bits_per_second() / 8, settings_.latency);
  // Each worker has these batches in flight, one that waits, and one that is being filled.
  const std::size_t batches = std::size_t{settings_.workers} * (run::lanes_of(settings_, 0) + 2);
  return std::clamp(all / batches / kFrameAlignment * kFrameAlignment, kLeast, kMost);
}

/// The GPUs that the chain can run on, or why there are none. If the chain has mistakes, checks what is known of it.
Result<std::vector<int>> RunSection::usable_gpus(bool functions_known) {
  const Place place = gpu_asked_.value_or(Place{});
  const auto refuse = [&](std::string message) {
    return failure(Error{place, std::move(message), "'gpu'", "auto or cpu; `penstock doctor` has details"});
  };
  const auto has_stage = [](const run::NamedFunction& f) {
    return f.function->traits().access_on(function::Processor::gpu) != nullptr;
  };
  const auto runs_there = [&](const run::NamedFunction& f) {
    return has_stage(f) && f.processor != function::Processor::cpu;
  };
  if (functions_known && std::ranges::none_of(chain_.functions, runs_there)) {
    return refuse(std::ranges::any_of(chain_.functions, has_stage)
                      ? "all functions of the chain that have a GPU stage are to run on the CPU"
                      : "no function of the chain has a GPU stage");
  }
  devices_ = gpu::list_devices();
  const gpu::DeviceList& list = *devices_;
  if (list.availability != gpu::Availability::kUsable) return refuse("no GPU can be used here: " + list.reason);
  if (!functions_known || !run_) return std::vector<int>{};
  std::vector<int> there;
  for (const gpu::Device& device : list.devices) {
    if (device.supported) there.push_back(device.index);
  }
  const auto is_chosen = [&](const gpu::Device& device) {
    if (!run_->has("gpus")) return device.index == there.front();
    const std::vector<std::uint64_t>& numbers = run_->integers("gpus");
    return std::ranges::find(numbers, static_cast<std::uint64_t>(device.index)) != numbers.end();
  };
  for (const gpu::Device& device : list.devices) {
    if (!is_chosen(device)) continue;
    most_multiprocessors_ = std::min(most_multiprocessors_, static_cast<std::uint32_t>(device.multiprocessors));
  }
  if (!run_->has("gpus")) return std::vector<int>{there.front()};
  std::vector<int> chosen;
  for (const std::uint64_t number : run_->integers("gpus")) {
    const int index = static_cast<int>(number);
    if (std::ranges::find(there, index) == there.end()) {
      return failure(Error{run_->place("gpus"), "no such GPU, or this program has no code for it",
                           std::to_string(index), fmt::format("one of {}", fmt::join(there, ", "))});
    }
    chosen.push_back(index);
  }
  return chosen;
}

}  // namespace penstock::config
