// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/listen_address.h"
#include "base/log.h"
#include "base/text_file.h"
#include "base/thread_placement.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/ctl.h"
#include "cli/progress.h"
#include "cli/reload.h"
#include "cli/stop_signals.h"
#include "config/run_section.h"
#include "control/control_server.h"
#include "control/hand_over.h"
#include "control/kernel/rule_follower.h"
#include "control/kernel/table_follower.h"
#include "control/monitor.h"
#include "control/reload.h"
#include "control/service_manager.h"
#include "control/status.h"
#include "control/tcp_listener.h"
#include "control/unix_socket.h"
#include "control/watchdog.h"
#include "gpu/devices.h"
#include "proxy/remote_lanes.h"
#include "report/run_report.h"
#include "ring/trace_events.h"
#include "run/device_run.h"
#include "run/run.h"

namespace penstock::cli {

namespace {

struct RunArguments {
  ChainArguments chain;
  std::string take_over;  // the control socket of the run to continue; "": none
  std::uint64_t trace = 0;
  bool json = false;
  bool quiet = false;
};

using Json = nlohmann::ordered_json;

/// Data from captures may not be valid UTF-8, but the report must be written nevertheless.
std::string text_of(const Json& report) { return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Result<void> write_report(const std::string& path, const Json& report) {
  return path == "-" ? write_stdout(text_of(report)) : write_text_file(path, text_of(report));
}

std::string tables_of(const report::RunReport& report) {
  const bool did_without = report.gpu && report.gpu->proxy && report.gpu->proxy->without.count() > 0;
  return report::to_tables(report) +
         (did_without ? fmt::format("warning: for {} there was no proxy, and the CPU did the GPU's work\n",
                                    format_duration(report.gpu->proxy->without))
                      : "");
}

/// The time distinguishes these tables on stderr from those of other signals and from those at the end.
std::string heading_of(const report::RunReport& report) {
  return fmt::format("\nReport at {:%Y-%m-%d %H:%M:%S} UTC, after {:.1f} s (SIGUSR1); the run continues:\n\n",
                     fmt::gmtime(std::time(nullptr)), report.elapsed_s());
}

/// Handles the requests that signals have made since the last call. Errors are reported, and the run continues.
void handle_signals(RunSignals& signals, run::Run& running, const RunArguments& arguments,
                    const config::LoadedChain& loaded, control::Reloader& reloader, bool progress) {
  const bool reopen = signals.reopen_logs.exchange(false);
  const bool report = signals.report.exchange(false);
  const bool reloads = signals.reload.exchange(false);
  if (progress && (reopen || report || reloads)) end_progress();
  if (reopen) print_errors(running.reopen_logs());
  if (report) {
    const report::RunReport now = running.report();
    if (loaded.report_path.empty()) {
      fmt::print(stderr, "{}{}", heading_of(now), tables_of(now));
    } else if (const auto written =
                   write_report(loaded.report_path, control::report_json(now, arguments.chain.file, {}));
               !written) {
      print_errors(written.error());
    }
  }
  if (reloads) log_reload(reloader.reload(running), loaded, "SIGUSR2");
}

void log_hand_over(const control::HandOverOutcome& outcome) {
  print_errors(outcome.errors);
  if (outcome.errors.empty()) {
    log_info("handed over to process {}; this run ends", outcome.successor);
  } else {
    log_error("hand-over to process {}: failed, see above; the run continues", outcome.successor);
  }
}

/// Those for which there was no room while no process received.
void log_lost_frames(const report::RunReport& report) {
  for (const report::PortReport& port : report.ports) {
    if (!port.interface) continue;
    for (const auto& [reason, frames] : port.interface->lost) {
      if (reason == "receive_ring_full" && frames > 0)
        log_warning(
            "port {}: {} lost while packets waited, as the receive ring was full; it holds more with a larger `memory`",
            port.name, format_count(frames, "frame"));
    }
  }
}

/// From now on, messages go where the chain file says.
Result<void> begin_log(const config::LoadedChain& loaded) {
  Log& log = Log::of_process();
  log.set_level(loaded.log_level);
  if (loaded.log_path.empty()) return {};
  return log.continue_in(loaded.log_path);
}

/// The value of an override is YAML, which takes [::1]:9474 for a list unless it is quoted.
config::Override metrics_at(const std::string& address) {
  config::Override override = config::override_by_option("--metrics", "outputs.metrics.listen", address);
  override.value = "'";
  for (const char c : address) override.value += c == '\'' ? "''" : std::string(1, c);
  override.value += '\'';
  return override;
}

/// The metrics and the page of a run.
class Watching {
 public:
  explicit Watching(const control::Monitor::Subject& subject)
      : subject_(subject), address_(subject.loaded.metrics_address) {}

  /// Before the run. `takes_over`: while another process listens at the address, which may be the predecessor, this one
  /// waits for its end.
  [[nodiscard]] Result<void> open(bool takes_over) {
    if (!address_ || (takes_over && control::is_taken(*address_))) return {};
    auto opened = control::Monitor::open(*address_, subject_);
    if (!opened) return failure(std::move(opened.error()));
    monitor_ = std::move(*opened);
    return {};
  }
  void begin(const run::Run& run) {
    if (monitor_ != nullptr) monitor_->begin(run);
  }
  /// While packets flow.
  void tick(const run::Run& run) {
    constexpr std::chrono::milliseconds kBetweenTries{200};
    const auto now = std::chrono::steady_clock::now();
    if (!address_ || monitor_ != nullptr || now < next_try_) return;
    next_try_ = now + kBetweenTries;
    if (control::is_taken(*address_)) {
      if (++tries_ == kWarnAfter) log_warning("metrics: another process still listens at {}", to_string(*address_));
      return;
    }
    if (const auto opened = open(false); !opened) {
      print_errors(opened.error());
      address_.reset();
      return;
    }
    log_info("metrics: listens at {}", to_string(*address_));
    begin(run);
  }
  void end(const run::RunResult& result) {
    if (monitor_ != nullptr) monitor_->end(result);
  }

 private:
  static constexpr int kWarnAfter = 50;  // tries

  const control::Monitor::Subject subject_;
  std::optional<ListenAddress> address_;  // empty: nowhere, or no longer
  std::unique_ptr<control::Monitor> monitor_;
  std::chrono::steady_clock::time_point next_try_;
  int tries_ = 0;
};

int run_chain(const RunArguments& arguments) {
  Log::of_process().keep_records();
  RunSignals& signals = take_run_signals();
  control::ServiceManager manager;
  if (arguments.take_over.empty()) manager.starting();  // otherwise, the service goes on
  gpu::load_kernels_at_once();
  auto loaded = arguments.chain.load();
  if (!loaded) return refuse(loaded.error(), false);
  if (const auto begun = begin_log(*loaded); !begun) return refuse(begun.error());
  print_warnings(*loaded);
  print_cautions(config::port_cautions(loaded->chain));
  if (arguments.json && loaded->writes_stdout) {
    log_error("--json: an output of the chain already uses standard output; use --report FILE instead");
    return kWrongUsage;
  }
  if (const Errors errors = config::check_files(*loaded); !errors.empty()) return refuse(errors);
  std::unique_ptr<control::RunningProcess> predecessor;
  if (!arguments.take_over.empty()) {
    if (loaded->control_path.empty()) loaded->control_path = arguments.take_over;
    auto found = control::RunningProcess::connect(arguments.take_over, loaded->chain);
    if (!found) {  // nothing has been changed yet, here or there
      print_errors(found.error().errors);
      return code_of(found.error());
    }
    predecessor = std::move(*found);
  }
  if (run::RunSettings& settings = loaded->chain.settings; !settings.proxy.empty()) {
    auto lanes = proxy::remote_lanes(
        settings.proxy,
        {arguments.chain.file, settings.proxy_profile, settings.proxy_latency, run::limits_at_proxy(settings)},
        settings.needs_proxy ? proxy::WithoutProxy::fails : proxy::WithoutProxy::begins_on_cpu);
    if (!lanes) return fail(lanes.error());
    settings.remote = std::move(*lanes);
  }
  if (const auto written = config::write_text_outputs(loaded->texts); !written) return refuse(written.error());
  std::FILE* const tables_out = loaded->writes_stdout ? stderr : stdout;

  run::RunOptions options;
  options.gives_up_capabilities = true;
  options.predecessor = predecessor.get();
  options.trace_packets = arguments.trace;
  options.trace_out = arguments.json ? stderr : tables_out;
  const bool terminal = shows_progress() && !arguments.quiet;
  if (terminal) options.on_progress = print_progress;
  const std::atomic<bool>& stop = stop_on_signals(HangUp::reopens);
  auto opened_rules = control::RuleFollower::open(loaded->chain);
  if (!opened_rules) return refuse(opened_rules.error());
  control::RuleFollower* const kernel_rules = opened_rules->get();  // null: no rules are the kernel's
  control::Reloader reloader(
      *loaded, [&](const config::LoadedChain& running) { return arguments.chain.plan_reload(running); },
      {[&] { manager.reload_begins(); },
       [&](const control::ReloadOutcome& outcome) {
         manager.reload_ended(outcome);
         if (kernel_rules != nullptr) kernel_rules->reload_ended(outcome);
       }},
      [kernel_rules] { return kernel_rules == nullptr ? Errors() : kernel_rules->cautions(); });
  auto followers = control::follow_kernel(loaded->chain);
  if (!followers) return refuse(followers.error());
  // If its end throws, it outlives those that look at it, in threads of their own.
  Result<std::unique_ptr<run::Run>> running;
  std::unique_ptr<control::ControlServer> server;
  if (!loaded->control_path.empty()) {
    const auto on_reload = [&](const control::ReloadOutcome& outcome) {
      if (terminal) end_progress();
      log_reload(outcome, *loaded, "penstock ctl");
    };
    const auto on_hand_over = [&](const control::HandOverOutcome& outcome) {
      if (terminal) end_progress();
      log_hand_over(outcome);
    };
    auto listener = predecessor != nullptr && loaded->control_path == arguments.take_over
                        ? control::UnixListener::open_beside(loaded->control_path)
                        : control::UnixListener::open(loaded->control_path);
    if (!listener) return refuse(listener.error());
    auto opened = control::ControlServer::open(
        std::move(*listener), {*loaded, arguments.chain.file, reloader, stop, stop_as_by_signal, on_reload,
                               on_hand_over, [&](pid_t successor) { manager.hand_over(successor); }});
    if (!opened) return refuse(opened.error());
    server = std::move(*opened);
  }
  Watching watching({*loaded, arguments.chain.file, reloader, stop});
  if (const auto opened = watching.open(predecessor != nullptr); !opened) return refuse(opened.error());
  options.on_tick = [&](run::Run& flowing) {
    if (stop.load()) manager.stopping();
    handle_signals(signals, flowing, arguments, *loaded, reloader, terminal);
    if (kernel_rules != nullptr && kernel_rules->wants_reload()) {
      if (terminal) end_progress();
      log_reload(reloader.reload(flowing), *loaded, "rules of the kernel");
    }
    if (server != nullptr) server->tick();
    watching.tick(flowing);
    Log::of_process().report_left_out();
  };
  running = run::start(loaded->chain, options, stop);
  run::RunResult result;
  if (running) {
    if (predecessor != nullptr && predecessor->has_died()) {
      log_warning("process {} has died before it handed anything over: the ports begin anew", predecessor->pid());
    } else if (predecessor != nullptr) {
      log_info("took over from process {}: packets waited for {:.1f} ms", predecessor->pid(),
               predecessor->waited().count() * 1e3);
      log_lost_frames((*running)->report());
    }
    if (server != nullptr) {
      if (const auto listens = server->begin(**running); !listens) print_errors(listens.error());
    }
    watching.begin(**running);
    if (!stop.load()) manager.ready(*loaded);
    {
      const ThreadOnCpus off_workers(loaded->chain.settings.placement.other_cores);
      const control::Watchdog watchdog([&run = **running] { return run.pulses(); });
      result = (*running)->wait();
    }
    manager.stopping();
    if (server != nullptr) server->end(result);
    watching.end(result);
    running->reset();
  }
  nothing_left_to_stop();
  Log::of_process().fall_back_to(STDERR_FILENO);
  if (terminal) end_progress();
  if (!running)  // the run has not started
    return predecessor != nullptr && predecessor->goes_on() ? fail(running.error()) : refuse(running.error());
  const Json report = control::report_json(result.report, arguments.chain.file, result.errors);
  Errors errors = std::move(result.errors);
  const auto note = [&errors](Result<void> written) {
    if (!written) append(errors, std::move(written.error()));
  };
  if (!loaded->report_path.empty()) note(write_report(loaded->report_path, report));
  if (loaded->chain.timeline != nullptr) {
    const std::string timeline = ring::trace_events_json(*loaded->chain.timeline);
    note(loaded->timeline_path == "-" ? write_stdout(timeline) : write_text_file(loaded->timeline_path, timeline));
  }
  if (server != nullptr) server->outputs_written(errors);
  std::string text;
  if (arguments.json) {
    text = text_of(report);
  } else if (!arguments.quiet) {
    text = tables_of(result.report);
  }
  const int code = print_results(text, !arguments.json && loaded->writes_stdout, std::move(errors));
  print_left_out(loaded->unsupported);
  return code;
}

}  // namespace

void add_run(CLI::App& app, function::NfKinds functions, int& exit_code) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a chain");
  arguments->chain.add_to(*command, functions);
  const auto add_override = [&](const char* option, const char* path, const char* help) {
    return arguments->chain.add_override(*command, option, path, std::string(help) + "; replaces " + path);
  };
  add_override("--processor", "run.processor", "where the functions run")->type_name("auto|cpu|gpu");
  add_override("--gpus", "run.gpus", "indices of the GPUs to use, such as 0,1");
  add_override("--proxy", "run.proxy",
               "run the functions on the GPU of the `penstock proxy serve` at this unix socket");
  add_override("--workers", "run.workers", "number of worker threads");
  add_override("--cores", "run.cores", "cores to bind the workers to, such as 2-5,8");
  add_override("--duration", "run.duration", "stop after this time, such as 10s");
  add_override("--eve", "outputs.eve", "write alerts to this file as EVE JSON");
  add_override("--control", "outputs.control", "listen for `penstock ctl` on this unix socket");
  command->add_option_function<std::string>(
      "--metrics", [arguments](const std::string& address) { arguments->chain.options.push_back(metrics_at(address)); },
      "serve metrics for Prometheus, and a page, at this address, such as 127.0.0.1:9474; replaces "
      "outputs.metrics.listen");
  add_override("--log-level", "outputs.log.level", "what to log")->type_name("error|warning|info|debug");
  add_override("--report", "outputs.report", "write the report to this file as JSON");
  add_override("--timeline", "outputs.timeline",
               "write the times of the last transfers and kernels on the GPU to this file, for Perfetto");
  add_override("--write-esp-sa", "outputs.esp_sa",
               "write the SAs of ipsec with their keys to this file, for Wireshark");
  command
      ->add_option(
          "--take-over", arguments->take_over,
          "continue the run that listens on this control socket, which then ends; no packet is lost as long as the "
          "ports have room for those that come meanwhile (`memory` of af_packet)")
      ->transform(socket_name())
      ->type_name("SOCKET");
  command
      ->add_option(
          "--trace", arguments->trace,
          "print the path of the first N packets through the functions (on a GPU, of at most 32 of each batch)")
      ->transform(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  command->add_flag("--json", arguments->json, "print the report as JSON instead of tables");
  command->add_flag("-q,--quiet", arguments->quiet, "print no tables and no progress");
  command->footer(
      "Every packet that is read is accounted for: in = forwarded + dropped + consumed; during a run, also + held.\n"
      "Signals: SIGINT and SIGTERM end the run cleanly, a second one ends it at once; SIGHUP reopens the logs;\n"
      "SIGUSR1 writes the report (without one, the tables to stderr); SIGUSR2 reads the chain file and the files of "
      "its\n"
      "functions again and puts them in use, or says why it cannot. The run continues.\n"
      "Sections of a chain file: ports, chain, wire, run, outputs. Parameters of `run`:\n" +
      describe(config::run_parameters()) + "Parameters of `outputs`:\n" +
      describe(config::output_parameters(functions)) +
      "`penstock check --parameters` lists the parameters of ports and functions.");
  command->callback([arguments, &exit_code] { exit_code = run_chain(*arguments); });
}

}  // namespace penstock::cli
