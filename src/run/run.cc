// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/run.h"

#include <fmt/format.h>

#include <cstddef>
#include <future>
#include <latch>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/units.h"
#include "run/make_report.h"
#include "run/measure_shares.h"
#include "run/trace.h"
#include "run/worker.h"

namespace penstock::run {

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

/// Closes ports and logs.
Errors close_outlets(Chain& chain) {
  Errors errors;
  for (NamedPort& named : chain.ports) append_named(errors, named, named.port->close());
  for (const auto& log : chain.logs) append(errors, log->close());
  return errors;
}

/// Stops at the first failure: opening the next port could wait for a pipe while the user waits for the error message.
Result<void> open_outlets(Chain& chain) {
  for (NamedPort& named : chain.ports) {
    auto opened = named.port->open(chain.settings.workers);
    if (opened) continue;
    Errors errors;
    append_named(errors, named, std::move(opened.error()));
    return failure(std::move(errors));
  }
  for (const auto& log : chain.logs) {
    if (auto opened = log->open(); !opened) return opened;
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

void interrupt(Chain& chain) noexcept {
  for (NamedPort& named : chain.ports) named.port->interrupt();
  for (const auto& log : chain.logs) log->interrupt();
}

class RunningChain final : public Running {
 public:
  RunningChain(Chain& chain, std::span<const std::unique_ptr<Worker>> workers, Clock::time_point start)
      : chain_(chain), workers_(workers), start_(start) {}

  [[nodiscard]] report::RunReport report() const override {
    return make_report(chain_, workers_, Clock::now() - start_);
  }
  [[nodiscard]] Errors reopen_logs() override {
    Errors errors;
    for (const auto& log : chain_.logs) {
      if (auto reopened = log->reopen(); !reopened) append(errors, std::move(reopened.error()));
    }
    return errors;
  }

 private:
  Chain& chain_;
  std::span<const std::unique_ptr<Worker>> workers_;
  Clock::time_point start_;
};

/// The workers' threads. All of them are created before the first calls `begin`, and all have returned from `begin`
/// before the first packet is received. So no run starts with a thread missing, and its time is only that of packets.
class WorkerThreads {
 public:
  /// Throws std::system_error if the system allows no more threads; then the threads that exist end without having
  /// begun.
  template <typename Begin, typename Run>
  WorkerThreads(std::size_t count, Begin begin, Run run) : begun_(static_cast<std::ptrdiff_t>(count)) {
    threads_.reserve(count);
    try {
      for (std::size_t i = 0; i < count; ++i) {
        threads_.emplace_back([this, begin, run, i] {
          all_there_.wait();
          if (lacks_some_) return;
          begin(i);
          begun_.count_down();
          started_.wait();
          run(i);
        });
      }
    } catch (...) {
      lacks_some_ = true;
      all_there_.count_down();
      join();
      throw;
    }
  }
  /// Returns when `begin` has returned in all threads.
  void begin() noexcept {
    all_there_.count_down();
    begun_.wait();
  }
  void start() noexcept { started_.count_down(); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::latch all_there_{1};
  std::latch begun_;
  std::latch started_{1};
  bool lacks_some_ = false;  // written before `all_there_` opens, read afterwards
  std::vector<std::thread> threads_;
};

}  // namespace

Errors check_system(const Chain& chain) {
  Errors errors;
  for (const NamedPort& named : chain.ports) append(errors, named.port->check());
  for (const NamedFunction& named : chain.functions) append(errors, named.function->check());
  return errors;
}

Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop) {
  const std::chrono::nanoseconds duration = chain.settings.duration;
  const auto is_over = [&](Clock::time_point start) {
    return stop.load() || (duration.count() > 0 && Clock::now() - start >= duration);
  };
  // Before outputs are opened, which truncates them.
  for (NamedFunction& named : chain.functions) {
    if (auto begun = named.function->begin_run(); !begun) return failure(std::move(begun.error()));
  }
  const Clock::time_point opening_start = Clock::now();
  bool interrupted = false;
  auto opening = std::async(std::launch::async, [&chain] { return open_outlets(chain); });
  while (opening.wait_for(kStopCheckInterval) != std::future_status::ready) {
    if (!is_over(opening_start)) continue;
    interrupted = true;
    interrupt(chain);
  }
  if (auto opened = opening.get(); !opened) {
    static_cast<void>(close_outlets(chain));
    if (!interrupted) return failure(std::move(opened.error()));
    return RunResult{make_report(chain, {}, Clock::now() - opening_start), std::move(opened.error())};
  }
  if (chain.settings.processor == function::Processor::gpu &&
      chain.settings.gpu_shares.choice == plan::GpuShares::Choice::automatic)
    choose_gpu_shares(chain);
  Trace trace(chain, options.trace_packets, options.trace_out);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < chain.settings.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(chain, i, options.trace_packets > 0 ? &trace : nullptr));
  }

  std::atomic<bool> stop_workers{false};
  Clock::time_point start;
  Clock::time_point end;
  std::packaged_task<Errors()> close([&] {
    for (NamedFunction& named : chain.functions) named.function->end_run();
    for (const auto& worker : workers) end = std::max(end, worker->ended_at());
    return close_outlets(chain);
  });
  std::future<Errors> closed = close.get_future();
  std::atomic<unsigned> running{chain.settings.workers};
  std::optional<WorkerThreads> threads;
  try {
    threads.emplace(
        workers.size(), [&](std::size_t worker) { workers[worker]->begin(); },
        [&](std::size_t worker) {
          workers[worker]->run(stop_workers);
          // In the last worker's thread, so that ports can be interrupted while they wait to write the rest.
          if (running.fetch_sub(1) == 1) close();
        });
  } catch (const std::system_error& error) {
    static_cast<void>(close_outlets(chain));
    return failure({{},
                    "cannot start " + format_count(workers.size(), "thread"),
                    error.code().message(),
                    "fewer workers, or a higher process limit"});
  }
  threads->begin();
  if (chain.timeline != nullptr) chain.timeline->begin();
  for (NamedPort& named : chain.ports) named.port->start();
  for (const auto& log : chain.logs) log->begin();
  start = Clock::now();
  threads->start();

  RunningChain running_chain(chain, workers, start);
  Clock::time_point next_progress = start + kProgressInterval;
  while (closed.wait_for(kStopCheckInterval) != std::future_status::ready) {
    const Clock::time_point now = Clock::now();
    if (is_over(start) || any_failed(chain)) {
      stop_workers.store(true);
      interrupt(chain);
    }
    if (options.on_tick) options.on_tick(running_chain);
    if (options.on_progress && now >= next_progress) {
      options.on_progress(progress_of(chain, workers, start));
      next_progress = now + kProgressInterval;
    }
  }
  threads->join();
  RunResult result;
  result.errors = closed.get();
  result.report = make_report(chain, workers, end - start);
  return result;
}

}  // namespace penstock::run
