// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/monitor.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "base/capabilities.h"
#include "base/process_use.h"
#include "base/thread_placement.h"
#include "base/version.h"
#include "control/live_status.h"
#include "control/page/page_files.h"
#include "control/status.h"
#include "gpu/devices.h"
#include "report/exposition.h"

namespace penstock::control {

namespace {

/// So that many clients cost no more than one.
constexpr std::chrono::milliseconds kFresh{250};
constexpr std::chrono::milliseconds kAlways{std::chrono::hours{24 * 365}};

}  // namespace

Result<std::unique_ptr<Monitor>> Monitor::open(const ListenAddress& listen, const Subject& subject) {
  std::unique_ptr<Monitor> monitor(new Monitor(subject));
  auto server = HttpServer::open(listen, monitor->pages(), {});
  if (!server) return failure(std::move(server.error()));
  monitor->server_ = std::move(*server);
  const ThreadOnCpus off_workers(subject.loaded.chain.settings.placement.other_cores);
  try {
    monitor->thread_ = std::thread([&self = *monitor] { self.serve(); });
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  return monitor;
}

Monitor::Monitor(const Subject& subject) : subject_(subject), plan_(plan_json(subject.loaded.chain)) {
  const std::vector<int>& used = subject.loaded.chain.settings.gpus;
  if (used.empty()) return;
  for (const gpu::Device& device : gpu::list_devices().devices) {
    if (std::ranges::find(used, device.index) != used.end())
      gpus_.emplace_back(std::piecewise_construct, std::tuple(device.index), std::tuple(device.pci_bus_id));
  }
}

Monitor::~Monitor() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

std::vector<HttpPage> Monitor::pages() {
  std::vector<HttpPage> pages{
      {"/metrics", report::Exposition::kContentType, [this] { return metrics(); }, kFresh},
      {"/api/status", "application/json", [this] { return live(); }, kFresh},
  };
  for (const PageFile& file : page_files())
    pages.push_back({file.path, file.type, [&file] { return std::string(file.text); }, kAlways});
  return pages;
}

void Monitor::serve() {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "monitor"));
  // It began before the run, which gives up what it does not need, and needs nothing itself.
  static_cast<void>(keep_only({}));
  server_->run();
}

void Monitor::begin(const run::Run& run) {
  const std::lock_guard lock(mutex_);
  run_ = &run;
}

void Monitor::end(const run::RunResult& result) {
  const std::lock_guard lock(mutex_);
  run_ = nullptr;
  last_ = result.report;
}

/// Empty: the run has not begun. Call it with the lock, like the next two.
std::optional<report::RunReport> Monitor::report() const {
  if (run_ != nullptr) return run_->report();
  return last_;
}

std::string_view Monitor::state() const {
  if (run_ == nullptr) return last_ ? "ended" : "starting";
  return subject_.stop_asked.load() ? "ending" : "running";
}

report::RunFacts Monitor::facts() const {
  report::RunFacts facts;
  facts.version = build_info().version;
  facts.commit = build_info().commit;
  facts.state = state();
  const ProcessUse use = process_use();
  facts.started_s = use.started_s;
  facts.cpu_s = use.cpu_s;
  facts.resident_bytes = use.resident_bytes;
  if (const auto last = subject_.reloader.last()) {
    const bool successful =
        last->result == ReloadOutcome::Result::in_use || last->result == ReloadOutcome::Result::unchanged;
    facts.last_reload = {successful, std::chrono::duration<double>(last->at.time_since_epoch()).count()};
  }
  if (run_ == nullptr) return facts;
  for (const run::NamedPort& named : subject_.loaded.chain.ports) {
    if (const auto link = named.port->link()) facts.links.emplace_back(named.name, *link == port::LinkState::up);
  }
  for (const auto& [index, use_of_gpu] : gpus_) {
    if (const auto percent = use_of_gpu.percent()) facts.gpu_use.emplace_back(index, *percent / 100.0);
  }
  return facts;
}

std::string Monitor::metrics() const {
  const std::lock_guard lock(mutex_);
  const auto report = this->report();
  return report::metrics_text(report ? &*report : nullptr, facts());
}

std::string Monitor::live() const {
  const std::lock_guard lock(mutex_);
  const auto report = this->report();
  const RunState state{this->state(), subject_.chain_file, started_, report ? &*report : nullptr, run_ != nullptr};
  const auto status = status_json(subject_.loaded, subject_.reloader, state);
  return live_json(plan_, status, report ? &*report : nullptr, facts())
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace penstock::control
