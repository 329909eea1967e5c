// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/number_source.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/system_random.h"

namespace penstock::ipsec {

namespace {

class RandomNumbers final : public NumberSource {
 public:
  explicit RandomNumbers(RandomBits random) : random_(std::move(random)) {}

  const std::string& folder() const noexcept override { return folder_; }
  Errors check(SaStates /*states*/) const override { return {}; }
  std::string fault() const override { return ""; }

  Result<void> begin(SaStates states) override {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (++uses_[states[i].get()] > 1) continue;
      const auto run = random_();
      const auto start = random_();
      if (!run || !start) {
        release(states.first(i + 1));
        return failure(Error{{}, "the system returned no random numbers, which IVs require", "", "getrandom(2)"});
      }
      const std::uint64_t sent = states[i]->sent();
      states[i]->begin_run(sent, iv_base(static_cast<std::uint16_t>(*run), *start, sent), kMostOfRun);
      states[i]->reserve_to(states[i]->numbers.most());
    }
    return {};
  }
  void end(SaStates states) noexcept override {
    const std::lock_guard lock(mutex_);
    release(states);
  }

 private:
  void release(SaStates states) noexcept {
    for (const auto& state : states) {
      const auto use = uses_.find(state.get());
      if (use == uses_.end() || --use->second > 0) continue;
      uses_.erase(use);
      state->end_run();
    }
  }

  const RandomBits random_;
  const std::string folder_;
  std::mutex mutex_;
  std::map<const SaState*, unsigned> uses_;
};

}  // namespace

std::optional<std::uint64_t> system_random_bits() { return random_value<std::uint64_t>(); }

std::shared_ptr<NumberSource> random_numbers(RandomBits random) {
  return std::make_shared<RandomNumbers>(std::move(random));
}

}  // namespace penstock::ipsec
