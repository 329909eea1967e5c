// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows a run to Prometheus and to browsers (docs/metrics.md). Clients can only look. They are served in a thread of
// its own, off the workers' cores and without capabilities.

#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/listen_address.h"
#include "config/chain_file.h"
#include "control/http_server.h"
#include "control/reload.h"
#include "gpu/nvml.h"
#include "report/metrics.h"
#include "run/run.h"

namespace penstock::control {

class Monitor {
 public:
  /// What it shows; all of it is borrowed.
  struct Subject {
    const config::LoadedChain& loaded;
    const std::string& chain_file;
    const Reloader& reloader;
    const std::atomic<bool>& stop_asked;
  };

  /// Listens, and starts the thread. The run has not begun yet.
  [[nodiscard]] static Result<std::unique_ptr<Monitor>> open(const ListenAddress& listen, const Subject& subject);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Packets flow. `run` must live until `end`, or until the monitor is destroyed.
  void begin(const run::Run& run);
  /// The run has ended; its last report is shown from now on.
  void end(const run::RunResult& result);

 private:
  explicit Monitor(const Subject& subject);
  [[nodiscard]] std::vector<HttpPage> pages();
  void serve();

  [[nodiscard]] std::string metrics() const;
  [[nodiscard]] std::string live() const;
  [[nodiscard]] std::optional<report::RunReport> report() const;
  [[nodiscard]] std::string_view state() const;
  [[nodiscard]] report::RunFacts facts() const;

  const Subject subject_;
  const nlohmann::ordered_json plan_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  std::list<std::pair<int, gpu::Utilization>> gpus_;  // by index
  mutable std::mutex mutex_;                          // guards the next two members
  const run::Run* run_ = nullptr;                     // null: it has not begun, or has ended
  std::optional<report::RunReport> last_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace penstock::control
