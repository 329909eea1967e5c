// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/remote_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/shared_memory.h"
#include "base/units.h"
#include "classify/standing.h"
#include "conntrack/connection_tables.h"
#include "conntrack/connections.h"
#include "conntrack/packet_connection.h"
#include "function/connection_counters.h"
#include "function/connection_keeper.h"
#include "function/deferring_stage.h"
#include "function/granted_stage.h"
#include "function/packet_sharing.h"
#include "packet/parse_core.h"
#include "process/link.h"

namespace penstock::process {

namespace {

using Clock = std::chrono::steady_clock;
using function::kBurst;

/// What happened, in all epochs. Written by workers.
struct Counters {
  std::atomic<std::uint64_t> lost_packets{0};  // not decided by the process
  std::atomic<std::uint64_t> losses{0};        // of the process
  std::atomic<std::uint64_t> copied{0};        // packets that had to be copied
  std::atomic<std::uint64_t> confirmed{0};     // packets that the process got with what a device had found
  std::atomic<std::uint64_t> clear{0};         // packets that it did not get, since nothing had been found
};

class RemoteStage;

class RemoteFunction final : public function::NetworkFunction,
                             public function::PacketSharing,
                             public function::ConnectionKeeper,
                             public function::GrantedStage {
 public:
  RemoteFunction(RemoteSettings settings, const Hello& hello, Link::Opened opened,
                 std::unique_ptr<const ServedTraits> served)
      : settings_(std::move(settings)),
        hello_(hello),
        link_(std::move(opened.link)),
        description_(opened.description),
        served_(std::move(served)) {}
  RemoteFunction(const RemoteFunction&) = delete;
  RemoteFunction& operator=(const RemoteFunction&) = delete;
  ~RemoteFunction() override {
    stops_.store(true);
    wake_.notify_all();
    if (watcher_.joinable()) watcher_.join();
    link_->lose("is not needed any more");
  }

  const function::NfTraits& traits() const noexcept override { return served_->traits(); }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& twin) override;
  Result<void> begin_run() override {
    tables_ = make_tables();
    start_watcher();
    return {};
  }
  void end_run() noexcept override {
    if (tables_ != nullptr) tables_->end();
  }
  Result<std::string> changes_from(const function::NetworkFunction& running) const override {
    // Whether a function is in a process cannot change in a reload.
    const auto& before = static_cast<const RemoteFunction&>(running);
    if (traits().connections.has_value() != before.traits().connections.has_value()) {
      return failure(
          Error{{},
                "rules that test connections come or go, and the chain's process tracks them: it needs a new run",
                "",
                ""});
    }
    return NetworkFunction::changes_from(running);
  }
  Result<void> take_over(function::NetworkFunction& predecessor) override {
    if (auto* const before = dynamic_cast<RemoteFunction*>(&predecessor)) {
      counters_ = before->counters_;
      planned_ = before->planned_;
      if (tables_ != nullptr && before->tables_ != nullptr) tables_ = before->tables_;
    }
    start_watcher();
    return {};
  }
  std::string description() const override {
    return fmt::format("in the process at {}: {}", settings_.socket, printable(description_.text.view()));
  }
  std::string state_of_run() const override {
    if (traits().connections) return "connections";
    return served_->tracks_flows() ? "flows in another process" : "";
  }
  std::shared_ptr<conntrack::ConnectionTables> connections() const noexcept override { return tables_; }
  std::optional<function::Explanation> explain(PacketView /*packet*/) const override { return explanation(); }
  function::Explanation explain(PacketView /*packet*/, conntrack::Connections& /*connections*/) const override {
    return explanation();
  }
  void report(nlohmann::json& into) const override {
    into["process"] = {{"socket", settings_.socket},
                       {"connected", is_there_.load()},
                       {"losses", counters_->losses.load()},
                       {"lost_packets", counters_->lost_packets.load()},
                       {"copied_packets", counters_->copied.load()}};
    if (traits().connections) into["connections"] = function::report_of(connection_counters_.sum());
    if (!traits().finish) return;
    into["process"]["confirmed_packets"] = counters_->confirmed.load();
    into["process"]["clear_packets"] = counters_->clear.load();
  }

  // Of its stage in a proxy.

  const function::StageNeeds* stage_needs() const noexcept override { return served_->stage(); }
  Result<function::GrantToken> ask_for_token(const std::function<bool()>& gives_up) override;
  bool can_give(Verdict verdict) const noexcept override {
    if (verdict.kind == VerdictKind::punt) return true;
    return is_possible(verdict) && (verdict.alive() || !served_->clear_findings());
  }

  // For its stages.

