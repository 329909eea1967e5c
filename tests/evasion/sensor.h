// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Penstock's intrusion detection with the rules of signatures.h and default settings: off the path as a whole chain
// over a capture, inline as the function's CPU stages, one packet at a time.

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

/// Parameters of `nids` other than the defaults: {"stream_policy", "first"}.
using SensorSettings = std::vector<std::pair<std::string, std::string>>;

/// Pairs of an attacker's number and the sid of a rule that alerted on one of its conversations.
using AlertsByAttacker = std::set<std::pair<std::uint32_t, std::uint32_t>>;

/// A folder for rules, captures and logs, in a memory file system if there is one; deleted by the destructor.
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

/// Writes the packets as a capture of Ethernet frames, ordered by time.
void write_capture(const std::string& path, std::span<const Transcript> conversations);

/// Stops the program if the chain cannot run, which would be an error of the fuzzer.
class OffPathSensor {
 public:
  explicit OffPathSensor(SensorSettings settings = {});
  /// Returns the alerts of a chain of `nids` for these conversations, interleaved by their times.
  [[nodiscard]] AlertsByAttacker scan(std::span<const Transcript> conversations, unsigned workers);

 private:
  SensorSettings settings_;
  WorkFolder folder_;
};

/// The function's CPU stages, one packet at a time. Inline it drops packets.
class LiveSensor {
 public:
  LiveSensor(bool on_path, SensorSettings settings);
  ~LiveSensor();
  /// Forgets all flows, and changes the number of workers.
  void restart(unsigned workers);
  /// Decides on the packet and on those that waited for it. Frames are assigned to workers as by a port.
  std::span<const Decision> decide(BytesView packet, std::uint64_t number, std::uint64_t time_ns);
  /// Ends all flows, as at the end of a capture.
  void finish();
  /// The number of the rule's alerts so far.
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
