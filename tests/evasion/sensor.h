// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Penstock's intrusion detection with the rules of signatures.h and default settings: off the path, as a whole chain
// over a capture; on the path, as the function's CPU stages, a packet at a time.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evasion/packet_writer.h"
#include "evasion/transcript.h"
#include "function/network_function.h"
#include "function/testing/attached_stage.h"
#include "nf/nids/nids.h"
#include "port/worker_chooser.h"

namespace penstock::evasion {

/// Parameters of `nids` that are not the defaults: {"stream_policy", "first"}.
using SensorSettings = std::vector<std::pair<std::string, std::string>>;

/// Attackers (by number) and the rules (by sid) that alerted on a conversation of theirs.
using AlertsByAttacker = std::set<std::pair<std::uint32_t, std::uint32_t>>;

/// A folder for rules, captures and logs, in memory if there is one there; removed at the end.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

/// Writes packets in the order of their times as a capture of Ethernet frames.
void write_capture(const std::string& path, std::span<const Transcript> conversations);

/// Stops the program where the chain cannot run: a mistake of the fuzzer's.
class OffPathSensor {
 public:
  explicit OffPathSensor(SensorSettings settings = {});
  /// What a chain of `nids` alerts on in these conversations, which are interleaved as their times say.
  [[nodiscard]] AlertsByAttacker scan(std::span<const Transcript> conversations, unsigned workers);

 private:
  SensorSettings settings_;
  WorkFolder folder_;
};

/// The function's CPU stages, a packet at a time. On the path it drops.
class LiveSensor {
 public:
  LiveSensor(bool on_path, SensorSettings settings);
  ~LiveSensor();
  /// Forgets all flows; from now on there are as many workers.
  void restart(unsigned workers);
  /// The packet, and what waited for it: the frames come to the workers as from a port.
  std::span<const Decision> decide(BytesView packet, std::uint64_t number, std::uint64_t time_ns);
  /// Ends all flows, as at a capture's end.
  void finish();
  /// How often the rule has alerted so far.
  [[nodiscard]] std::uint64_t alerts(std::uint32_t sid) const;

 private:
  WorkFolder folder_;
  std::unique_ptr<nids::Nids> function_;
  void process(unsigned worker, const port::CapturedFrame& frame);
  std::vector<function::testing::AttachedStage> stages_;
  std::optional<port::WorkerChooser> chooser_;
  std::vector<Decision> decisions_;
  Bytes frame_, processed_;
};

}  // namespace penstock::evasion