  [[nodiscard]] bool is_possible(Verdict verdict) const noexcept;
  [[nodiscard]] const RemoteSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] const ServedTraits& served() const noexcept { return *served_; }
  [[nodiscard]] Counters& counters() const noexcept { return *counters_; }
  [[nodiscard]] function::ConnectionCounters& add_connection_counters() { return connection_counters_.add(); }
  void remove(RemoteStage& stage) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(stages_, &stage);
  }
  /// The process cannot be used any more.
  void lose(Link& link, const char* why) noexcept {
    link.lose(why);
    report_loss(link);
  }
  /// Logs and counts that a link is lost, once, whoever has noticed it: a request, a worker, or the watcher.
  void report_loss(Link& link) noexcept {
    const char* const why = link.take_loss();
    if (why == nullptr) return;
    counters_->losses.fetch_add(1, std::memory_order_relaxed);
    is_there_.store(false);
    log_warning("{}: the process at {} {}: its packets are {} until it is back", traits().name, settings_.socket, why,
                settings_.passes_when_lost ? "passed" : "dropped");
  }

 private:
  [[nodiscard]] function::Explanation explanation() const {
    function::Explanation explanation;
    explanation.decided_by = "the process at " + settings_.socket;
    explanation.depends_on = "what this process finds; it is not asked, and the packet is taken to pass unchanged";
    return explanation;
  }
  [[nodiscard]] std::shared_ptr<conntrack::ConnectionTables> make_tables() const;
  void start_watcher() {
    if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
  }
  void watch() noexcept;
  void return_from_loss();
  [[nodiscard]] bool has_returned(Description description) const noexcept;

  const RemoteSettings settings_;
  const Hello hello_;
  std::shared_ptr<Link> link_;  // guarded by `mutex_`, like the next member
  bool has_same_stage_ = true;  // the lanes have room for what its stage exchanges with the host
  const Description description_;
  const std::shared_ptr<const ServedTraits> served_;
  std::shared_ptr<const ServedTraits> planned_ = served_;  // of the run's first epoch, whose texts the run still names
  std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();
  function::CountersOfWorkers connection_counters_;  // of this epoch's stages, which publish the totals of the run
  // Of all epochs of a run; null: the function reads no connections.
  std::shared_ptr<conntrack::ConnectionTables> tables_ = make_tables();
  std::mutex mutex_;  // guards the next members; held while the watcher works for stages, which then do not end
  std::vector<RemoteStage*> stages_;
  unsigned made_stages_ = 0;
  std::atomic<bool> is_there_{true};  // the process, by `link_`
  std::atomic<bool> stops_{false};
  std::condition_variable wake_;
  std::thread watcher_;  // connects again, and opens memory
  Clock::time_point next_try_;
  Clock::time_point returned_at_;
  std::chrono::milliseconds between_tries_{};
  std::string why_not_back_;  // as it was logged last
};

/// Of one worker. What takes time is done by the function's watcher, which leaves the results in `news_`.
class RemoteStage final : public function::CpuStage, public function::DeferringStage {
 public:
  RemoteStage(RemoteFunction& function, unsigned worker, std::unique_ptr<Queue> queue)
      : function_(function),
        worker_(worker),
        queue_(std::move(queue)),
        connection_counters_(function.traits().connections ? &function.add_connection_counters() : nullptr) {}
  RemoteStage(const RemoteStage&) = delete;
  RemoteStage& operator=(const RemoteStage&) = delete;
  ~RemoteStage() override {
    function_.remove(*this);
    if (passed_over_.packets == 0 || !begin_burst()) return;
    submit(BurstSlot::kConfirm);
    static_cast<void>(take_confirmed());
  }

  void set_connections(conntrack::Connections& connections) noexcept override {
    if (connection_counters_ == nullptr) return;
    connections_ = &connections;
    begin_batch();
  }
  void begin_batch() noexcept override {
    begins_batch_ = true;
    waited_ = {};
    if (connections_ != nullptr) connection_counters_->publish(connections_->counters());
  }
  void process(std::span<PacketView> packets) noexcept override {
    if (function_.traits().connections) return process_with_connections(packets);
    while (!packets.empty()) {
      const std::size_t count = fill(packets);
      const std::span<PacketView> part = packets.first(count > 0 ? count : packets.size());
      if (count > 0) {
        submit_burst(part);
        wait();
        finish();
      } else {
        give_up(part);
      }
      packets = packets.subspan(part.size());
    }
  }
  bool begin(std::span<PacketView> packets) noexcept override {
    if (changes_lengths(function_.traits())) return false;  // the chain then finds out at once how they have changed
    if (function_.traits().connections) return false;
    if (fill(packets) < packets.size()) return false;
    submit_burst(packets);
    return true;
  }
  bool is_ready() noexcept override { return queue_->state(function_.settings().patience) != Queue::State::running; }
  void finish() noexcept override { static_cast<void>(finish_burst()); }
  void observe(PacketView packet) noexcept override {
    if (!function_.served().tracks_flows() || fill({&packet, 1}) == 0) return;
    submit(BurstSlot::kObserve);
    wait();
    static_cast<void>(is_decided());
    static_cast<void>(queue_->take(results_));
  }
  std::string explain(PacketView /*packet*/) const override {
    return "decided by the process at " + function_.settings().socket;
  }

  // For its finish stage. `findings` are of tables with this number.

