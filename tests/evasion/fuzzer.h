// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Plays conversations in batches, off the path and inline, and collects those in which the host read what the sensor
// did not report or block. Threads share only the next batch's number and the results.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "evasion/generator.h"
#include "evasion/kernel_host.h"
#include "evasion/sensor.h"

namespace penstock::evasion {

enum class Mode : std::uint8_t { off_path, on_path };
[[nodiscard]] std::string_view name_of(Mode mode);

struct FuzzOptions {
  std::uint64_t seed = 1;
  std::uint64_t first = 0, conversations = 1000;
  std::vector<Mode> modes = {Mode::off_path, Mode::on_path};
  std::vector<unsigned> workers = {1, 2, 3, 4, 5, 6, 7, 8};     // in turn, one per batch
  std::vector<HostProfile> profiles = {HostProfile::standard};  // in turn, one per batch
  unsigned threads = 2;
  std::uint64_t most_findings = 1000;  // the run then ends
  GeneratorOptions generator;
  SensorSettings sensor;
};

/// An evasion; or an innocent conversation that was alerted on or blocked.
struct Finding {
  std::uint64_t index = 0;
  Mode mode = Mode::off_path;
  unsigned workers = 1;
  HostProfile profile = HostProfile::standard;
  std::vector<std::string_view> moves;
  std::string drawing;  // of this play: host timers or other conversations may have influenced it
};

struct FuzzCounts {
  std::uint64_t conversations = 0, packets = 0;
  std::uint64_t read = 0;          // the host read the signature, or the text of an innocent conversation
  std::uint64_t false_alerts = 0;  // off the path: alerts although the host did not read it, or there was none
  std::uint64_t stopped = 0;       // inline: the host did not read it
  std::uint64_t alerted = 0;       // … and there was an alert before the next conversation
};

struct FuzzResult {
  std::map<Mode, FuzzCounts> counts;
  std::vector<Finding> findings;
};

/// `on_progress` is called from time to time, by one thread at a time, with the results so far. Fails if no host can be
/// created on this machine.
[[nodiscard]] Result<FuzzResult> fuzz(const FuzzOptions& options,
                                      const std::function<void(const FuzzResult&)>& on_progress = {});

/// Plays one script, and reports whether it evades the sensor. Off the path too, the sensor consists of the function's
/// stages alone, which are created much faster than a whole chain.
class Replay {
 public:
  /// Fails if no host can be created on this machine.
  static Result<std::unique_ptr<Replay>> make(HostProfile profile, const SensorSettings& settings = {});
  struct Outcome {
    Transcript transcript;
    bool alerted = false;
    bool evaded = false;
  };
  [[nodiscard]] Outcome play(const Script& script, Mode mode, unsigned workers);

 private:
  Replay(std::unique_ptr<KernelHost> host, const SensorSettings& settings);
  std::unique_ptr<KernelHost> host_;
  LiveSensor off_path_, on_path_;
  std::uint32_t next_attacker_ = 0;
};

}  // namespace penstock::evasion
