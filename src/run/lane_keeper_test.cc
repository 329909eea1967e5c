// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// proxy/return_test.cc has whole runs.

#include "run/lane_keeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda_error.h"

namespace penstock::run {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A device that is lost at once, and does not come back unless it is told to.
class FakeDevice final : public RemoteDevice {
 public:
  std::atomic<bool> lost{true};
  std::atomic<bool> refuses{true};
  std::atomic<bool> incompatible{false};
  std::atomic<bool> hangs{false};  // gives no answer
  std::atomic<int> disconnected{0};

  [[nodiscard]] std::vector<Clock::time_point> attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }

  std::string name() const override { return "a fake"; }
  std::string loss() const override { return "a fake has gone"; }
  std::unique_ptr<LaneFactory> make_factory(unsigned /*worker*/) override { return nullptr; }
  bool is_lost() noexcept override { return lost; }
  tl::expected<void, NotConnected> connect(std::stop_token stop) override {
    {
      const std::lock_guard lock(mutex_);
      attempts_.push_back(Clock::now());
    }
    while (hangs && !stop.stop_requested()) std::this_thread::sleep_for(milliseconds{1});
    if (refuses) return tl::unexpected(NotConnected{{Error{{}, "refused", "", ""}}, incompatible});
    lost = false;
    return {};
  }
  void disconnect() noexcept override {
    ++disconnected;
    lost = true;
  }

 private:
  mutable std::mutex mutex_;  // guards `attempts_`
  std::vector<Clock::time_point> attempts_;
};

constexpr Pauses kShort{milliseconds{10}, milliseconds{80}, milliseconds{100000}, milliseconds{100000}};

void wait_for_attempts(const FakeDevice& device, std::size_t count) {
  while (device.attempts().size() < count) std::this_thread::sleep_for(milliseconds{1});
}
void wait_until(const LaneKeeper& keeper, bool connected) {
  while (keeper.use().connected != connected) std::this_thread::sleep_for(milliseconds{1});
}

TEST(LaneKeeper, TriesAfterPausesThatGrow) {
  FakeDevice device;
  LaneKeeper keeper(
      device, [](const std::stop_token&) {}, kShort);
  wait_for_attempts(device, 8);
  keeper.stop();
  const auto attempts = device.attempts();
  milliseconds least{10};
  for (std::size_t i = 1; i < attempts.size(); ++i) {
    least = std::min(2 * least, milliseconds{80});
    EXPECT_GE(attempts[i] - attempts[i - 1], least) << i;
  }
}

TEST(LaneKeeper, IsNotHurriedByADeviceThatIsLostAgainAtOnce) {
  FakeDevice device;
  device.refuses = false;
  std::atomic<int> renewed{0};
  LaneKeeper keeper(
      device,
      [&](const std::stop_token&) {
        ++renewed;
        device.lost = true;
      },
      kShort);
  wait_for_attempts(device, 8);
  keeper.stop();
  const auto attempts = device.attempts();
  for (std::size_t i = 4; i < attempts.size(); ++i) EXPECT_GE(attempts[i] - attempts[i - 1], milliseconds{80}) << i;
  EXPECT_GE(keeper.use().losses, 7U);
}

TEST(LaneKeeper, BeginsWithShortPausesAfterALongConnection) {
  FakeDevice device;
  Pauses pauses = kShort;
  pauses.longest = milliseconds{100000};
  pauses.steady = milliseconds{50};
  LaneKeeper keeper(
      device, [](const std::stop_token&) {}, pauses);
  wait_for_attempts(device, 4);
  device.refuses = false;
  wait_until(keeper, true);
  std::this_thread::sleep_for(milliseconds{100});
  const std::size_t before = device.attempts().size();
  const Clock::time_point lost_at = Clock::now();
  device.lost = true;
  wait_for_attempts(device, before + 1);
  EXPECT_LT(device.attempts().back() - lost_at, milliseconds{150}) << "else it would be 320 ms";
}

TEST(LaneKeeper, SeldomAsksOneOfAnotherRelease) {
  FakeDevice device;
  device.incompatible = true;
  LaneKeeper keeper(
      device, [](const std::stop_token&) {}, kShort);
  wait_for_attempts(device, 1);
  std::this_thread::sleep_for(milliseconds{300});
  EXPECT_EQ(device.attempts().size(), 1U);
}

TEST(LaneKeeper, TriesAgainIfThereAreNoLanes) {
  FakeDevice device;
  device.refuses = false;
  std::atomic<int> failures{0};
  LaneKeeper keeper(
      device,
      [&](const std::stop_token&) {
        if (++failures <= 3) throw gpu::CudaError(0, "no room");
      },
      kShort);
  wait_until(keeper, false);
  wait_until(keeper, true);
  keeper.stop();
  EXPECT_EQ(device.disconnected, 3);
  EXPECT_EQ(keeper.use().losses, 0U) << "a connection without lanes is none";
  EXPECT_GE(keeper.use().without, milliseconds{10 + 20 + 40 + 80});
}

TEST(LaneKeeper, StopsWhileNobodyAnswers) {
  FakeDevice device;
  device.hangs = true;
  LaneKeeper keeper(
      device, [](const std::stop_token&) {}, kShort);
  wait_for_attempts(device, 1);
  keeper.stop();
  EXPECT_FALSE(keeper.use().connected);
}

TEST(LaneKeeper, StopsWhileLanesAreMade) {
  FakeDevice device;
  device.refuses = false;
  std::atomic<bool> makes{false};
  LaneKeeper keeper(
      device,
      [&](const std::stop_token&) {
        makes = true;
        while (!device.lost) std::this_thread::sleep_for(milliseconds{1});  // a request is answered, or fails
        throw gpu::CudaError(0, "the proxy has gone");
      },
      kShort);
  while (!makes) std::this_thread::sleep_for(milliseconds{1});
  keeper.stop();
  EXPECT_GE(device.disconnected, 1);
}

TEST(LaneKeeper, StopsDuringAPause) {
  FakeDevice device;
  Pauses pauses = kShort;
  pauses.first = milliseconds{100000};
  LaneKeeper keeper(
      device, [](const std::stop_token&) {}, pauses);
  wait_until(keeper, false);
  keeper.stop();
  EXPECT_TRUE(device.attempts().empty());
}

}  // namespace
}  // namespace penstock::run