  using Packets = std::span<const PacketView>;
  using Findings = std::span<const std::byte* const>;
  using States = std::span<const std::byte* const>;  // that were sent with packets; empty: there are none
  /// Whether the process knows what the findings mean. Not if it has lost the chain since, or is another one: then it
  /// processes the packets as if no device had.
  [[nodiscard]] bool knows(std::uint64_t grant) const noexcept {
    return usable() && queue_->link().grant() == grant && grant != 0;
  }
  /// Until the process has confirmed them; drops those that it drops.
  void confirm(Packets packets, Findings findings, States states, std::uint64_t grant) noexcept;
  /// The same for packets that have been sent: goes on until `end_confirm`.
  void begin_confirm(Packets packets, Findings findings, States states, std::uint64_t grant) noexcept;
  void end_confirm() noexcept {
    while (queue_ != nullptr && queue_->under_way() > 0) take_sent();
  }
  /// For its state stage: asks what a stage with these tables needs to know about the packets. After `end_decide` it is
  /// in `states`, which stay until then. Zeros: nothing.
  void begin_decide(Packets packets, std::span<std::byte* const> states, std::uint64_t grant) noexcept;
  void end_decide() noexcept {
    while (queue_ != nullptr && queue_->under_way() > 0) take_decided();
  }
  /// For its state stage if the function reads connections: looks those of the packets up. Of a packet that may begin
  /// one, the process decides here as well, before the next packet is looked up.
  void look_up(Packets packets, std::span<std::byte* const> states) noexcept;
  /// Packets that the process does not get, since their findings are clear.
  void pass_over(const function::PassedOver& packets) noexcept {
    if (packets.packets == 0) return;
    function_.counters().clear.fetch_add(packets.packets, std::memory_order_relaxed);
    passed_over_.packets += packets.packets;
    passed_over_.bytes += packets.bytes;
  }

  // For the watcher.

  [[nodiscard]] unsigned worker() const noexcept { return worker_; }
  /// The next link's queue.
  void offer(std::unique_ptr<Queue> queue) noexcept {
    const std::lock_guard lock(mutex_);
    news_.queue = std::move(queue);
    has_news_.store(true, std::memory_order_release);
  }
  /// Opens memory to the process, if the worker has found some.
  void open_memory() noexcept {
    if (!wants_memory_.load(std::memory_order_acquire)) return;
    const bool writes = function_.served().changes_bytes() && !changes_lengths(function_.traits());
    auto frames = queue_->open(wanted_.file.get(), wanted_.memory, writes);
    const std::lock_guard lock(mutex_);
    news_.opened = frames;
    wants_memory_.store(false, std::memory_order_release);
    has_news_.store(true, std::memory_order_release);
  }

 private:
  /// Whether the process has decided.
  [[nodiscard]] bool finish_burst() noexcept;
  [[nodiscard]] bool usable() const noexcept { return queue_ != nullptr && !queue_->link().is_lost(); }
  /// Whether the process gets copies of packets that it may change.
  [[nodiscard]] bool copies_all() const noexcept {
    return function_.served().changes_bytes() &&
           (!function_.settings().in_place || changes_lengths(function_.traits()));
  }
  /// … and of packets that it must not change, in case it could do that in the chain's memory.
  [[nodiscard]] bool copies_unchanged() const noexcept { return copies_all() && !changes_lengths(function_.traits()); }
  void process_with_connections(std::span<PacketView> packets) noexcept;
  [[nodiscard]] bool accepts(PacketView packet, const conntrack::PacketConnection& connection) noexcept;
  /// Of packets to which rules about headers apply.
  [[nodiscard]] static bool has_connection(PacketView packet) noexcept {
    return classify::standing_of(packet.layout()) == classify::Standing::judged;
  }
  void take_news() noexcept;
  [[nodiscard]] bool begin_burst() noexcept;
  [[nodiscard]] std::size_t fill(Packets packets) noexcept {
    return begin_burst() ? add(packets, {}, copies_all()) : 0;
  }
  [[nodiscard]] std::size_t add(Packets packets, Findings findings, bool copies, States states = {}) noexcept;
  void submit(BurstSlot::Kind kind) noexcept {
    queue_->submit(kind, std::exchange(begins_batch_, false), std::exchange(passed_over_, {}));
  }
  void submit_burst(std::span<PacketView> packets) noexcept;
  [[nodiscard]] std::size_t submit_findings(Packets packets, Findings findings, States states,
                                            std::uint64_t grant) noexcept;
  struct Taken {
    std::size_t packets;
    bool decided;  // false: the process is lost
  };
  [[nodiscard]] Taken take_confirmed() noexcept;
  void take_sent() noexcept;
  void take_decided() noexcept;
  [[nodiscard]] bool take_drops(Packets packets) noexcept;
  [[nodiscard]] bool are_possible(std::span<const PacketResult> results, Packets packets) const noexcept;
  void wait() noexcept;
  void wait_long() noexcept;
  [[nodiscard]] bool is_decided() noexcept;
  void want_memory_of(PacketView packet) noexcept;
  [[nodiscard]] bool take_verdicts(std::span<PacketView> packets) noexcept;
  void give_up(std::span<const PacketView> packets) noexcept;
  void count_lost(std::size_t packets) noexcept;

  RemoteFunction& function_;
  const unsigned worker_;
  std::unique_ptr<Queue> queue_;                             // null: there is none yet
  conntrack::Connections* connections_ = nullptr;            // null: the function reads none
  function::ConnectionCounters* const connection_counters_;  // the same
  bool begins_batch_ = true;
  Clock::duration waited_{};                               // for slow bursts of this batch
  function::PassedOver passed_over_;                       // since the last burst
  std::array<std::span<PacketView>, kSlots> under_way_{};  // bursts; the first is at `first_`
  /// Of a burst about which the process is asked: where the states of its packets go.
  struct Asked {
    std::array<std::byte*, kBurst> states;
    std::size_t packets;
  };
  std::array<Asked, kSlots> asked_{};  // likewise
  std::size_t first_ = 0;
  std::array<PacketResult, kBurst> results_{};  // of the burst that is taken

