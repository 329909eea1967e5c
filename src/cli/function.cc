// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/function.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "cli/chain_arguments.h"
#include "cli/socket_access.h"
#include "cli/stop_signals.h"
#include "config/function_file.h"
#include "gpu/mps.h"
#include "nf/catalog.h"
#include "nf/firewall/firewall.h"
#include "nf/router/router.h"
#include "process/server.h"
#include "proxy/table_granter.h"

namespace penstock::cli {

namespace {

struct ServeOptions {
  std::string socket, file;
  std::string proxy, proxy_profile;  // empty: none; what the proxy gives
  std::string mps;                   // the folder of the daemon; "": without
  SocketAccess access;
};

/// What follows tables of the kernel runs beside the chain.
bool follows_kernel(const function::NetworkFunction& function) {
  const auto* const router = dynamic_cast<const router::Router*>(&function);
  const auto* const firewall = dynamic_cast<const firewall::Firewall*>(&function);
  return (router != nullptr && router->from_kernel().any()) || (firewall != nullptr && firewall->from_kernel());
}

void log_warnings(const config::FunctionFile::Made& made) {
  constexpr std::size_t kMost = 20;
  std::size_t count = 0;
  for (const Errors* const warnings : {&made.unsupported, &made.without_effect, &made.cautions}) {
    for (const Error& warning : *warnings) {
      if (++count <= kMost) log_warning("{}", to_string(warning));
    }
  }
  if (count > kMost) log_warning("{} more warnings about the function", count - kMost);
}

/// A kernel that does not end holds up whatever waits for its device, such as destructors. The chains have lost the
/// connection by now.
[[noreturn]] void end_at_once(const std::string& file, std::string why) {
  const int exit_code =
      fail({Error{{file, 0, 0}, "the function has failed, so its process ends: " + std::move(why), "", ""}});
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

int serve(const ServeOptions& options, function::NfKinds functions) {
  Log::of_process().keep_records();
  constexpr std::chrono::milliseconds kLook{200};
  Errors errors;
  const SocketAccess::Checked access = options.access.check(errors);
  if (!errors.empty()) return refuse(errors);
  if (!options.mps.empty()) {
    if (const auto joined = gpu::join_mps(options.mps); !joined) return refuse(joined.error());
  }
  const std::atomic<bool>& stop = stop_on_signals(HangUp::reopens);
  RunSignals& signals = take_run_signals();
  auto file = config::FunctionFile::load(options.file, functions);
  if (!file) return refuse(file.error());
  if (const auto opened = (*file)->open_logs(); !opened) return fail(opened.error());
  const auto make =
      [&](std::string_view kind,
          const process::Surroundings& surroundings) -> Result<std::unique_ptr<function::NetworkFunction>> {
    auto made = (*file)->make(kind, surroundings);
    if (!made) return failure(std::move(made.error()));
    if (follows_kernel(*made->function))
      return failure(Error{{options.file, 0, 0},
                           "tables of the kernel cannot be followed in a process of its own",
                           "",
                           "tables from files"});
    log_warnings(*made);
    return std::move(made->function);
  };
  std::optional<proxy::TableGranter> granter;
  if (!options.proxy.empty())
    granter.emplace(
        options.proxy,
        proxy::TenantWish{fmt::format("{} at {}", (*file)->function(), options.socket), options.proxy_profile},
        nf::remote_kernels());
  auto server = process::Server::start(
      {options.socket, access.mode, access.users, access.groups, granter ? &*granter : nullptr}, make);
  if (!server) return fail(server.error());
  log_info("{} is served at {}", (*file)->function(), options.socket);
  while (!stop.load()) {
    std::this_thread::sleep_for(kLook);
    Log::of_process().report_left_out();
    if (signals.reopen_logs.exchange(false)) {
      print_errors((*file)->reopen_logs());
      if (const auto reopened = Log::of_process().reopen(); !reopened) print_errors(reopened.error());
      log_info("the logs are reopened");
    }
    if (std::string why = (*server)->why_failed(); !why.empty()) end_at_once(options.file, std::move(why));
  }
  server->reset();
  log_info("{} ends", (*file)->function());
  if (const Errors lost = (*file)->close_logs(); !lost.empty()) return fail(lost);
  return kDone;
}

}  // namespace

void add_function(CLI::App& app, function::NfKinds functions, int& exit_code) {
  CLI::App* const command = app.add_subcommand("function", "Run functions of a chain in processes of their own");
  command->require_subcommand(1);
  auto options = std::make_shared<ServeOptions>();
  CLI::App* const server =
      command->add_subcommand("serve", "Serve one network function to chains that name the socket (`process: SOCKET`)");
  server->add_option("SOCKET", options->socket, "the unix socket to listen on")->required()->check(not_empty("a path"));
  server->add_option("FILE", options->file, "a file with one function, as in a chain file: `chain: [firewall: {…}]`")
      ->required()
      ->check(not_empty("a path"));
  CLI::Option* const proxy =
      server
          ->add_option("--proxy", options->proxy,
                       "load the function's tables into the `penstock proxy serve` at this unix socket, on whose GPU "
                       "chains that use it run the function")
          ->check(not_empty("a path"));
  server
      ->add_option("--proxy-profile", options->proxy_profile,
                   "sixteenths of the proxy's GPU to ask for, which limit the memory of the tables (1q, 2q, 4q, 8q or "
                   "16q; default: what the proxy gives)")
      ->needs(proxy)
      ->check(CLI::IsMember({"1q", "2q", "4q", "8q", "16q"}));
  server
      ->add_option("--mps", options->mps,
                   "join the MPS daemon with this folder (`penstock proxy serve --mps`); for functions with a CUDA "
                   "context of their own (`kernel`)")
      ->type_name("DIR")
      ->check(not_empty("a folder"));
  options->access.add_to(*server, "use the function");
  server->footer(
      "The function is made for each chain that connects, from FILE and the files that it names as they are then: so "
      "a\n"
      "reload of the chain is a reload of the function. Chains treat its packets as their `when_lost` says when\n"
      "it has ended.\n"
      "Signals: SIGINT and SIGTERM end the process, a second one ends it at once. SIGHUP reopens its logs; `penstock\n"
      "ctl reopen-logs` of a chain does not reach them. SIGUSR1 and SIGUSR2 do nothing.");
  server->callback([options, functions, &exit_code] { exit_code = serve(*options, functions); });
}

}  // namespace penstock::cli
