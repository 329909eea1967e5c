// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames through all of the intrusion detection, as one worker has it: tracker, detection, inspector; and a sink that
// counts. Of captures, and of frames that a test makes.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nf/nids/alert/alert.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/detect/state_store.h"
#include "nf/nids/rules/rule_reader.h"
#include "packet/link_type.h"
#include "stack/tracker.h"

namespace penstock::nids::test {

struct ScanOptions {
  stack::TrackerOptions tracker;  // seam_bytes are the rules' own
  DetectionOptions detection;
  InspectorOptions inspector;
  std::size_t host_bytes = HostMemory::kDefaultBytes;
  /// Literals are looked for as on a GPU: of each frame, cut, in what a device scans, and no more told than a finding
  /// holds.
  bool scanned_elsewhere = false;
  bool flow_states = false;  // and from the state of their flow on
};

/// By sid; what never alerted is not in it.
using AlertCounts = std::map<std::uint32_t, std::uint64_t>;

class CountingSink final : public AlertSink {
 public:
  void alert(const Alert& alert) noexcept override;
  AlertCounts counts;
  std::uint64_t tagged = 0;   // packets that are logged for a tag
  std::uint64_t dropped = 0;  // alerts whose packet is dropped
};

class Scanner {
 public:
  /// Stops the test's program where the rules cannot be compiled.
  explicit Scanner(RuleSet rules, const ScanOptions& options = {});
  /// Borrows the detection, which is compiled once for many scans; of the options, those of the detection say nothing.
  explicit Scanner(const Detection& detection, const ScanOptions& options = {});
  ~Scanner();

  void frame(std::span<const std::uint8_t> bytes, std::uint64_t timestamp_ns, LinkType link_type = LinkType::ethernet,
             std::uint32_t wire_length = 0);
  /// Whether the last frame is to be dropped.
  [[nodiscard]] bool dropped() const noexcept { return inspector_->frame_dropped().has_value(); }
  [[nodiscard]] std::uint64_t dropped(DropReason reason) const noexcept {
    return counters().dropped[static_cast<std::size_t>(reason)];
  }
  void finish();
  /// The whole capture, to its end or to where it is broken. False where it cannot be opened.
  bool capture(const std::string& path);

  [[nodiscard]] const AlertCounts& counts() const noexcept { return sink_.counts; }
  [[nodiscard]] const CountingSink& sink() const noexcept { return sink_; }
  [[nodiscard]] InspectorCounters counters() const noexcept { return inspector_->counters(); }
  [[nodiscard]] const stack::TrackerCounters& tracker() const noexcept { return tracker_.counters(); }

 private:
  std::unique_ptr<const Detection> detection_;  // null where it is borrowed
  HostMemory hosts_;
  CountingSink sink_;
  stack::Tracker tracker_;
  std::unique_ptr<Inspector> inspector_;
  std::vector<std::uint8_t> bytes_;
  std::uint64_t number_ = 0;
  struct Elsewhere;
  std::unique_ptr<Elsewhere> elsewhere_;  // null where the inspector scans itself
};

/// Both stop the test's program where one rule does not load, or compile.
[[nodiscard]] RuleSet rules_of(std::string_view text);
[[nodiscard]] std::unique_ptr<const Detection> compiled(RuleSet rules, const DetectionOptions& options = {});

/// The folder of the corpus (PENSTOCK_CORPUS, or beside the project); empty where it is absent.
[[nodiscard]] std::string corpus();

}  // namespace penstock::nids::test