  struct Wanted {
    ipc::FileDescriptor file;
    std::span<const std::uint8_t> memory;
  } wanted_;  // the watcher's while `wants_memory_`
  std::atomic<bool> wants_memory_{false};
  unsigned wishes_ = 0;  // in this queue

  struct News {
    std::unique_ptr<Queue> queue;
    std::optional<Queue::Frames> opened;
  };
  std::mutex mutex_;  // guards `news_`
  News news_;
  std::atomic<bool> has_news_{false};
};

void RemoteStage::take_news() noexcept {
  const std::lock_guard lock(mutex_);
  has_news_.store(false, std::memory_order_relaxed);
  if (news_.opened) queue_->use(*std::exchange(news_.opened, std::nullopt));
  // While the watcher opens memory for the former queue, that one stays.
  if (news_.queue == nullptr) return;
  if (wants_memory_.load(std::memory_order_acquire)) return has_news_.store(true, std::memory_order_relaxed);
  queue_ = std::move(news_.queue);
  wishes_ = 0;
}

/// Begins to fill a burst. False: it has no slot.
bool RemoteStage::begin_burst() noexcept {
  const bool is_idle = queue_ == nullptr || queue_->under_way() == 0;
  if (is_idle && has_news_.load(std::memory_order_acquire)) take_news();
  return usable() && queue_->begin();
}

/// Adds packets to the burst. Returns how many have room.
std::size_t RemoteStage::add(Packets packets, Findings findings, bool copies, States states) noexcept {
  const std::uint32_t finding_bytes = function_.traits().findings_bytes;
  std::uint64_t copied = 0;
  std::size_t count = 0;
  for (; count < packets.size(); ++count) {
    const auto finding = findings.empty() ? std::span<const std::byte>() : std::span(findings[count], finding_bytes);
    const Queue::Added added = queue_->add(packets[count], copies, finding);
    if (added == Queue::Added::no) break;
    if (!states.empty()) queue_->add_state({states[count], function_.traits().state_bytes});
    if (added == Queue::Added::in_place) continue;
    ++copied;
    if (!copies) want_memory_of(packets[count]);
  }
  if (copied > 0) function_.counters().copied.fetch_add(copied, std::memory_order_relaxed);
  return count;
}

void RemoteStage::submit_burst(std::span<PacketView> packets) noexcept {
  under_way_[(first_ + queue_->under_way()) % kSlots] = packets;
  submit(BurstSlot::kProcess);
}

/// Returns how many packets are in the burst; 0: there is no slot.
std::size_t RemoteStage::submit_findings(Packets packets, Findings findings, States states,
                                         std::uint64_t grant) noexcept {
  if (!begin_burst()) return 0;
  const bool known = knows(grant);
  const std::size_t count = add(packets, known ? findings : Findings(), copies_all(), known ? states : States());
  if (count == 0) return 0;
  submit(known ? BurstSlot::kConfirm : BurstSlot::kProcess);
  if (known) function_.counters().confirmed.fetch_add(count, std::memory_order_relaxed);
  return count;
}

void RemoteStage::confirm(Packets packets, Findings findings, States states, std::uint64_t grant) noexcept {
  while (!packets.empty()) {
    const std::size_t count = submit_findings(packets, findings, states, grant);
    const Packets part = packets.first(count > 0 ? count : packets.size());
    const bool decided = count > 0 && take_confirmed().decided;
    if (!decided || !take_drops(part)) give_up(part);
    packets = packets.subspan(part.size());
    findings = findings.subspan(part.size());
    states = states.subspan(std::min(states.size(), part.size()));
  }
}

void RemoteStage::begin_confirm(Packets packets, Findings findings, States states, std::uint64_t grant) noexcept {
  while (!packets.empty()) {
    std::size_t count = submit_findings(packets, findings, states, grant);
    if (count == 0 && usable() && queue_->under_way() > 0) {
      take_sent();
      continue;
    }
    if (count == 0) {
      count = packets.size();
      count_lost(count);
    }
    packets = packets.subspan(count);
    findings = findings.subspan(count);
    states = states.subspan(std::min(states.size(), count));
  }
}

void RemoteStage::begin_decide(Packets packets, std::span<std::byte* const> states, std::uint64_t grant) noexcept {
  while (!packets.empty()) {
    const bool has_slot = begin_burst();
    if (!has_slot && usable() && queue_->under_way() > 0) {
      take_decided();
      continue;
    }
    // By other tables, another SA could have the same number, for example.
    std::size_t count = has_slot && knows(grant) ? add(packets, {}, copies_unchanged()) : 0;
    if (count > 0) {
      Asked& asked = asked_[(first_ + queue_->under_way()) % kSlots];
      std::ranges::copy(states.first(count), asked.states.begin());
      asked.packets = count;
      submit(BurstSlot::kDecide);
    } else {
      count = packets.size();
      for (std::byte* const state : states) std::memset(state, 0, function_.traits().state_bytes);
    }
    packets = packets.subspan(count);
    states = states.subspan(count);
  }
}

