// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Passes frames through a worker's intrusion detection: tracker, detection, inspector, and a sink that counts. Frames
// come from captures or from tests.

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
  stack::TrackerOptions tracker;  // seam_bytes is taken from the rules
  DetectionOptions detection;
  InspectorOptions inspector;
  std::size_t host_bytes = HostMemory::kDefaultBytes;
  /// Literals are found as on a GPU: in the part of each frame that a device scans, and reported within the bounds of a
  /// finding.
  bool scanned_elsewhere = false;
  bool whole_literals = false;  // and not only their rarest bytes, as with gpu_matcher: aho_corasick
  bool flow_states = false;     // and from the state of the flow on
};

/// By sid, without rules that never alerted.
using AlertCounts = std::map<std::uint32_t, std::uint64_t>;

class CountingSink final : public AlertSink {
 public:
  void alert(const Alert& alert) noexcept override;
  AlertCounts counts;
  std::uint64_t tagged = 0;   // packets logged because of a tag
  std::uint64_t dropped = 0;  // alerts whose packet is dropped
};

class Scanner {
 public:
  /// Stops the test program if the rules cannot be compiled.
  explicit Scanner(RuleSet rules, const ScanOptions& options = {});
  /// Borrows the detection, which is compiled once for many scans; the detection's options in `options` are ignored.
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
  /// Scans the capture up to its end or to the point where it is damaged. Returns false if it cannot be opened.
  bool capture(const std::string& path);

  [[nodiscard]] const AlertCounts& counts() const noexcept { return sink_.counts; }
  [[nodiscard]] const CountingSink& sink() const noexcept { return sink_; }
  [[nodiscard]] InspectorCounters counters() const noexcept { return inspector_->counters(); }
  [[nodiscard]] const stack::TrackerCounters& tracker() const noexcept { return tracker_.counters(); }

 private:
  std::unique_ptr<const Detection> detection_;  // null if it is borrowed
  HostMemory hosts_;
  CountingSink sink_;
  stack::Tracker tracker_;
  std::unique_ptr<Inspector> inspector_;
  std::vector<std::uint8_t> bytes_;
  std::uint64_t number_ = 0;
  struct Elsewhere;
  std::unique_ptr<Elsewhere> elsewhere_;  // null if the inspector scans itself
};

/// Both stop the test program if a rule cannot be loaded or compiled.
[[nodiscard]] RuleSet rules_of(std::string_view text);
[[nodiscard]] std::unique_ptr<const Detection> compiled(RuleSet rules, const DetectionOptions& options = {});

/// The folder of the corpus (PENSTOCK_CORPUS, or next to the project); empty if it does not exist.
[[nodiscard]] std::string corpus();

}  // namespace penstock::nids::test
