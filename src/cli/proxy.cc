// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/proxy.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text_file.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/proxy_advise.h"
#include "cli/proxy_status.h"
#include "cli/socket_access.h"
#include "cli/stop_signals.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/mps.h"
#include "nf/catalog.h"
#include "proxy/restart.h"
#include "proxy/server.h"

namespace penstock::cli {

namespace {

// As of `run.proxy_rate`; `--on-device` as of a batch.
constexpr std::string_view kLeastRate = "100Mbps", kMostRate = "100Tbps", kRates = "100Mbps..100Tbps";
constexpr std::string_view kLeastOnDevice = "64KiB", kLeastHostMemory = "1MiB";

/// As `whole_number`, for a size such as 1GiB, of at least this one.
CLI::Validator size_from(std::string_view least) {
  return {[least = std::string(least)](std::string& text) {
            const auto size = parse_size(text);
            if (size && *size >= parse_size(least)) return std::string();
            return fmt::format("wrong value: found {}, expected a size of {} or more", in_quotes(text), least);
          },
          ""};
}

/// … and for bits per second, in this range.
CLI::Validator bits_per_second_in(std::string_view least, std::string_view most) {
  return {[least = std::string(least), most = std::string(most)](std::string& text) {
            const auto rate = parse_rate(text);
            if (rate && rate->unit == Rate::Unit::bits_per_second && rate->value >= parse_rate(least)->value &&
                rate->value <= parse_rate(most)->value)
              return std::string();
            return fmt::format("wrong value: found {}, expected bits per second in {}..{}, such as 10Gbps",
                               in_quotes(text), least, most);
          },
          ""};
}

struct ServeOptions {
  std::string socket;
  int gpu = 0;
  std::string scheduler = "weighted";
  std::string profile = "1q";
  std::string host_memory = "4GiB";
  std::string on_device = fmt::format("{}MiB", proxy::Scheduler::Device{}.most_bytes >> 20);
  std::string rate = "400Gbps";
  std::string unit_rate, user_rate;  // "": no limit
  unsigned batches = 0;
  std::string multiprocessors = "all";
  SocketAccess access;
  unsigned user_units = proxy::Profile::kWhole;
  std::string mps;  // the folder; "": without
  unsigned mps_share = 100;
};

Result<proxy::ServerSettings> settings_of(const ServeOptions& options) {
  Errors errors;
  proxy::ServerSettings settings;
  settings.path = options.socket;
  settings.batches = options.batches;
  settings.user_units = options.user_units;
  settings.multiprocessors =
      proxy::multiprocessor_shares_named(options.multiprocessors).value_or(proxy::MultiprocessorShares::all);
  settings.policy = proxy::policy_named(options.scheduler).value_or(proxy::Policy::weighted);
  settings.profile = proxy::Profile::named(options.profile).value_or(proxy::Profile{});
  // The options' validators have checked these.
  const auto bytes_per_second = [](const std::string& text) {
    return text.empty() ? 0 : static_cast<std::uint64_t>(parse_rate(text).value_or(Rate{}).value / 8);
  };
  settings.host_bytes = parse_size(options.host_memory).value_or(0);
  settings.device.most_bytes = parse_size(options.on_device).value_or(0);
  settings.device.bytes_per_second = parse_rate(options.rate).value_or(Rate{}).value / 8;
  settings.unit_bytes_per_second = bytes_per_second(options.unit_rate);
  settings.user_bytes_per_second = bytes_per_second(options.user_rate);
  const SocketAccess::Checked access = options.access.check(errors);
  settings.mode = access.mode;
  settings.users = access.users;
  settings.groups = access.groups;
  if (!errors.empty()) return failure(std::move(errors));
  return settings;
}

/// Null: without. This process becomes a client itself.
Result<std::unique_ptr<gpu::Mps>> start_mps(const std::string& folder, const std::atomic<bool>& stop) {
  if (folder.empty()) return std::unique_ptr<gpu::Mps>();
  auto mps = gpu::Mps::start(folder, stop);
  if (!mps) return mps;
  if (auto joined = gpu::join_mps((*mps)->folder()); !joined) return failure(std::move(joined.error()));
  log_info("MPS runs; for its clients: {}", gpu::mps_environment((*mps)->folder()));
  return mps;
}

int serve(const ServeOptions& options) {
  Log::of_process().keep_records();
  proxy::Inheritance inherited = proxy::take_inheritance(options.socket);
  auto settings = settings_of(options);
  if (!settings) return refuse(settings.error());
  const std::atomic<bool>& stop = stop_on_signals(HangUp::ignored);
  // Each lane has descriptors.
  if (rlimit limit{}; ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
  }
  const auto mps = start_mps(options.mps, stop);
  if (!mps) return fail(mps.error());
  gpu::load_kernels_at_once();
  std::unique_ptr<proxy::Backend> backend;
  try {
    backend = proxy::make_gpu_backend(options.gpu, nf::remote_kernels());
  } catch (const gpu::CudaError& error) {
    return refuse({{{},
                    fmt::format("--gpu: {}", error.what()),
                    std::to_string(options.gpu),
                    "a usable GPU; `penstock doctor` has details"}});
  }
  if (*mps != nullptr && options.mps_share < 100) {
    if (const auto limited = (*mps)->limit_clients(options.mps_share); !limited) return fail(limited.error());
  }
  const std::string device = backend->device();
  const std::uint64_t restarts = inherited.restarts;
  auto server = proxy::Server::start(std::move(*settings), std::move(backend), std::move(inherited));
  if (!server) return fail(server.error());
  log_info("the proxy of {} listens at {}{}", device, options.socket,
           restarts == 0 ? "" : fmt::format(", restart {}", restarts));
  const auto served = proxy::serve(**server, stop);
  const int exit_code = served ? kDone : fail(served.error());
  if (served) log_info("the proxy of {} ends", device);
  const proxy::EndLimit limit(**server, options.socket);
  server->reset();
  return exit_code;
}

}  // namespace

void add_proxy(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("proxy", "Share a GPU among several runs");
  command->require_subcommand(1);

  auto options = std::make_shared<ServeOptions>();
  CLI::App* const server = command->add_subcommand(
      "serve", "Own a GPU, and run lanes for the runs that connect (`penstock run --proxy SOCKET`)");
  server->add_option("SOCKET", options->socket, "the unix socket to listen on")->required()->check(not_empty("a path"));
  server->add_option("--gpu", options->gpu, "index of the GPU")->check(whole_number(0, 255))->capture_default_str();
  server->add_option("--scheduler", options->scheduler, "how tenants share the GPU")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(proxy::kPolicyNames), std::end(proxy::kPolicyNames))))
      ->capture_default_str();
  server->add_option("--profile", options->profile, "sixteenths of the GPU for tenants that ask for none")
      ->check(CLI::IsMember({"1q", "2q", "4q", "8q", "16q"}))
      ->capture_default_str();
  server->add_option("--batches", options->batches, "most batches of a tenant on the GPU at a time; 0: no limit")
      ->check(whole_number(0, 4096))
      ->capture_default_str();
  server
      ->add_option("--multiprocessors", options->multiprocessors,
                   "how the GPU's multiprocessors are divided between tenants")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(proxy::kMultiprocessorSharesNames),
                                                     std::end(proxy::kMultiprocessorSharesNames))))
      ->capture_default_str();
  server
      ->add_option("--on-device", options->on_device,
                   fmt::format("most bytes of all tenants on the GPU at a time ({} or more), unless one batch has "
                               "more, or with best-effort three",
                               kLeastOnDevice))
      ->type_name("SIZE")
      ->check(size_from(kLeastOnDevice))
      ->capture_default_str();
  server
      ->add_option("--rate", options->rate,
                   fmt::format("what the GPU carries in both directions, for the scheduler `fixed` ({})", kRates))
      ->type_name("RATE")
      ->check(bits_per_second_in(kLeastRate, kMostRate))
      ->capture_default_str();
  server
      ->add_option("--host-memory", options->host_memory,
                   fmt::format("most host memory of a tenant that the GPU may access ({} or more)", kLeastHostMemory))
      ->type_name("SIZE")
      ->check(size_from(kLeastHostMemory))
      ->capture_default_str();
  options->access.add_to(*server, "be a tenant");
  server
      ->add_option("--user-units", options->user_units,
                   "most sixteenths of the GPU that the tenants of a user may have")
      ->check(whole_number(1, proxy::Profile::kWhole))
      ->capture_default_str();
  server
      ->add_option(
          "--unit-rate", options->unit_rate,
          fmt::format(
              "most bits per second to and from the GPU for each sixteenth that a tenant has ({}); default: no limit",
              kRates))
      ->type_name("RATE")
      ->check(bits_per_second_in(kLeastRate, kMostRate));
  server
      ->add_option(
          "--user-rate", options->user_rate,
          fmt::format("most bits per second to and from the GPU of all tenants of a user ({}); default: no limit",
                      kRates))
      ->type_name("RATE")
      ->check(bits_per_second_in(kLeastRate, kMostRate));
  CLI::Option* const mps = server
                               ->add_option("--mps", options->mps,
                                            "start NVIDIA's MPS, with its pipes and logs in this folder, so that other "
                                            "CUDA processes on this GPU run at the same time as the proxy")
                               ->type_name("DIR")
                               ->check(not_empty("a folder"));
  server
      ->add_option("--mps-share", options->mps_share,
                   "most percent of the GPU's multiprocessors for each of the other clients of MPS")
      ->type_name("PERCENT")
      ->check(whole_number(1, 100))
      ->needs(mps)
      ->capture_default_str();
  server->footer(
      "Schedulers: best-effort: first come, first served; equal: the same for all tenants that want to; fixed: each\n"
      "tenant's profile, and what it leaves is idle; weighted: by profile, and tenants borrow what others leave;\n"
      "deadline: like weighted, but by time on the GPU, and with as much reserved for tenants with a\n"
      "`run: {proxy_latency: …}` as keeps this bound.\n"
      "Multiprocessors: all: kernels of each tenant may fill all; blocks: they launch no more blocks than its "
      "profile's\n"
      "part of the multiprocessors can hold; green-contexts: they run on multiprocessors of their own, which needs a\n"
      "driver for CUDA 12.5 or later.\n"
      "Signals: SIGINT and SIGTERM end the proxy; the runs go on with the CPU until they find a proxy there again;\n"
      "a second one ends it at once. SIGHUP does nothing.\n"
      "If the GPU is lost, the program starts again in the same process.");
  server->callback([options, &exit_code] { exit_code = serve(*options); });

  struct Question {
    std::string socket, scheduler;
    bool json = false, prometheus = false;
  };
  auto question = std::make_shared<Question>();
  CLI::App* const status = command->add_subcommand("status", "Show the tenants of a proxy, and what they use");
  status->add_option("SOCKET", question->socket, "the proxy's socket")->required()->check(not_empty("a path"));
  CLI::Option* const json = status->add_flag("--json", question->json, "print JSON instead of a table");
  status->add_flag("--prometheus", question->prometheus, "print metrics in the text format of Prometheus")
      ->excludes(json);
  status->callback([question, &exit_code] {
    const auto text = proxy::ask_for_status(question->socket, question->prometheus);
    if (!text) {
      exit_code = fail(text.error());
    } else if (const auto table = question->prometheus ? check_metrics(question->socket, *text)
                                                       : status_table(question->socket, *text);
               !table) {
      exit_code = fail(table.error());
    } else {
      fmt::print("{}", question->json || question->prometheus ? *text : *table);
    }
  });

  CLI::App* const set = command->add_subcommand("set", "Change the scheduler of a proxy while it runs");
  set->add_option("SOCKET", question->socket, "the proxy's socket")->required()->check(not_empty("a path"));
  set->add_option("--scheduler", question->scheduler, "how tenants share the GPU")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(proxy::kPolicyNames), std::end(proxy::kPolicyNames))));
  set->callback([question, &exit_code] {
    const auto done = proxy::ask_for_policy(question->socket, *proxy::policy_named(question->scheduler));
    if (!done) exit_code = fail(done.error());
  });

  add_proxy_advise(*command, exit_code);
}

}  // namespace penstock::cli