/// Waits for the first burst under way, and takes its states.
void RemoteStage::take_decided() noexcept {
  const Asked& asked = asked_[first_];
  first_ = (first_ + 1) % kSlots;
  const auto states = std::span(asked.states).first(asked.packets);
  const std::size_t bytes = function_.traits().state_bytes;
  wait();
  if (is_decided()) {
    queue_->take_states(states, bytes);
  } else {
    for (std::byte* const state : states) std::memset(state, 0, bytes);
  }
  static_cast<void>(queue_->take(results_));
}

/// A burst ends with a packet that may begin a connection: if the process drops it, the next packet must not find the
/// connection.
void RemoteStage::process_with_connections(std::span<PacketView> packets) noexcept {
  if (connections_ == nullptr) return give_up(packets);
  connections_->prepare(packets);
  while (!packets.empty()) {
    bool sends = begin_burst(), may_begin = false;
    std::size_t count = 0;
    while (count < packets.size() && !may_begin) {
      const PacketView packet = packets[count];
      conntrack::PacketConnection connection;
      bool is_first = false;
      if (has_connection(packet)) {
        const conntrack::Tracked tracked = connections_->of(packet);
        connection = conntrack::PacketConnection::of(tracked);
        is_first = connections_->may_begin(tracked);
      }
      if (sends && add({&packet, 1}, {}, copies_all()) == 0) {
        if (count > 0) break;  // the next burst has room
        sends = false;
      }
      if (sends) queue_->add_state(std::as_bytes(std::span(&connection, 1)));
      may_begin = is_first;
      ++count;
    }
    const std::span<PacketView> part = packets.first(count);
    bool decided = false;
    if (sends) {
      submit_burst(part);
      wait();
      decided = finish_burst();
    } else {
      give_up(part);
    }
    // Nor may it stay if nobody has accepted it: with `when_lost: pass`, it would pass for as long as it lasts.
    if (may_begin && !(decided && part.back().packet->verdict.alive())) connections_->refuse(part.back());
    packets = packets.subspan(count);
  }
}

/// Whether the process lets a packet pass, which stays as it is.
bool RemoteStage::accepts(PacketView packet, const conntrack::PacketConnection& connection) noexcept {
  const Packets alone(&packet, 1);
  if (!begin_burst() || add(alone, {}, copies_unchanged()) == 0) return false;
  queue_->add_state(std::as_bytes(std::span(&connection, 1)));
  submit(BurstSlot::kProcess);
  const bool decided = take_confirmed().decided;
  return decided && are_possible(std::span(results_).first(1), alone) && results_[0].verdict.alive();
}

void RemoteStage::look_up(Packets packets, std::span<std::byte* const> states) noexcept {
  for (const PacketView packet : packets) {
    if (!connections_->said(packet)) parse(packet);
  }
  connections_->prepare(packets);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    conntrack::PacketConnection connection;
    if (const auto before = connections_->said(packets[i])) {
      connection = conntrack::PacketConnection::of(*before);
    } else if (has_connection(packets[i])) {
      const conntrack::Tracked tracked = connections_->of(packets[i]);
      connection = conntrack::PacketConnection::of(tracked);
      if (connections_->may_begin(tracked)) {
        if (!accepts(packets[i], connection)) connections_->refuse(packets[i]);
      }
    }
    std::memcpy(states[i], &connection, sizeof connection);
  }
}

/// Waits for the first burst under way, and takes it.
RemoteStage::Taken RemoteStage::take_confirmed() noexcept {
  wait();
  const bool decided = is_decided();
  return {queue_->take(results_), decided};
}

/// Nothing can be decided about packets that have been sent.
void RemoteStage::take_sent() noexcept {
  const Taken taken = take_confirmed();
  if (!taken.decided) count_lost(taken.packets);
}

/// False: nothing has changed.
bool RemoteStage::take_drops(Packets packets) noexcept {
  const std::span<const PacketResult> results = std::span(results_).first(packets.size());
  for (const PacketResult& result : results) {
    if (result.verdict.kind != VerdictKind::consume && function_.is_possible(result.verdict)) continue;
    function_.lose(queue_->link(), "confirms by a verdict that its function cannot have");
    return false;
  }
  if (!function_.traits().finish->writes.has(Field::verdict)) return true;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (!results[i].verdict.alive()) packets[i].packet->verdict = {VerdictKind::drop, 0, results[i].verdict.value};
  }
  return true;
}

void RemoteStage::wait() noexcept {
  constexpr unsigned kPolls = 1024;
  for (unsigned polls = 0; !is_ready(); ++polls) {
    if (polls == kPolls) return wait_long();
  }
}

/// A burst can be a single packet. So that the worker does not wait its patience for each packet of a batch, the
/// process is lost if it needs too much time for all of them.
void RemoteStage::wait_long() noexcept {
  constexpr int kMostPatience = 32;
  const Clock::time_point begun = Clock::now();
  for (Clock::time_point now = begun; !is_ready(); now = Clock::now()) {
    if (now - begun < kYieldTime) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kShortSleep);
    }
  }
  waited_ += Clock::now() - begun;
  if (waited_ > kMostPatience * function_.settings().patience)
    function_.lose(queue_->link(), "takes too long for a batch");
}

