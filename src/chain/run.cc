// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/run.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "chain/run_report.h"
#include "chain/trace.h"
#include "chain/worker.h"

namespace penstock::chain {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kProgressInterval = std::chrono::milliseconds{200};
constexpr auto kStopCheckInterval = std::chrono::milliseconds{20};

Errors close_ports(Chain& chain) {
  Errors errors;
  for (NamedPort& named : chain.ports) {
    for (Error& error : named.port->close()) {
      error.message = "port " + named.name + ": " + error.message;
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

Result<void> open_ports(Chain& chain) {
  Errors errors;
  // What only reads comes first, so that a mistake there leaves earlier outputs as they are.
  for (const bool writers : {false, true}) {
    for (NamedPort& named : chain.ports) {
      if (named.port->writes() != writers) continue;
      if (auto opened = named.port->open(chain.settings.workers); !opened) append(errors, std::move(opened.error()));
    }
    if (!errors.empty()) break;
  }
  if (errors.empty()) return {};
  static_cast<void>(close_ports(chain));
  return failure(std::move(errors));
}

Progress progress_of(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers, Clock::time_point start) {
  Progress progress{Clock::now() - start, 0, 0, std::nullopt};
  for (const auto& worker : workers) {
    progress.packets_in += worker->counters().in.packets.get();
    progress.bytes_in += worker->counters().in.bytes.get();
  }
  for (const NamedPort& named : chain.ports) {
    const auto part = named.port->progress();
    if (part && (!progress.part || *part < *progress.part)) progress.part = part;
  }
  return progress;
}

bool any_failed(const Chain& chain) {
  for (const NamedPort& named : chain.ports) {
    if (named.port->failed()) return true;
  }
  return false;
}

}  // namespace

Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop) {
  if (auto opened = open_ports(chain); !opened) return failure(std::move(opened.error()));
  Trace trace(chain, options.trace_packets, options.trace_out);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < chain.settings.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(chain, i, options.trace_packets > 0 ? &trace : nullptr));
  }

  std::mutex mutex;
  std::condition_variable ended;
  unsigned running = chain.settings.workers;  // guarded by mutex
  std::atomic<bool> stop_workers{false};
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) {
    threads.emplace_back([&, w = worker.get()] {
      w->run(stop_workers);
      const std::lock_guard lock(mutex);
      --running;
      ended.notify_one();
    });
  }

  const std::chrono::nanoseconds duration = chain.settings.duration;
  Clock::time_point next_progress = start + kProgressInterval;
  {
    std::unique_lock lock(mutex);
    while (running > 0) {
      ended.wait_for(lock, kStopCheckInterval);
      const Clock::time_point now = Clock::now();
      const bool time_is_up = duration.count() > 0 && now - start >= duration;
      if (stop.load() || time_is_up || any_failed(chain)) stop_workers.store(true);
      if (options.on_progress && now >= next_progress) {
        options.on_progress(progress_of(chain, workers, start));
        next_progress = now + kProgressInterval;
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  const auto elapsed = Clock::now() - start;
  RunResult result;
  result.errors = close_ports(chain);
  result.report = make_report(chain, workers, elapsed);
  return result;
}

}  // namespace penstock::chain
