// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs rules on frames, like DetectionBed, and reloads them while flows last.

#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "nf/nids/detect/state_ids.h"
#include "nf/nids/detect/testing/detection_bed.h"

namespace penstock::nids::testing {

class ReloadBed {
 public:
  explicit ReloadBed(std::string_view rules, const InspectorOptions& options = {},
                     const DetectionOptions& detection = {}, const stack::TrackerOptions& tracker = {})
      : options_(options), detection_options_(detection), tracker_options_(tracker) {
    reload(rules);
  }

  /// Frames go to these rules from now on.
  void reload(std::string_view rules) {
    Epoch epoch;
    epoch.detection = compiled(rules_of(rules), detection_options_);
    std::vector<StateIds::Known> known;
    if (!epochs_.empty()) known.push_back({&epochs_[used_].detection->rules(), epochs_[used_].ids.get()});
    auto ids = StateIds::assign(epoch.detection->rules(), known, unused_ids_);
    EXPECT_TRUE(ids);
    epoch.ids = std::make_shared<const StateIds>(std::move(*ids));
    start(std::move(epoch));
  }
  /// As a worker that has batches of several epochs: frames go to the rules that were loaded `epoch`th, from 0.
  void use(std::size_t epoch) {
    used_ = epoch;
    epochs_[used_].inspector->use_slot(0);
  }
  /// The rules that were loaded `epoch`th come back, in a new inspector.
  void roll_back(std::size_t epoch) {
    Epoch again;
    again.detection = epochs_[epoch].detection;
    auto ids =
        StateIds::assign(again.detection->rules(),
                         std::vector<StateIds::Known>{{&epochs_[used_].detection->rules(), epochs_[used_].ids.get()},
                                                      {&epochs_[epoch].detection->rules(), epochs_[epoch].ids.get()}},
                         unused_ids_);
    EXPECT_TRUE(ids);
    again.ids = std::make_shared<const StateIds>(std::move(*ids));
    start(std::move(again));
  }

  void frame(const Frame& frame, FoundLiterals found = {}) {
    inspector().begin_frame(found);
    frames_->track(frame, inspector());
  }
  void frames(const std::vector<Frame>& frames) {
    for (const Frame& one : frames) frame(one);
  }
  void finish() {
    inspector().begin_frame();
    frames_->finish(inspector());
  }

  [[nodiscard]] std::vector<std::uint32_t> sids() const { return list_.sids(); }
  [[nodiscard]] const std::vector<SeenAlert>& alerts() const { return list_.seen; }
  [[nodiscard]] Inspector& inspector() { return *epochs_[used_].inspector; }
  [[nodiscard]] const Detection& detection() const { return *epochs_[used_].detection; }
  [[nodiscard]] const StateIds::Unused& unused_ids() const { return unused_ids_; }
  [[nodiscard]] std::size_t epochs() const { return epochs_.size(); }

 private:
  struct Epoch {
    std::shared_ptr<const Detection> detection;
    std::shared_ptr<const StateIds> ids;
    std::unique_ptr<Inspector> inspector;
  };

  void start(Epoch epoch) {
    if (frames_ == nullptr) frames_ = std::make_unique<TrackedFrames>(for_rules(*epoch.detection, tracker_options_));
    frames_->raise_seam(epoch.detection->seam_bytes());
    InspectorOptions options = options_;
    options.ids = epoch.ids;
    epoch.inspector = std::make_unique<Inspector>(*epoch.detection, hosts_, list_, options);
    epoch.inspector->use_slot(0);
    if (!epochs_.empty()) epoch.inspector->take_over(inspector());
    epochs_.push_back(std::move(epoch));
    used_ = epochs_.size() - 1;
  }

  const InspectorOptions options_;
  const DetectionOptions detection_options_;
  const stack::TrackerOptions tracker_options_;
  StateIds::Unused unused_ids_;
  HostMemory hosts_{std::size_t{1} << 20};
  AlertList list_;
  std::vector<Epoch> epochs_;
  std::size_t used_ = 0;
  std::unique_ptr<TrackedFrames> frames_;
};

/// Reloads the same rules with others, which number everything differently, and uses all of them in turns at random.
class AlternatingBed : public ReloadBed {
 public:
  explicit AlternatingBed(std::string_view rules, const InspectorOptions& options = {},
                          const DetectionOptions& detection = {}, const stack::TrackerOptions& tracker = {})
      : ReloadBed(rules, options, detection, tracker), rules_(rules) {}

  void frame(const Frame& frame, FoundLiterals found = {}) {
    ReloadBed::frame(frame, found);
    switch (random_() % 8) {
      case 0:
        if (epochs() < kMostEpochs) reload(with_others(epochs()));
        break;
      case 1:
      case 2:
      case 3: use(random_() % epochs()); break;
      default: break;
    }
  }
  void frames(const std::vector<Frame>& frames) {
    for (const Frame& one : frames) frame(one);
  }

  /// The rules, after some that match nothing, but have names and literals.
  [[nodiscard]] std::string with_others(std::size_t count) const {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string n = std::to_string(i);
      all += "alert ip any any -> any any (content:\"|01 02|no such text " + n + "\"; flowbits:set,other" + n +
             "; flowint:other" + n + ",=,1; xbits:set,other" + n +
             ",track ip_src; threshold:type limit, track by_src, count 1, seconds 9;" +
             " tag:session,3,packets; sid:900000" + n + ";)\n";
    }
    return all + rules_;
  }

 private:
  static constexpr std::size_t kMostEpochs = 6;
  const std::string rules_;
  std::mt19937 random_{11};
};

}  // namespace penstock::nids::testing
