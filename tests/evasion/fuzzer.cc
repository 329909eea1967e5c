// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/fuzzer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "evasion/drawing.h"
#include "evasion/player.h"
#include "evasion/signatures.h"

namespace penstock::evasion {

namespace {

constexpr std::uint64_t kBatch = 500;
constexpr std::uint64_t kBeginNs = 1'700'000'000'000'000'000;
constexpr std::uint64_t kBetweenConversationsNs = 3'000'000;  // shorter than most conversations, so that they are
                                                              // interleaved

/// The host may keep state about an attacker (waiting fragments, ports), so each conversation uses another one.
std::uint32_t attacker_of(std::uint64_t index, Mode mode) {
  return static_cast<std::uint32_t>((index * 2 + (mode == Mode::on_path ? 1 : 0)) & 0xffffff);
}

bool alerted(const AlertsByAttacker& alerts, std::uint32_t attacker, SignatureKind kind) {
  return alerts.contains({attacker, sid_of(kind)});
}

SensorOnPath on_path_sensor(LiveSensor& sensor) {
  return [&sensor](BytesView packet, std::uint64_t number, std::uint64_t time_ns) {
    return sensor.decide(packet, number, time_ns);
  };
}

/// The state of one thread.
class Runner {
 public:
  explicit Runner(const FuzzOptions& options)
      : options_(options), off_path_(options.sensor), on_path_(true, options.sensor) {}

  /// Plays batch `number`, and adds to `result`. Fails if no such host can be created.
  Result<void> run(std::uint64_t number, FuzzResult& result) {
    profile_ = options_.profiles[number % options_.profiles.size()];
    std::unique_ptr<KernelHost>& host = hosts_[static_cast<std::size_t>(profile_)];
    if (host == nullptr) {
      auto made = KernelHost::make(profile_);
      if (!made) return failure(std::move(made).error());
      host = std::move(*made);
    }
    host_ = host.get();
    const unsigned workers = options_.workers[number % options_.workers.size()];
    const std::uint64_t from = options_.first + number * kBatch;
    const std::uint64_t to = std::min(from + kBatch, options_.first + options_.conversations);
    for (const Mode mode : options_.modes) {
      FuzzCounts& counts = result.counts[mode];
      counts.conversations += to - from;
      if (mode == Mode::off_path) {
        run_off_path(from, to, workers, counts, result);
      } else {
        run_on_path(from, to, workers, counts, result);
      }
    }
    return {};
  }

 private:
  static std::uint64_t begin_of(std::uint64_t position) { return kBeginNs + position * kBetweenConversationsNs; }

  Script script(std::uint64_t index) const {
    GeneratorOptions options = options_.generator;
    options.ipv6 &= host_->has_ipv6();
    return generate(options_.seed, index, options);
  }

  void run_off_path(std::uint64_t from, std::uint64_t to, unsigned workers, FuzzCounts& counts, FuzzResult& result) {
    std::vector<Transcript> transcripts;
    std::vector<Script> scripts;
    std::vector<std::pair<std::size_t, Player>> waiting;  // they wait for the host's timers together
    transcripts.resize(to - from);
    scripts.reserve(to - from);
    for (std::uint64_t index = from; index < to; ++index) {
      const std::size_t at = index - from;
      scripts.push_back(script(index));
      Player player(scripts.back(), *host_, attacker_of(index, Mode::off_path), begin_of(at));
      if (player.go_on()) {
        waiting.emplace_back(at, std::move(player));
      } else {
        transcripts[at] = player.finish();
      }
    }
    if (!waiting.empty()) std::this_thread::sleep_for(Player::kHostWaits);
    for (auto& [at, player] : waiting) {
      while (player.go_on()) {  // one that waits again does so alone
        std::this_thread::sleep_for(Player::kHostWaits);
      }
      transcripts[at] = player.finish();
    }
    for (const Transcript& transcript : transcripts) counts.packets += transcript.packets.size();
    const AlertsByAttacker alerts = off_path_.scan(transcripts, workers);
    for (std::size_t i = 0; i < transcripts.size(); ++i) {
      const bool alert = alerted(alerts, attacker_of(from + i, Mode::off_path), scripts[i].signature);
      const bool read = transcripts[i].read_signature;
      if (read) ++counts.read;
      if (alert && (!read || innocent())) ++counts.false_alerts;
      if (innocent() ? alert : read && !alert) {
        result.findings.push_back(
            {from + i, Mode::off_path, workers, profile_, scripts[i].moves, drawing_of(transcripts[i], scripts[i])});
      }
    }
  }

