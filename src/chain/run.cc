// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/run.h"

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "chain/run_report.h"
#include "chain/trace.h"
#include "chain/worker.h"

namespace penstock::chain {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kProgressInterval = std::chrono::milliseconds{200};
constexpr auto kStopCheckInterval = std::chrono::milliseconds{20};

void append_named(Errors& errors, const NamedPort& port, Errors more) {
  for (Error& error : more) {
    error.message = "port " + port.name + ": " + error.message;
    errors.push_back(std::move(error));
  }
}

Errors close_ports(Chain& chain) {
  Errors errors;
  for (NamedPort& named : chain.ports) append_named(errors, named, named.port->close());
  return errors;
}

/// Up to the first that fails: the next could wait for a pipe while the user waits to hear of the failure.
Result<void> open_ports(Chain& chain) {
  for (NamedPort& named : chain.ports) {
    auto opened = named.port->open(chain.settings.workers);
    if (opened) continue;
    Errors errors;
    append_named(errors, named, std::move(opened.error()));
    return failure(std::move(errors));
  }
  return {};
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

Errors check_ports(const Chain& chain) {
  Errors errors;
  for (const NamedPort& named : chain.ports) append(errors, named.port->check());
  return errors;
}

Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop) {
  const std::chrono::nanoseconds duration = chain.settings.duration;
  const auto is_over = [&](Clock::time_point start) {
    return stop.load() || (duration.count() > 0 && Clock::now() - start >= duration);
  };
  const Clock::time_point opening_start = Clock::now();
  bool interrupted = false;
  auto opening = std::async(std::launch::async, [&chain] { return open_ports(chain); });
  while (opening.wait_for(kStopCheckInterval) != std::future_status::ready) {
    if (!is_over(opening_start)) continue;
    interrupted = true;
    for (NamedPort& named : chain.ports) named.port->interrupt();
  }
  if (auto opened = opening.get(); !opened) {
    static_cast<void>(close_ports(chain));
    if (!interrupted) return failure(std::move(opened.error()));
    return RunResult{make_report(chain, {}, Clock::now() - opening_start), std::move(opened.error())};
  }
  Trace trace(chain, options.trace_packets, options.trace_out);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < chain.settings.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(chain, i, options.trace_packets > 0 ? &trace : nullptr));
  }

  for (NamedPort& named : chain.ports) named.port->start();
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

  Clock::time_point next_progress = start + kProgressInterval;
  {
    std::unique_lock lock(mutex);
    while (running > 0) {
      ended.wait_for(lock, kStopCheckInterval);
      const Clock::time_point now = Clock::now();
      if (is_over(start) || any_failed(chain)) stop_workers.store(true);
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
