// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What it costs to have the functions of a chain in processes of their own (src/process), and what it gains. Measures
// whole runs of one worker, from a generator to the null port.
//
// Axes: the chain (filter; C3: firewall, nids, router; C4: the same and ipsec outbound), frame size, and arrangement:
//   one_process        all functions in the chain's process, on the CPU
//   processes          each in its own; router and ipsec get copies of packets
//   processes_in_place the same, but the router changes packets where they are, as in Gaviss
//   one_process_gpu    all in one process, on the first GPU, if there is one
//   one_process_proxy  the same, but the GPU is that of a proxy, a process of its own
//   processes_proxy    each function in its own process, with its tables in the proxy, so that its stage runs there, on
//                      the lanes of the chain; what that of nids finds is confirmed by its process once packets have
//                      left, and that of ipsec decides about them before
// rate: as many packets as it takes. latency: 100,000 packets a second; p50 and p99, from arrival to departure, in us.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "config/chain_file.h"
#include "config/function_file.h"
#include "experiments/program.h"
#include "experiments/workload.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "nf/catalog.h"
#include "process/server.h"
#include "proxy/backend.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/table_granter.h"
#include "run/run.h"

namespace penstock {
namespace {

using experiments::Program;
using experiments::Workplace;

constexpr const char* kState =
    "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi 0x00000100 reqid 1 mode tunnel\n\treplay-window 32 \n"
    "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
    "\tenc cbc(aes) 0x202122232425262728292a2b2c2d2e2f\n";
constexpr const char* kPolicy =
    "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
    "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n";
constexpr std::size_t kRules = 1000, kSignatures = 147, kRoutes = 10'000;

struct Function {
  std::string name, parameters;
};

std::vector<Function> functions_of(const std::string& chain) {
  if (chain == "filter") return {{"filter", "expression: ip or ip6"}};
  std::vector<Function> functions{{"firewall", "rules: rules"},
                                  {"nids", "rules: [signatures.rules], tracking: packets"},
                                  {"router", "routes: routes"}};
  if (chain == "C4") functions.push_back({"ipsec", "state: state, policy: policy, state_dir: none"});
  return functions;
}

/// Another process of this program, once it listens at a socket.
Program start_server(const Workplace& place, const std::string& name, const std::string& socket,
                     const std::vector<std::string>& arguments) {
  std::error_code none;
  std::filesystem::remove(socket, none);
  std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto program = Program::start(words, place.path(name + ".txt"));
  if (!program) throw std::runtime_error(to_string(program.error()));
  while (!std::filesystem::is_socket(socket, none)) {
    if (program->ended_within(std::chrono::milliseconds{5}))
      throw std::runtime_error(name + ": the process ends at once");
  }
  return std::move(*program);
}

/// The functions of a chain that are processes, which end with this object. `proxy`: its socket; empty: they have none.
class Served {
 public:
  Served(const Workplace& place, const std::vector<Function>& functions, const std::string& proxy) {
    for (const Function& function : functions) {
      const std::string file =
          place.put(function.name + ".yaml", fmt::format("chain: [{}: {{{}}}]\n", function.name, function.parameters));
      const std::string socket = socket_of(place, function);
      programs_.push_back(start_server(place, function.name, socket, {"--serve", socket, file, proxy}));
    }
  }
  static std::string socket_of(const Workplace& place, const Function& function) {
    return place.path(function.name + ".sock");
  }