/// Asks the watcher to open the memory in which the frame lies.
void RemoteStage::want_memory_of(PacketView packet) noexcept {
  // Frames that functions have moved lie in memory that is not shared. There is no use in looking often.
  constexpr unsigned kMostWishes = 4;
  if (wishes_ >= kMostWishes || wants_memory_.load(std::memory_order_acquire)) return;
  ++wishes_;
  const auto part = shared_part_of({packet.frame, packet.length()});
  if (!part) return;
  wanted_.file = ipc::FileDescriptor(::fcntl(part->file, F_DUPFD_CLOEXEC, 0));
  wanted_.memory = {packet.frame - part->offset, part->file_bytes};
  wants_memory_.store(true, std::memory_order_release);
}

/// Of the first burst, which is ready. False: the process is lost.
bool RemoteStage::is_decided() noexcept {
  switch (queue_->state(function_.settings().patience)) {
    case Queue::State::done: return true;
    case Queue::State::gone: function_.lose(queue_->link(), kHasEnded); break;
    case Queue::State::silent: function_.lose(queue_->link(), "does not answer in time"); break;
    case Queue::State::lost:
    case Queue::State::running: break;
  }
  return false;
}

bool RemoteStage::finish_burst() noexcept {
  const std::span<PacketView> packets = under_way_[first_];
  first_ = (first_ + 1) % kSlots;
  const bool answered = is_decided();
  static_cast<void>(queue_->take(results_));
  if (answered && take_verdicts(packets)) return true;
  give_up(packets);
  return false;
}

/// False: nothing has changed but frames that the process may change in place.
bool RemoteStage::take_verdicts(std::span<PacketView> packets) noexcept {
  const std::span<const PacketResult> results = std::span(results_).first(packets.size());
  if (!are_possible(results, packets)) return false;
  const function::NfTraits& traits = function_.traits();
  const bool moves = changes_lengths(traits);
  const bool marks = traits.cpu.writes.has(Field::mark);
  const bool changes_bytes = function_.served().changes_bytes();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    PacketDescriptor& descriptor = *packets[i].packet;
    const Verdict verdict = results[i].verdict;
    if (!verdict.alive() || traits.names_ports()) descriptor.verdict = {verdict.kind, 0, verdict.value};
    if (!verdict.alive()) continue;
    if (marks) descriptor.mark = results[i].mark;
    if (!changes_bytes) continue;
    const std::uint8_t* copy = queue_->copy(i);
    if (moves && (results[i].head != 0 || results[i].length != descriptor.length)) {  // then there is a copy
      copy -= results[i].head;
      packets[i].frame -= results[i].head;
      descriptor.offset -= static_cast<std::uint32_t>(results[i].head);
      descriptor.length = descriptor.wire_length = results[i].length;
    }
    if (copy != nullptr && descriptor.length > 0) std::memcpy(packets[i].frame, copy, descriptor.length);
    // The process may have changed any byte, also those that say where the headers are.
    parse(packets[i]);
  }
  return true;
}

/// Whether the function can have left packets so. If not, the process is lost.
bool RemoteStage::are_possible(std::span<const PacketResult> results, Packets packets) const noexcept {
  const FrameRoom growth = function_.traits().growth;
  const bool moves = changes_lengths(function_.traits());
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const PacketResult& result = results[i];
    if (!function_.is_possible(result.verdict)) {
      function_.lose(queue_->link(), "gives a verdict that its function cannot have");
      return false;
    }
    if (!moves || !result.verdict.alive()) continue;
    const std::int64_t before = packets[i].length(), after = result.length, head = result.head;
    const std::int64_t link_header = std::min<std::int64_t>(before, packets[i].layout().network_offset);
    const bool is_inside = head <= std::int64_t{growth.head} && head >= -before && after >= link_header &&
                           after - head <= before + std::int64_t{growth.tail};
    if (is_inside) continue;
    function_.lose(queue_->link(), "moves a frame by more than its function can");
    return false;
  }
  return true;
}

bool RemoteFunction::is_possible(Verdict verdict) const noexcept {
  const auto& ports = settings_.surroundings.ports;
  switch (verdict.kind) {
    case VerdictKind::forward:
      return !traits().names_ports() || verdict.value == kNoPort ||
             (verdict.value < ports.size() && ports[verdict.value].writes);
    case VerdictKind::drop: return verdict.value < served_->reasons();
    case VerdictKind::consume: return true;
    case VerdictKind::punt: break;
  }
  return false;
}

/// Counts packets that the process has not decided, and says why first: the run may end before the watcher does.
void RemoteStage::count_lost(std::size_t packets) noexcept {
  if (queue_ != nullptr) function_.report_loss(queue_->link());
  function_.counters().lost_packets.fetch_add(packets, std::memory_order_relaxed);
}

void RemoteStage::give_up(std::span<const PacketView> packets) noexcept {
  count_lost(packets.size());
  if (function_.settings().passes_when_lost) return;
  for (const PacketView& packet : packets) packet.packet->verdict = Verdict::drop(function_.served().reasons());
}

/// Hands over what the stage on a device has found, unless the findings are clear.
class RemoteFinishStage final : public function::FinishStage, public function::HandingStage {
 public:
  RemoteFinishStage(RemoteStage& twin, const function::ClearFindings& clear) noexcept : twin_(twin), clear_(clear) {}

