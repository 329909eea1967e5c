// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps the rules of firewalls as the kernel's nftables has them (`rules: kernel`), by reloads of the chain:
//
//     nftables ──netlink: changed──▶ thread ──nft list──▶ other rules than those in use? ──▶ wants_reload ──▶ Reloader
//                                      ▲                                                                         │
//                                      └──────────── read: the rules that the reload uses ◀──────────────────────┘
//
// The thread keeps CAP_NET_ADMIN, which listing needs, when the run gives it up. Its rates are bounded: whatever
// happens in the kernel, it reads the rules at most every 0.2 s, and for at most half of the time.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "control/kernel/route_socket.h"
#include "control/kernel/rule_state.h"
#include "control/reload.h"
#include "nf/firewall/rule_source.h"
#include "port/stop_event.h"
#include "run/chain.h"

namespace penstock::control {

class RuleFollower final : public firewall::RuleSource {
 public:
  /// Becomes the source of all firewalls of the chain that have the kernel's rules. Null: there is none. Call it before
  /// the run begins, which gives up capabilities. Borrows the chain.
  [[nodiscard]] static Result<std::unique_ptr<RuleFollower>> open(const run::Chain& chain);
  /// The run must have ended.
  ~RuleFollower() override;
  RuleFollower(const RuleFollower&) = delete;
  RuleFollower& operator=(const RuleFollower&) = delete;

  Result<std::string> read() override;
  void report(nlohmann::json& into) const override;

  // For the thread that reloads.

  /// The kernel has other rules than those in use, which were not tried yet, and it is not too soon for a reload.
  [[nodiscard]] bool wants_reload() const;
  /// To be called after each reload and rollback, whoever has asked for it.
  void reload_ended(const ReloadOutcome& outcome);

  /// If the kernel has rules that are not in use, why. Thread-safe.
  [[nodiscard]] Errors cautions() const;

 private:
  using Clock = std::chrono::steady_clock;

  RuleFollower(const run::Chain& chain, std::optional<std::size_t> in_use) : chain_(chain), state_(in_use) {}

  [[nodiscard]] Result<void> start();
  void run();
  void forget_events();
  /// Returns whether that has succeeded.
  bool read_rules();
  void note_read();
  struct Listing {
    std::uint32_t generation = 0;
    std::string rules;
  };
  [[nodiscard]] Result<Listing> list();
  [[nodiscard]] std::optional<std::uint32_t> generation();
  void log_change(const std::optional<RuleState::NotInUse>& before) const;

  const run::Chain& chain_;
  RouteSocket events_, requests_;
  port::StopEvent wake_;  // the thread: it is asked for rules, or to end

  mutable std::mutex mutex_;  // guards the following members
  std::condition_variable answered_;
  bool stopping_ = false;
  bool asked_ = false;  // for rules
  RuleState state_;
  Listing listing_;  // the last one; without rules, if nobody needs them
  Errors error_;     // why there is none
  /// Since when the kernel has rules that could not be read yet. Empty: those that were read are its last ones.
  std::optional<Clock::time_point> unread_since_;
  Clock::time_point next_reload_{};
  struct Counts {
    std::uint64_t readings = 0, failures = 0, losses = 0;
  } counts_;

  std::thread thread_;  // the last member: it uses the others
};

}  // namespace penstock::control