 private:
  std::vector<Program> programs_;
};

/// Holds the files of all chains.
Workplace& workplace() {
  static Workplace place;
  static const bool filled = [] {
    place.put("rules", experiments::rules_text(kRules));
    place.put("signatures.rules", experiments::detection_rules_text(kSignatures, true));
    place.put("routes", experiments::routes_text(kRoutes));
    place.put("state", kState);
    place.put("policy", kPolicy);
    return true;
  }();
  static_cast<void>(filled);
  return place;
}

report::RunReport run_chain(const std::string& yaml) {
  const auto loaded_from = workplace().put("chain.yaml", yaml);
  auto loaded = config::load_chain(loaded_from, {});
  if (!loaded) throw std::runtime_error(to_string(loaded.error()));
  if (run::RunSettings& settings = loaded->chain.settings; !settings.proxy.empty()) {
    auto lanes = proxy::remote_lanes(settings.proxy, {"chain", "8q"});
    if (!lanes) throw std::runtime_error(to_string(lanes.error()));
    settings.remote = std::move(*lanes);
  }
  const std::atomic<bool> stop{false};
  auto result = run::run(loaded->chain, {}, stop);
  if (!result) throw std::runtime_error(to_string(result.error()));
  return result->report;
}

void measure(benchmark::State& state, const std::string& chain, const std::string& arrangement, unsigned size,
             bool at_full_rate) {
  const bool apart = arrangement.starts_with("processes");
  const bool proxied = arrangement.ends_with("_proxy");
  const std::vector<Function> functions = functions_of(chain);
  std::optional<Served> served;
  const std::string socket = proxied ? workplace().path("proxy.sock") : "";
  std::optional<Program> proxy;
  if (proxied) proxy.emplace(start_server(workplace(), "proxy", socket, {"--proxy", socket}));
  if (apart) served.emplace(workplace(), functions, socket);
  std::string items;
  for (const Function& function : functions) {
    const bool in_place = function.name == "router" && arrangement == "processes_in_place";
    const bool waits = function.name == "nids" && proxied;  // as in one process, which only raises alerts
    items += fmt::format("  - {}: {{{}}}\n", function.name,
                         apart ? fmt::format("process: {}, in_place: {}{}", Served::socket_of(workplace(), function),
                                             in_place, waits ? ", when_lost: pass" : "")
                               : function.parameters);
  }
  const std::string yaml = fmt::format(
      "ports:\n  lan: {{generator: {{size: {}, flows: 10000, destinations: routes{}}}}}\n  wan: {{'null': {{}}}}\n"
      "chain:\n{}run: {{processor: {}, duration: {}ms, workers: 1{}}}\n",
      size, at_full_rate ? "" : ", rate: 100kpps", items,
      proxied                            ? "auto"
      : arrangement == "one_process_gpu" ? "gpu"
                                         : "cpu",
      at_full_rate ? 500 : 1000, proxied ? ", proxy: " + socket : "");
  double packets = 0, bytes = 0, seconds = 0;
  for (auto _ : state) {
    const report::RunReport report = run_chain(yaml);
    std::uint64_t lost = 0;
    for (const auto& function : report.functions) {
      if (function.details.contains("process"))
        lost += function.details["process"]["lost_packets"].get<std::uint64_t>();
    }
    if (lost > 0) return state.SkipWithError("a process was lost");
    state.SetIterationTime(report.elapsed_s());
    packets += static_cast<double>(report.in.packets);
    bytes += static_cast<double>(report.in.bytes);
    seconds += report.elapsed_s();
    if (at_full_rate) continue;
    state.counters["p50_us"] = report.latency("p50");
    state.counters["p99_us"] = report.latency("p99");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["Mpps"] = packets / seconds / 1e6;
}

void add_all() {
  std::vector<std::string> arrangements{"one_process", "processes", "processes_in_place"};
  if (!gpu::list_devices().devices.empty())
    arrangements.insert(arrangements.end(), {"one_process_gpu", "one_process_proxy", "processes_proxy"});
  for (const std::string chain : {"filter", "C3", "C4"}) {
    for (const unsigned size : {64U, 512U, 1514U}) {
      for (const std::string& arrangement : arrangements) {
        // The filter only looks, and is one function.
        if (chain == "filter" && arrangement == "processes_in_place") continue;
        for (const bool at_full_rate : {true, false}) {
          if (!at_full_rate && size != 512) continue;
          benchmark::RegisterBenchmark(
              fmt::format("{}/{}/{}B/{}", at_full_rate ? "rate" : "latency", chain, size, arrangement).c_str(),
              [=](benchmark::State& state) { measure(state, chain, arrangement, size, at_full_rate); })
              ->Unit(benchmark::kMillisecond)
              ->Iterations(3)
              ->UseManualTime();
        }
      }
    }
  }
}

/// The signals that end a server.
sigset_t ends() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  return signals;
}

/// Before threads start, which inherit this.
void block_ends() {
  const sigset_t signals = ends();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void wait_for_end() {
  const sigset_t signals = ends();
  int signal = 0;
  ::sigwait(&signals, &signal);
}

/// As `penstock proxy serve` does, until SIGTERM.
int serve_gpu(const std::string& socket) {
  block_ends();
  proxy::ServerSettings settings;
  settings.path = socket;
  try {
    const auto server = proxy::Server::start(std::move(settings), proxy::make_gpu_backend(0, nf::remote_kernels()));
    if (!server) return fmt::print(stderr, "{}\n", to_string(server.error())), 1;
    wait_for_end();
  } catch (const gpu::CudaError& error) {
    return fmt::print(stderr, "{}\n", error.what()), 1;
  }
  return 0;
}

/// As `penstock function serve` does, until SIGTERM. `proxy_socket`: empty: none.
int serve(const std::string& socket, const std::string& path, const std::string& proxy_socket) {
  block_ends();
  const auto file = config::FunctionFile::load(path, nf::catalog());
  if (!file) return fmt::print(stderr, "{}\n", to_string(file.error())), 2;
  const auto make =
      [&](std::string_view kind,
          const process::Surroundings& surroundings) -> Result<std::unique_ptr<function::NetworkFunction>> {
    auto made = (*file)->make(kind, surroundings);
    if (!made) return failure(made.error());
    return std::move(made->function);
  };
  std::optional<proxy::TableGranter> granter;
  if (!proxy_socket.empty()) granter.emplace(proxy_socket, proxy::TenantWish{socket}, nf::remote_kernels());
  const auto server =
      process::Server::start({.path = socket, .mode = 0600, .granter = granter ? &*granter : nullptr}, make);
  if (!server) return fmt::print(stderr, "{}\n", to_string(server.error())), 1;
  wait_for_end();
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 5 && words[1] == "--serve") return penstock::serve(words[2], words[3], words[4]);
  if (words.size() == 3 && words[1] == "--proxy") return penstock::serve_gpu(words[2]);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  penstock::add_all();
  benchmark::RunSpecifiedBenchmarks();
}