  void take_grant(std::uint64_t grant) noexcept override { grant_ = grant; }
  void take_states(std::span<const std::byte* const> states) noexcept override { states_ = states; }
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
    const RemoteStage::States states = std::exchange(states_, {});
    std::array<std::uint8_t, kBurst> chosen;
    const std::size_t count = choose(packets, findings, chosen);
    std::array<PacketView, kBurst> those;
    std::array<const std::byte*, kBurst> of_each, states_of_those;
    for (std::size_t n = 0; n < count; ++n) {
      those[n] = packets[chosen[n]];
      of_each[n] = findings[chosen[n]];
      if (!states.empty()) states_of_those[n] = states[chosen[n]];
    }
    twin_.confirm(std::span(those).first(count), std::span(of_each).first(count),
                  std::span(states_of_those).first(states.empty() ? 0 : count), grant_);
  }
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                     std::span<std::uint8_t> chosen) noexcept override {
    const bool known = twin_.knows(grant_);
    std::size_t count = 0;
    function::PassedOver passed_over;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      if (known && clear_.has(findings[i])) {
        ++passed_over.packets;
        passed_over.bytes += packets[i].length();
      } else {
        chosen[count++] = static_cast<std::uint8_t>(i);
      }
    }
    twin_.pass_over(passed_over);
    return count;
  }
  void begin_finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
    twin_.begin_confirm(packets, findings, std::exchange(states_, {}), grant_);
  }
  void end_finish() noexcept override { twin_.end_confirm(); }

 private:
  RemoteStage& twin_;
  const function::ClearFindings clear_;
  std::uint64_t grant_ = 0;     // of the findings that come next
  RemoteStage::States states_;  // of the packets that come next
};

/// Asks the process what a device is to know about packets.
class RemoteStateStage final : public function::StateStage, public function::StatesOfGrant {
 public:
  explicit RemoteStateStage(RemoteStage& twin) noexcept : twin_(twin) {}
  void take_grant(std::uint64_t grant) noexcept override { grant_ = grant; }
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
    twin_.begin_decide(packets, states, grant_);
  }
  void end_states() noexcept override { twin_.end_decide(); }

 private:
  RemoteStage& twin_;
  std::uint64_t grant_ = 0;  // of the stage that gets the states
};

/// Gives the device what the worker knows about connections.
class ConnectionStateStage final : public function::StateStage {
 public:
  explicit ConnectionStateStage(RemoteStage& twin) noexcept : twin_(twin) {}
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
    twin_.look_up(packets, states);
  }

 private:
  RemoteStage& twin_;
};

std::shared_ptr<conntrack::ConnectionTables> RemoteFunction::make_tables() const {
  if (!traits().connections) return nullptr;
  const auto& ports = settings_.surroundings.ports;
  const bool is_live = std::ranges::any_of(ports, &Surroundings::Port::is_live);
  return std::make_shared<conntrack::ConnectionTables>(*traits().connections,
                                                       is_live ? conntrack::Clock::system : conntrack::Clock::packets);
}

Result<function::GrantToken> RemoteFunction::ask_for_token(const std::function<bool()>& gives_up) {
  std::shared_ptr<Link> link;
  {
    const std::lock_guard lock(mutex_);
    if (!has_same_stage_) {
      return failure(Error{{},
                           fmt::format("{} at {}: the process is back with another stage for the device, so that it "
                                       "stays on its CPU until a reload of the chain",
                                       traits().name, settings_.socket),
                           "",
                           ""});
    }
    link = link_;
  }
  auto token = link->ask_token(gives_up);
  if (!token) {
    for (Error& error : token.error())
      error.message = fmt::format("{} at {}: {}", traits().name, settings_.socket, error.message);
  }
  return token;
}

std::unique_ptr<function::CpuStage> RemoteFunction::make_cpu_stage() {
  const std::lock_guard lock(mutex_);
  const unsigned worker = made_stages_++;
  auto stage = std::make_unique<RemoteStage>(*this, worker, Queue::make(link_, worker, traits().growth));
  stages_.push_back(stage.get());
  report_loss(*link_);  // by now it may have no queue that could
  return stage;
}

std::unique_ptr<function::FinishStage> RemoteFunction::make_finish_stage(function::CpuStage& twin) {
  if (!traits().finish) return nullptr;
  return std::make_unique<RemoteFinishStage>(static_cast<RemoteStage&>(twin), *served_->clear_findings());
}

std::unique_ptr<function::StateStage> RemoteFunction::make_state_stage(function::CpuStage& twin) {
  if (traits().state_bytes == 0) return nullptr;
  if (traits().connections) return std::make_unique<ConnectionStateStage>(static_cast<RemoteStage&>(twin));
  return std::make_unique<RemoteStateStage>(static_cast<RemoteStage&>(twin));
}

void RemoteFunction::watch() noexcept {
  constexpr std::chrono::milliseconds kLook{5};
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return stops_.load(); })) {
    for (RemoteStage* const stage : stages_) stage->open_memory();
    if (!link_->is_lost() && link_->has_gone()) lose(*link_, kHasEnded);
    report_loss(*link_);
    if (!link_->is_lost()) continue;
    lock.unlock();  // workers end meanwhile if they have to
    try {
      return_from_loss();
    } catch (const std::exception&) {  // there is no memory: later
    }
    lock.lock();
  }
}

