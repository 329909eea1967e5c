// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The thread that reserves numbers ahead of use.

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/stoppable_wait.h"
#include "nf/ipsec/numbers/kept_numbers.h"

namespace penstock::ipsec {

namespace {

/// A KeptNumbers and its thread, which starts with the first run.
class ExtendedNumbers final : public NumberSource {
 public:
  ExtendedNumbers(std::string folder, KeptNumbers::Access access) : kept_(std::move(folder), std::move(access)) {}

  const std::string& folder() const noexcept override { return kept_.folder(); }
  Errors check(SaStates states) const override { return kept_.check(states); }
  void end(SaStates states) noexcept override { kept_.end(states); }
  std::string fault() const override { return kept_.fault(); }

  Result<void> begin(SaStates states) override {
    auto begun = kept_.begin(states);
    const std::lock_guard lock(mutex_);
    if (begun && !thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return begun;
  }

 private:
  void run(const std::stop_token& stop) {
    // Checking an SA takes about ten nanoseconds. The interval grows with the number of SAs, so that this never uses
    // more than about a hundredth of a processor.
    constexpr auto kLeastInterval = std::chrono::microseconds{5'000};
    constexpr auto kOfSa = std::chrono::microseconds{5};
    auto interval = kLeastInterval;
    auto last = std::chrono::steady_clock::now();
    while (wait_unless_stopped(stop, interval)) {
      const auto now = std::chrono::steady_clock::now();
      interval = kLeastInterval + kept_.extend(std::chrono::duration<double>(now - last).count()) * kOfSa;
      last = now;
    }
  }

  KeptNumbers kept_;
  std::mutex mutex_;
  std::jthread thread_;
};

}  // namespace

std::shared_ptr<NumberSource> kept_numbers(const std::string& folder, MakeParents parents) {
  return std::make_shared<ExtendedNumbers>(
      folder, KeptNumbers::Access{[folder, parents] { return open_state_folder(folder, parents); },
                                  [folder, parents] { return check_state_folder(folder, parents); },
                                  [folder] { return view_state_folder(folder); }});
}

}  // namespace penstock::ipsec