  void run_on_path(std::uint64_t from, std::uint64_t to, unsigned workers, FuzzCounts& counts, FuzzResult& result) {
    on_path_.restart(workers);
    std::uint64_t now_ns = kBeginNs;
    for (std::uint64_t index = from; index < to; ++index) {
      const Script one = script(index);
      const std::uint64_t alerts = on_path_.alerts(sid_of(one.signature));
      const Transcript transcript =
          play(one, *host_, attacker_of(index, Mode::on_path), now_ns, on_path_sensor(on_path_));
      counts.packets += transcript.packets.size();
      // Times must not go back, and conversations follow each other.
      if (!transcript.packets.empty()) now_ns = transcript.packets.back().time_ns + kBetweenConversationsNs;
      if (transcript.read_signature) {
        ++counts.read;
      } else {
        ++counts.stopped;
        if (on_path_.alerts(sid_of(one.signature)) > alerts) ++counts.alerted;
      }
      if (transcript.read_signature != innocent()) {
        result.findings.push_back({index, Mode::on_path, workers, profile_, one.moves, drawing_of(transcript, one)});
      }
    }
  }

  [[nodiscard]] bool innocent() const { return options_.generator.innocent; }

  const FuzzOptions& options_;
  std::array<std::unique_ptr<KernelHost>, kHostProfiles> hosts_;  // created when first needed
  KernelHost* host_ = nullptr;                                    // of the current batch
  HostProfile profile_ = HostProfile::standard;
  OffPathSensor off_path_;
  LiveSensor on_path_;
};

void add(FuzzResult& to, FuzzResult more) {
  for (const auto& [mode, counts] : more.counts) {
    FuzzCounts& sum = to.counts[mode];
    sum.conversations += counts.conversations;
    sum.packets += counts.packets;
    sum.read += counts.read;
    sum.false_alerts += counts.false_alerts;
    sum.stopped += counts.stopped;
    sum.alerted += counts.alerted;
  }
  to.findings.insert(to.findings.end(), more.findings.begin(), more.findings.end());
}

}  // namespace

std::string_view name_of(Mode mode) { return mode == Mode::off_path ? "off the path" : "on the path"; }

Result<FuzzResult> fuzz(const FuzzOptions& options, const std::function<void(const FuzzResult&)>& on_progress) {
  const std::uint64_t batches = (options.conversations + kBatch - 1) / kBatch;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;  // guards the following variables
  FuzzResult result;
  Errors errors;
  const auto work = [&] {
    Runner runner(options);
    for (std::uint64_t batch = next++; batch < batches; batch = next++) {
      FuzzResult one;
      auto done = runner.run(batch, one);
      const std::lock_guard lock(mutex);
      if (!done) {
        errors = std::move(done).error();
        return;
      }
      add(result, std::move(one));
      if (on_progress) on_progress(result);
      if (result.findings.size() >= options.most_findings) next = batches;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, options.threads); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (!errors.empty()) return failure(std::move(errors));
  std::sort(result.findings.begin(), result.findings.end(),
            [](const Finding& a, const Finding& b) { return a.index < b.index; });
  return result;
}

Replay::Replay(std::unique_ptr<KernelHost> host, const SensorSettings& settings)
    : host_(std::move(host)), off_path_(false, settings), on_path_(true, settings) {}

Result<std::unique_ptr<Replay>> Replay::make(HostProfile profile, const SensorSettings& settings) {
  auto host = KernelHost::make(profile);
  if (!host) return failure(std::move(host).error());
  return std::unique_ptr<Replay>(new Replay(std::move(*host), settings));
}

Replay::Outcome Replay::play(const Script& script, Mode mode, unsigned workers) {
  LiveSensor& sensor = mode == Mode::off_path ? off_path_ : on_path_;
  sensor.restart(workers);
  const std::uint64_t alerts = sensor.alerts(sid_of(script.signature));
  Outcome outcome;
  // A different attacker each time, because the host may remember the ports of the last one.
  const std::uint32_t attacker = next_attacker_++ & 0xffffff;
  outcome.transcript = evasion::play(script, *host_, attacker, kBeginNs, on_path_sensor(sensor));
  sensor.finish();
  outcome.alerted = sensor.alerts(sid_of(script.signature)) > alerts;
  outcome.evaded = outcome.transcript.read_signature && (mode == Mode::on_path || !outcome.alerted);
  return outcome;
}

}  // namespace penstock::evasion