/// Whether the process that is back has the function for which the chain is planned. What it confirms only matters if
/// its stage may be in the chain's lanes.
bool RemoteFunction::has_returned(Description description) const noexcept {
  if (description.failed != 0) return false;
  if (served_->stage() == nullptr) {
    constexpr std::uint32_t kOfFinish = Description::kConfirms | Description::kFinishWaits;
    description.flags = (description.flags & ~kOfFinish) | (description_.flags & kOfFinish);
    description.finish_reads = description_.finish_reads;
    description.finish_writes = description_.finish_writes;
    description.clear_mask = description_.clear_mask;
    description.clear_value = description_.clear_value;
  }
  return are_alike(description, description_);
}

/// A process that is lost again soon after its return is given ever more time: each loss costs workers their patience.
void RemoteFunction::return_from_loss() {
  constexpr std::chrono::milliseconds kFirst{100}, kMost{10'000}, kStable{30'000};
  const Clock::time_point now = Clock::now();
  if (now < next_try_) return;
  const bool was_back = returned_at_ != Clock::time_point();
  if (was_back) {
    between_tries_ = now - returned_at_ < kStable ? std::clamp(between_tries_ * 2, kFirst, kMost) : kFirst;
    returned_at_ = {};
    next_try_ = now + between_tries_;
    if (between_tries_ > kFirst) return;
  }
  next_try_ = now + std::max(kFirst, between_tries_);
  auto opened = Link::open(settings_.socket, hello_, &stops_);
  if (!opened) return;
  if (!has_returned(opened->description)) {
    next_try_ = now + kMost;
    std::string why = opened->description.failed == 0
                          ? "not with the same function: the chain needs a reload or a new run"
                          : fmt::format("refuses, and is tried again every {} s: {}", kMost / std::chrono::seconds{1},
                                        to_string(error_of(opened->description)));
    if (why == why_not_back_) return;
    log_warning("{}: the process at {} is back, but {}", traits().name, settings_.socket, why);
    why_not_back_ = std::move(why);
    return;
  }
  why_not_back_.clear();
  const std::lock_guard lock(mutex_);
  link_ = std::move(opened->link);
  is_there_.store(true);  // before a worker can lose it again
  has_same_stage_ = exchanges_the_same(opened->description, description_);
  for (RemoteStage* const stage : stages_) {
    if (stops_.load() || link_->is_lost()) break;  // each queue may take its time
    if (auto queue = Queue::make(link_, stage->worker(), traits().growth)) stage->offer(std::move(queue));
  }
  returned_at_ = Clock::now();
  log_info("{}: the process at {} is back", traits().name, settings_.socket);
}

constexpr auto kRemoteParameters = std::to_array<Parameter>({
    {"process", ParameterType::text, "", "",
     "unix socket of the `penstock function serve` that runs the function, with its other parameters", true},
    {"when_lost", ParameterType::choice, "drop", "drop|pass",
     "what becomes of packets while the process is gone, silent or wrong"},
    {"patience", ParameterType::duration, "100ms", "", "time for a burst of packets; then the process is lost"},
    {"in_place", ParameterType::flag, "false", "",
     "let a function that changes packets do so in the chain's memory, where its process can change all of them; "
     "otherwise they are copied"},
});

}  // namespace

Result<std::unique_ptr<function::NetworkFunction>> connect_function(RemoteSettings settings) {
  auto hello = hello_of(settings.function, settings.surroundings);
  if (!hello) return failure(std::move(hello.error()));
  auto opened = Link::open(settings.socket, *hello);
  if (!opened) return failure(std::move(opened.error()));
  auto served =
      ServedTraits::read(opened->description, settings.function, settings.in_proxy, settings.passes_when_lost);
  if (!served) {
    for (Error& error : served.error()) error.place.file = settings.socket;
    return failure(std::move(served.error()));
  }
  if (settings.passes_when_lost && (*served)->traits().names_ports())
    return failure(Error{
        {},
        fmt::format("when_lost: {} chooses where packets leave, so they cannot pass without it", settings.function),
        "'pass'",
        "drop"});
  return std::make_unique<RemoteFunction>(std::move(settings), *hello, std::move(*opened), std::move(*served));
}

bool follows_flows(const function::NetworkFunction& function) noexcept {
  const auto* const remote = dynamic_cast<const RemoteFunction*>(&function);
  return remote != nullptr && remote->served().tracks_flows();
}

ParameterTable remote_parameters() noexcept { return kRemoteParameters; }

Result<RemoteSettings> remote_settings(const Parameters& parameters) {
  RemoteSettings settings;
  settings.socket = parameters.text("process");
  settings.passes_when_lost = parameters.text("when_lost") == "pass";
  settings.patience = parameters.duration("patience");
  settings.in_place = parameters.flag("in_place");
  constexpr std::chrono::milliseconds kLeast{1}, kMost{10'000};
  if (settings.patience < kLeast || settings.patience > kMost)
    return failure(Error{parameters.place("patience"), "patience: out of range", in_quotes(parameters.text("patience")),
                         fmt::format("{} to {}", format_duration(kLeast), format_duration(kMost))});
  return settings;
}

}  // namespace penstock::process
