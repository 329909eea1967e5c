// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/run.h"

#include <fmt/format.h>

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/thread_placement.h"
#include "base/units.h"
#include "function/connection_keeper.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "plan/device_plan.h"
#include "plan/fit.h"
#include "run/device_run.h"
#include "run/epoch.h"
#include "run/hand_over.h"
#include "run/lane_factory.h"
#include "run/lane_keeper.h"
#include "run/make_report.h"
#include "run/measure_shares.h"
#include "run/opener.h"
#include "run/packet_sharing.h"
#include "run/receiver.h"
#include "run/set_up_watch.h"
#include "run/shared_queue.h"
#include "run/taps.h"
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

/// Whether a function that runs on the host changes the payload of packets. `plan`: null if all do.
bool host_changes_payload(const Chain& chain, const plan::DevicePlan* plan) {
  const auto on_host = [plan](std::size_t function) {
    return plan == nullptr || std::ranges::any_of(plan->runs, [function](const plan::DevicePlan::Run& run) {
             return run.processor == function::Processor::cpu && function >= run.first && function < run.last;
           });
  };
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    if (on_host(f) && chain.functions[f].function->traits().cpu.writes.has(Field::payload)) return true;
  }
  return false;
}

/// Stops at the first failure: opening the next port could wait for a pipe while the user waits for the error message.
Result<void> open_outlets(Chain& chain, const port::Opening& opening) {
  for (NamedPort& named : chain.ports) {
    auto opened = named.port->open(opening);
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

/// `handed`: from the process whose run this one continues; null: there is none.
Result<void> start_ports(Chain& chain, HandedPorts* handed) {
  for (NamedPort& named : chain.ports) {
    auto started =
        handed == nullptr ? named.port->start() : named.port->continue_from(std::move((*handed)[named.name]));
    if (started) continue;
    Errors errors;
    append_named(errors, named, std::move(started.error()));
    return failure(std::move(errors));
  }
  return {};
}

Progress progress_of(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers, const Receiver* receiver,
                     Clock::time_point start) {
  Progress progress{Clock::now() - start, 0, 0, std::nullopt};
  for (const auto& worker : workers) {
    progress.packets_in += worker->counters().in.packets.get();
    progress.bytes_in += worker->counters().in.bytes.get();
  }
  if (receiver != nullptr) {
    progress.packets_in += receiver->counters().in.packets.get();
    progress.bytes_in += receiver->counters().in.bytes.get();
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

Result<Continuity> continuity_of(const Chain& chain) {
  Continuity continuity{chain.settings.workers, {}};
  Errors errors;
  for (const NamedPort& named : chain.ports) {
    auto port = named.port->continuity();
    if (port) {
      continuity.ports.emplace_back(named.name, std::move(*port));
    } else {
      append_named(errors, named, std::move(port.error()));
    }
  }
  for (const NamedFunction& named : chain.functions) {
    if (const std::string state = named.function->state_of_run(); !state.empty())
      errors.push_back({{}, "function " + named.name + ": its state cannot be handed over", state, "a new run"});
  }
  if (!errors.empty()) return failure(std::move(errors));
  return continuity;
}

Errors check_system(const Chain& chain) {
  Errors errors;
  for (const NamedPort& named : chain.ports) append(errors, named.port->check());
  for (const NamedFunction& named : chain.functions) append(errors, named.function->check());
  return errors;
}

namespace {

class RunningChain final : public Run {
 public:
  RunningChain(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop)
      : chain_(chain),
        options_(options),
        stop_(stop),
        memory_(is_shared()             ? PacketMemory::Register()
                : shares_packets(chain) ? lends_nothing()
                                        : registers_packet_memory(chain.settings),
                chain.settings.remote != nullptr) {
    if (options.trace_packets == 0) return;
    static_cast<void>(
        taps_.trace.begin({options.trace_packets, {}, [out = options.trace_out](const TracedPacket& packet) {
                             const std::string text = to_string(packet);
                             std::fwrite(text.data(), 1, text.size(), out);
                           }}));
  }
  RunningChain(const RunningChain&) = delete;
  RunningChain& operator=(const RunningChain&) = delete;
  ~RunningChain() override {
    stop();
    end();
  }

  /// The first part of `start`: until all workers wait for packets.
  [[nodiscard]] Result<void> start();

  [[nodiscard]] report::RunReport report() const override { return report_after(Clock::now() - start_); }
  [[nodiscard]] std::vector<Pulse> pulses() const override;
  [[nodiscard]] ExplainedPacket explain(PacketView packet) const override {
    const std::lock_guard lock(functions_);
    return run::explain(chain_, packet);
  }
  [[nodiscard]] Taps& taps() noexcept override { return taps_; }
  [[nodiscard]] std::span<const std::string_view> drop_reasons(std::size_t function) const noexcept override {
    return planned_[function].drop_reasons;
  }
  [[nodiscard]] std::vector<TrackedConnections> connections() const override;
  [[nodiscard]] Errors reopen_logs() override;
  [[nodiscard]] Result<void> apply(Functions next) override {
    const std::lock_guard lock(control_);
    return change_to(next);
  }
  [[nodiscard]] Result<void> rollback() override;
  [[nodiscard]] Result<Continuity> continuity() const override {
    const std::lock_guard lock(functions_);
    return continuity_of(chain_);
  }
  [[nodiscard]] Result<HandedPorts> rest() override;
  void resume() override;
  void leave() noexcept override;
  void stop() noexcept override { stop_asked_.store(true); }
  [[nodiscard]] RunResult wait() override;

 private:
  [[nodiscard]] bool is_shared() const noexcept { return chain_.settings.queueing == Queueing::shared; }
  [[nodiscard]] bool is_over(Clock::time_point start) const {
    const std::chrono::nanoseconds duration = chain_.settings.duration;
    return stop_.load() || stop_asked_.load() || (duration.count() > 0 && Clock::now() - start >= duration);
  }
  [[nodiscard]] report::RunReport report_after(std::chrono::nanoseconds elapsed) const {
    const std::lock_guard lock(functions_);
    report::RunReport report = make_report(chain_, workers_, elapsed, receiver_.get());
    report.reloads = reloads_;
    if (queue_ != nullptr) report.shared_queue = {queue_->waiting_bytes(), queue_->most_bytes()};
    report.placement = placement_report();
    if (lane_keeper_ != nullptr && report.gpu) report.gpu->proxy = lane_keeper_->use();
    return report;
  }
  [[nodiscard]] std::vector<report::WorkerPlacement> placement_report() const;
  [[nodiscard]] Result<void> make_opener();
  [[nodiscard]] Result<bool> open();
  [[nodiscard]] Result<void> set_up();
  [[nodiscard]] Result<void> make_workers_unless_stopped();
  [[nodiscard]] Result<void> make_workers();
  [[nodiscard]] Result<void> start_workers();
  [[nodiscard]] Result<void> let_packets_in();
  [[nodiscard]] bool rests() const;
  void begin_worker(std::size_t worker);
  void begin_receiver();
  [[nodiscard]] Errors close();
  void supervise();
  void end();
  [[nodiscard]] Result<void> change_to(Functions& next);
  bool collect_ended();
  void renew_lanes(const std::stop_token& stop);

  Chain& chain_;
  const RunOptions options_;
  const std::atomic<bool>& stop_;
  std::atomic<bool> stop_asked_{false};
  Taps taps_;
  std::vector<function::NfTraits> planned_;  // the traits of the first epoch
  plan::Processors processors_;
  std::optional<plan::DevicePlan> plan_;  // empty on the CPU
  mutable std::mutex functions_;          // guards the chain's functions, and the next member, against `apply`
  std::uint64_t reloads_ = 0;
  std::mutex control_;                      // held while functions or lanes are replaced; guards the next member
  Functions former_;                        // of the former epoch; empty: there was none
  std::mutex collecting_;                   // guards the next member, and the destruction of stages
  std::vector<bool> changing_;              // by worker: it still has stages of the former epoch
  PacketMemory memory_;                     // that ports lend
  std::optional<SetUpWatch> set_up_watch_;  // until packets flow; empty on the CPU
  std::unique_ptr<Opener> opener_;          // until the ports have started
  std::vector<CpuList> cores_;              // by worker: where its thread may run; written before the first packet
  std::unique_ptr<HandOver> hand_over_;     // null: packets of all connections come to their worker
  std::unique_ptr<SharedQueue> queue_;      // of shared queueing, like the next member; else null
  std::unique_ptr<Receiver> receiver_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> stop_workers_{false};
  std::atomic<unsigned> running_{0};
  std::packaged_task<Errors()> close_{[this] { return close(); }};
  std::shared_future<Errors> closed_;
  Clock::time_point start_;
  Clock::time_point ended_at_;
  std::optional<RunResult> never_began_;  // the run was over before packets flowed
  std::optional<WorkerThreads> threads_;
  std::thread supervisor_;
  std::unique_ptr<LaneKeeper> lane_keeper_;  // null: the lanes are not in another process
};

/// False: the run was over first.
Result<bool> RunningChain::open() {
  const Clock::time_point opening_start = Clock::now();
  bool interrupted = false;
  port::Opening offer(chain_.settings.workers);
  offer.memory = &memory_;
  offer.continues = options_.predecessor != nullptr;
  const ring::RingShape& ring = workers_.front()->ring_shape();
  if (!is_shared()) offer.room = ring.room;  // the receiver copies frames to where there is room
  if (ring.most_lent_bytes == Batch::kNoLimit || is_shared()) {
    offer.batch_bytes = ring.batch_bytes;
  } else {
    // Only headers cross, read by a kernel: best from where PCIe's reads begin.
    offer.batch_bytes = std::size_t{1} << 31;
    offer.lent_alignment = 128;
  }
  offer.batch_packets = ring.batch_packets;
  offer.host_changes_payload = host_changes_payload(chain_, plan_ ? &*plan_ : nullptr);
  auto opening = opener_->run([this, offer] {
    // Threads inherit this too. If the system refuses it, `make_workers` says so.
    const ThreadMemoryOnNode near_workers(common_memory_node(chain_.settings.placement));
    return open_outlets(chain_, offer);
  });
  while (opening.wait_for(kStopCheckInterval) != std::future_status::ready) {
    if (!is_over(opening_start)) continue;
    interrupted = true;
    interrupt(chain_);
  }
  auto opened = opening.get();
  if (opened) return true;
  memory_.release();
  static_cast<void>(close_outlets(chain_));
  if (!interrupted || options_.predecessor != nullptr) return failure(std::move(opened.error()));
  never_began_ = RunResult{make_report(chain_, {}, Clock::now() - opening_start), std::move(opened.error())};
  return false;
}

Result<void> RunningChain::start() {
  auto started = set_up();
  set_up_watch_.reset();
  return started;
}

Result<void> RunningChain::set_up() {
  // Threads of functions and ports start here, and inherit it.
  const ThreadOnCpus off_workers(chain_.settings.placement.other_cores);
  if (auto made = make_opener(); !made) return made;
  // Before outputs are opened, which truncates them.
  for (NamedFunction& named : chain_.functions) {
    if (auto begun = named.function->begin_run(); !begun) return begun;
  }
  const RunSettings& settings = chain_.settings;
  planned_ = chain_.traits();
  processors_ = chain_.processors();
  if (is_device(settings.processor)) {
    if (settings.gpu_shares.choice == plan::GpuShares::Choice::automatic) choose_gpu_shares(chain_);
    if (auto plan = chain_.device_plan()) plan_ = std::move(*plan);
  }
  if (auto made = make_workers_unless_stopped(); !made) return made;
  if (never_began_) return {};
  changing_.assign(workers_.size(), false);
  // The packet rings exist by now, and devices are ready for the ports' memory.
  const auto opened = open();
  if (!opened) return failure(opened.error());
  if (!*opened) return {};
  try {
    if (is_device(settings.processor) && settings.remote != nullptr)
      lane_keeper_ =
          std::make_unique<LaneKeeper>(*settings.remote, [this](const std::stop_token& stop) { renew_lanes(stop); });
  } catch (const std::system_error& error) {
    memory_.release();
    static_cast<void>(close_outlets(chain_));
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  if (auto started = start_workers(); !started) return started;
  try {
    supervisor_ = std::thread([this] { supervise(); });
  } catch (const std::system_error& error) {
    stop_workers_.store(true);
    interrupt(chain_);
    end();
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  return {};
}

/// Threads that are started later have only what is kept here.
Result<void> RunningChain::make_opener() {
  std::optional<port::CapabilityNeeds> needs;
  if (options_.gives_up_capabilities) needs = capability_needs(chain_);
  try {
    opener_ = std::make_unique<Opener>(needs ? std::optional(needs->to_open) : std::nullopt);
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  if (!needs) return {};
  if (const int error = keep_only(needs->to_run); error != 0)
    log_warning("cannot give up capabilities: {}", std::system_category().message(error));
  return {};
}

/// If it is stopped, and cannot go on because of that, the run is over; one that was to take over has failed.
Result<void> RunningChain::make_workers_unless_stopped() {
  const Clock::time_point begun = Clock::now();
  try {
    if (is_device(chain_.settings.processor)) set_up_watch_.emplace(stop_, chain_.settings.remote.get());
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  try {
    auto made = make_workers();
    // To stop takes away the proxy, without which the run would begin.
    const bool is_cut_short = stop_.load() && chain_.settings.remote != nullptr && chain_.settings.remote->is_lost();
    if (!made || !is_cut_short) return made;
  } catch (const gpu::CudaError&) {
    if (!stop_.load()) throw;
  }
  if (options_.predecessor != nullptr) return failure(Error{{}, "stopped while the run was set up", "", ""});
  log_info("stopped while the run was set up");
  never_began_ = RunResult{make_report(chain_, {}, Clock::now() - begun), {}};
  return {};
}

/// Makes each worker on its cores, so that the memory that this touches is on their node, and pinned memory on that of
/// the GPU.
Result<void> RunningChain::make_workers() {
  const RunSettings& settings = chain_.settings;
  // The driver starts threads with the first use of a device; they must not be bound to a worker's core.
  for (unsigned i = 0; i < settings.workers; ++i) {
    const auto factory = make_lane_factory(settings, i);
    if (factory != nullptr && !(factory->is_remote() && factory->is_lost())) factory->select();
  }
  if (is_shared()) {
    queue_ = std::make_unique<SharedQueue>(settings.queue_bytes);
    receiver_ = std::make_unique<Receiver>(chain_, memory_, *queue_);
  }
  hand_over_ = make_hand_over(chain_);
  int refused = 0;
  for (unsigned i = 0; i < settings.workers; ++i) {
    const WorkerPlace place = settings.placement.workers.empty() ? WorkerPlace() : settings.placement.workers[i];
    const ThreadOnCpus on_cores(place.cores);
    if (on_cores.error() != 0) {
      return failure(Error{{},
                           fmt::format("worker {} cannot be bound to {}", i, cores_text(place)),
                           std::system_category().message(on_cores.error()),
                           "cores that this process may use; `penstock doctor` has details"});
    }
    const ThreadMemoryOnNode on_node(place.gpu ? place.memory_node : std::nullopt);
    if (on_node.error() != 0 && refused == 0) {
      refused = on_node.error();
      log_warning(
          "the NUMA node of memory cannot be chosen: {}; it is that of the core that uses it first (`penstock doctor` "
          "has details)",
          std::system_category().message(refused));
    }
    workers_.push_back(std::make_unique<Worker>(chain_, memory_, i, &taps_, queue_.get(), hand_over_.get()));
  }
  return {};
}

/// In the worker's thread.
void RunningChain::begin_worker(std::size_t worker) {
  const std::vector<WorkerPlace>& places = chain_.settings.placement.workers;
  // If binding fails, it succeeded a moment ago in `make_workers`; the report shows where the thread is.
  if (!places.empty() && !places[worker].cores.empty()) static_cast<void>(bind_this_thread(places[worker].cores));
  static_cast<void>(::pthread_setname_np(::pthread_self(), fmt::format("worker-{}", worker).c_str()));
  cores_[worker] = cpus_of_this_thread();
  workers_[worker]->begin();
}

/// In the receiver's thread, which runs where threads other than workers do.
void RunningChain::begin_receiver() {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "receiver"));
  receiver_->begin();
}

std::vector<report::WorkerPlacement> RunningChain::placement_report() const {
  const std::vector<WorkerPlace>& places = chain_.settings.placement.workers;
  std::vector<report::WorkerPlacement> report;
  for (std::size_t w = 0; w < cores_.size(); ++w) {
    const WorkerPlace place = places.empty() ? WorkerPlace() : places[w];
    report.push_back({format_cpu_list(cores_[w]), !place.cores.empty(), place.gpu, place.memory_node});
  }
  return report;
}

Result<void> RunningChain::start_workers() {
  cores_.resize(workers_.size());
  closed_ = close_.get_future().share();
  const std::size_t threads = workers_.size() + (is_shared() ? 1 : 0);  // the receiver is the last one
  running_ = static_cast<unsigned>(threads);
  try {
    threads_.emplace(
        threads, [this](std::size_t thread) { thread < workers_.size() ? begin_worker(thread) : begin_receiver(); },
        [this](std::size_t thread) {
          if (thread == workers_.size()) {
            receiver_->run(stop_workers_);
          } else {
            // The receiver stops; workers take what it has left in the shared queue.
            static const std::atomic<bool> kNever{false};
            workers_[thread]->run(is_shared() ? kNever : stop_workers_);
          }
          // In the last worker's thread, so that ports can be interrupted while they wait to write the rest.
          if (running_.fetch_sub(1) == 1) close_();
        });
  } catch (const std::system_error& error) {
    closed_ = {};
    memory_.release();
    static_cast<void>(close_outlets(chain_));
    return failure({{},
                    "cannot start " + format_count(threads, "thread"),
                    error.code().message(),
                    "fewer workers, or a higher process limit"});
  }
  threads_->begin();
  if (chain_.timeline != nullptr) chain_.timeline->begin();
  set_up_watch_.reset();
  Errors errors;
  if (auto started = let_packets_in(); !started) {
    errors = std::move(started.error());
    stop_workers_.store(true);
    interrupt(chain_);
  }
  opener_.reset();
  for (const auto& log : chain_.logs) {
    if (errors.empty()) log->begin();
  }
  start_ = Clock::now();
  threads_->start();
  if (errors.empty()) return {};
  end();
  append(errors, closed_.get());
  return failure(std::move(errors));
}

/// All threads wait for packets, so that those of another process wait for as short as possible.
Result<void> RunningChain::let_packets_in() {
  Predecessor* const predecessor = options_.predecessor;
  HandedPorts handed;
  if (predecessor != nullptr) {
    auto taken = predecessor->take();
    if (!taken) return failure(std::move(taken.error()));
    handed = std::move(*taken);
  }
  auto started = opener_->run([&] { return start_ports(chain_, predecessor == nullptr ? nullptr : &handed); }).get();
  if (predecessor == nullptr) return started;
  if (started) started = predecessor->confirm();
  if (!started) leave();  // what belongs to the other process stays as it is
  return started;
}

/// Called when all workers have ended.
Errors RunningChain::close() {
  if (lane_keeper_ != nullptr) lane_keeper_->stop();
  if (chain_.settings.remote != nullptr) chain_.settings.remote->disconnect();  // a reload may wait for an answer
  static_cast<void>(collect_ended());                                           // stages write the rest of their logs
  const std::lock_guard lock(functions_);
  for (NamedFunction& named : chain_.functions) named.function->end_run();
  for (const auto& worker : workers_) ended_at_ = std::max(ended_at_, worker->ended_at());
  memory_.release();
  return close_outlets(chain_);
}

void RunningChain::supervise() {
  while (closed_.wait_for(kStopCheckInterval) != std::future_status::ready) {
    if (!is_over(start_) && !any_failed(chain_)) continue;
    stop_workers_.store(true);
    interrupt(chain_);
  }
}

void RunningChain::end() {
  if (!closed_.valid()) return;
  closed_.wait();
  if (supervisor_.joinable()) supervisor_.join();
  if (threads_) threads_->join();
  threads_.reset();
}

RunResult RunningChain::wait() {
  if (never_began_) return std::move(*never_began_);
  const ThreadOnCpus off_workers(chain_.settings.placement.other_cores);
  Clock::time_point next_progress = start_ + kProgressInterval;
  while (closed_.wait_for(kStopCheckInterval) != std::future_status::ready) {
    if (options_.on_tick) options_.on_tick(*this);
    const Clock::time_point now = Clock::now();
    if (options_.on_progress && now >= next_progress) {
      options_.on_progress(progress_of(chain_, workers_, receiver_.get(), start_));
      next_progress = now + kProgressInterval;
    }
  }
  end();
  return {report_after(ended_at_ - start_), closed_.get()};
}

std::vector<Pulse> RunningChain::pulses() const {
  std::vector<Pulse> pulses;
  if (never_began_) return pulses;
  for (std::size_t w = 0; w < workers_.size(); ++w)
    pulses.push_back({fmt::format("worker {}", w), workers_[w]->pulse()});
  if (receiver_ != nullptr) pulses.push_back({"receiver", receiver_->pulse()});
  return pulses;
}

std::vector<TrackedConnections> RunningChain::connections() const {
  const std::lock_guard lock(functions_);
  std::vector<TrackedConnections> all;
  for (const NamedFunction& named : chain_.functions) {
    const auto* const keeper = dynamic_cast<const function::ConnectionKeeper*>(named.function.get());
    if (keeper == nullptr) continue;
    if (auto connections = keeper->connections()) all.push_back({named.name, std::move(connections)});
    if (!all.empty()) break;  // later functions share them
  }
  return all;
}

Errors RunningChain::reopen_logs() {
  Errors errors;
  const auto note = [&errors](Result<void> reopened) {
    if (!reopened) append(errors, std::move(reopened.error()));
  };
  for (const auto& log : chain_.logs) note(log->reopen());
  note(Log::of_process().reopen());
  return errors;
}

Result<void> RunningChain::rollback() {
  const std::lock_guard lock(control_);
  if (former_.empty())
    return failure(Error{{}, "there is no former configuration to return to", "", "a reload before the rollback"});
  Functions next = std::move(former_);
  auto changed = change_to(next);
  if (!changed) former_ = std::move(next);
  return changed;
}

Result<HandedPorts> RunningChain::rest() {
  constexpr std::chrono::seconds kLongest{1};
  if (auto possible = continuity(); !possible) return failure(std::move(possible.error()));
  if (never_began_ || is_over(start_)) return failure(Error{{}, "the run is ending", "", "a run that goes on"});
  for (NamedPort& named : chain_.ports) named.port->rest();
  for (const auto& worker : workers_) worker->let_hold(false);
  for (const Clock::time_point begun = Clock::now(); !rests();) {
    if (Clock::now() - begun > kLongest) {
      resume();
      return failure(Error{{}, "packets that were received are not done", format_duration(kLongest), "less time"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  HandedPorts handed;
  for (NamedPort& named : chain_.ports) handed.emplace(named.name, named.port->hand_over());
  return handed;
}

/// No queue receives, and no packet is under way. In this order: packets leave the queues for the workers.
bool RunningChain::rests() const {
  if (!std::ranges::all_of(chain_.ports, [](const NamedPort& named) { return named.port->rests(); })) return false;
  const report::RunReport now = report();
  return now.in.packets == now.forwarded.packets + now.dropped.packets + now.consumed.packets;
}

void RunningChain::resume() {
  for (const auto& worker : workers_) worker->let_hold(true);
  for (NamedPort& named : chain_.ports) named.port->resume();
}

void RunningChain::leave() noexcept {
  for (NamedPort& named : chain_.ports) named.port->leave();
  stop();
}

/// On success, `former_` holds what was in the chain. On an error, nothing has changed.
Result<void> RunningChain::change_to(Functions& next) {
  if (never_began_ || closed_.wait_for(std::chrono::seconds{0}) == std::future_status::ready)
    return failure(Error{{}, "the run has ended", "", "a reload while packets flow"});
  Errors errors;
  for (std::size_t i = 0; i < next.size(); ++i)
    append(errors, plan::check_fit(chain_.functions[i].name, planned_[i], next[i]->traits(), processors_[i]));
  if (!errors.empty()) return failure(std::move(errors));

  std::vector<NamedFunction> functions;
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (auto taken = next[i]->take_over(*chain_.functions[i].function); !taken) return taken;
  }
  for (std::size_t i = 0; i < next.size(); ++i) functions.push_back({chain_.functions[i].name, std::move(next[i])});
  std::vector<std::unique_ptr<StageSet>> stages;
  try {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      // Not on the worker's cores, where it is busy.
      const std::vector<WorkerPlace>& places = chain_.settings.placement.workers;
      const ThreadMemoryOnNode on_node(places.empty() ? std::nullopt : places[w].memory_node);
      stages.push_back(workers_[w]->make_stages(functions, plan_ ? &*plan_ : nullptr));
    }
  } catch (const gpu::CudaError& error) {
    stages.clear();
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = std::move(functions[i].function);
    return failure(
        Error{{}, "the GPU cannot hold the next tables beside those in use", error.what(), "more free memory"});
  }

  {
    const std::lock_guard lock(functions_);
    for (std::size_t i = 0; i < functions.size(); ++i) std::swap(chain_.functions[i].function, functions[i].function);
    ++reloads_;
  }
  {
    const std::lock_guard lock(collecting_);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      changing_[i] = true;
      workers_[i]->begin_epoch(std::move(stages[i]));
    }
  }
  while (!collect_ended()) std::this_thread::sleep_for(std::chrono::microseconds{100});
  for (const NamedFunction& named : chain_.functions) named.function->predecessor_ended();
  former_.clear();
  for (NamedFunction& named : functions) former_.push_back(std::move(named.function));
  return {};
}

/// Destroys the stages that no batch uses any more. Returns whether none are left to wait for.
bool RunningChain::collect_ended() {
  const std::lock_guard lock(collecting_);
  for (std::size_t i = 0; i < changing_.size(); ++i) {
    if (changing_[i]) changing_[i] = workers_[i]->take_ended() == nullptr;
  }
  return std::ranges::find(changing_, true) == changing_.end();
}

/// The device of another process is connected again. In the keeper's thread, which outlives no worker.
void RunningChain::renew_lanes(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kLook{1};
  std::unique_lock lock(control_, std::defer_lock);  // a reload may wait for the proxy, the end must not
  while (!lock.try_lock()) {
    if (stop.stop_requested()) return;
    std::this_thread::sleep_for(kLook);
  }
  std::vector<std::unique_ptr<LaneSet>> lanes;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const std::vector<WorkerPlace>& places = chain_.settings.placement.workers;
    const ThreadMemoryOnNode on_node(places.empty() ? std::nullopt : places[w].memory_node);
    lanes.push_back(workers_[w]->make_lanes());
  }
  for (std::size_t w = 0; w < workers_.size(); ++w) workers_[w]->begin_lanes(std::move(lanes[w]));
  for (const auto& worker : workers_) {
    while (worker->take_ended_lanes() == nullptr && !stop.stop_requested()) std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

Result<std::unique_ptr<Run>> start(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop) {
  auto run = std::make_unique<RunningChain>(chain, options, stop);
  if (auto started = run->start(); !started) return failure(std::move(started.error()));
  return run;
}

Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop) {
  auto started = start(chain, options, stop);
  if (!started) return failure(std::move(started.error()));
  return (*started)->wait();
}

}  // namespace penstock::run
