// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/rule_follower.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "base/capabilities.h"
#include "base/log.h"
#include "base/thread_placement.h"
#include "base/units.h"
#include "control/kernel/messages.h"
#include "control/status.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/digest.h"
#include "nf/firewall/nftables/nft.h"
#include "port/live/namespace_thread.h"

namespace penstock::control {

using namespace std::chrono_literals;
using firewall::Firewall;

namespace {

constexpr int kBufferBytes = 1 << 20;  // of events, which only say that something has changed: they may be lost
constexpr int kMostForgotten = 4096;   // receptions; if more come, the rules are read once more
constexpr auto kGathering = 50ms;      // after the first of several changes
constexpr auto kBetweenReadings = 200ms;
constexpr auto kLate = 3s;  // a change that has not been read after this time is worth a word
constexpr auto kAfterFailure = 5s;
constexpr auto kBetweenReloads = 500ms;
constexpr auto kMostForReading = 30s;  // of all attempts

/// Those of the chain that have the kernel's rules.
std::vector<Firewall*> followers_of(const run::Chain& chain) {
  std::vector<Firewall*> firewalls;
  for (const run::NamedFunction& named : chain.functions) {
    auto* const one = dynamic_cast<Firewall*>(named.function.get());
    if (one != nullptr && one->from_kernel()) firewalls.push_back(one);
  }
  return firewalls;
}

/// Empty: they differ.
std::optional<std::size_t> common_digest(const std::vector<Firewall*>& firewalls) {
  const std::size_t digest = firewalls.front()->from_kernel()->digest;
  const bool same = std::ranges::all_of(
      firewalls, [&](const Firewall* firewall) { return firewall->from_kernel()->digest == digest; });
  return same ? std::optional(digest) : std::nullopt;
}

std::string text_of(const RuleState::NotInUse& state) {
  return fmt::format("the kernel has rules that are not in use, since {}: {}", utc_text(state.since), state.why);
}

}  // namespace

Result<std::unique_ptr<RuleFollower>> RuleFollower::open(const run::Chain& chain) {
  const std::vector<Firewall*> firewalls = followers_of(chain);
  if (firewalls.empty()) return nullptr;
  const std::string& netns = firewalls.front()->from_kernel()->netns;
  for (const Firewall* const firewall : firewalls) {
    const std::string& other = firewall->from_kernel()->netns;
    if (other != netns) {
      return failure(Error{{},
                           "rules: kernel: firewalls of one chain have the rules of different network namespaces",
                           fmt::format("{} and {}", in_quotes(netns), in_quotes(other)),
                           "the same `netns`"});
    }
  }
  std::unique_ptr<RuleFollower> follower(new RuleFollower(chain, common_digest(firewalls)));
  const ThreadOnCpus off_workers(chain.settings.placement.other_cores);
  auto started = port::in_network_namespace(netns, [&] { return follower->start(); });
  if (!started) return failure(std::move(started.error()));
  for (Firewall* const firewall : firewalls) firewall->set_source(follower.get());
  return follower;
}

/// In the namespace, which the thread stays in.
Result<void> RuleFollower::start() {
  for (RouteSocket* const socket : {&events_, &requests_}) {
    auto opened = RouteSocket::open(NETLINK_NETFILTER);
    if (!opened) return failure(std::move(opened.error()));
    *socket = std::move(*opened);
  }
  constexpr std::array<unsigned, 1> kGroups{NFNLGRP_NFTABLES};
  if (auto subscribed = events_.subscribe(kGroups, kBufferBytes); !subscribed) {
    subscribed.error().front().expected = how_to_get(Capability::net_admin);
    return subscribed;
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  return {};
}

RuleFollower::~RuleFollower() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.signal();
    thread_.join();
  }
  for (Firewall* const firewall : followers_of(chain_)) firewall->set_source(nullptr);
}

// The thread.

void RuleFollower::run() {
  static_cast<void>(keep_only({Capability::net_admin}));
  static_cast<void>(pass_on({Capability::net_admin}));
  static_cast<void>(::pthread_setname_np(::pthread_self(), "kernel-rules"));
  // The rules may have changed since they were loaded.
  std::optional<Clock::time_point> due = Clock::now();  // empty: nothing has changed
  Clock::time_point next_reading{};
  for (;;) {
    // Once something has changed, further events say nothing new.
    std::array<pollfd, 2> wait{{{events_.fd(), static_cast<short>(due ? 0 : POLLIN), 0}, {wake_.fd(), POLLIN, 0}}};
    const auto left = due ? std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count() : -1;
    static_cast<void>(::poll(wait.data(), wait.size(), due ? static_cast<int>(std::max<std::int64_t>(0, left)) : -1));
    if (wait[1].revents != 0) wake_.clear();
    bool asked = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      asked = asked_;
    }
    const Clock::time_point now = Clock::now();
    if (wait[0].revents != 0 && !due) {
      due = std::max(now + kGathering, next_reading);
      const std::lock_guard lock(mutex_);
      unread_since_ = now;
    }
    if (!asked && (!due || now < *due)) continue;
    const bool succeeded = read_rules();
    if (succeeded) note_read();
    const Clock::time_point end = Clock::now();
    next_reading = end + std::max<Clock::duration>(kBetweenReadings, end - now);
    due = succeeded ? std::nullopt : std::optional(end + kAfterFailure);
  }
}

void RuleFollower::note_read() {
  const std::lock_guard lock(mutex_);
  const auto since = std::exchange(unread_since_, std::nullopt);
  if (!since || Clock::now() - *since < kLate) return;
  log_warning("kernel rules: a change was read only after {:.1f} s, since nft takes so long while they change",
              std::chrono::duration<double>(Clock::now() - *since).count());
}

/// Their changes are those that are read next. Messages that were lost, too.
void RuleFollower::forget_events() {
  std::span<const std::uint8_t> messages;
  for (int received = 0; received < kMostForgotten; ++received) {
    switch (events_.receive(messages)) {
      case RouteSocket::Received::messages: break;
      case RouteSocket::Received::lost: {
        const std::lock_guard lock(mutex_);
        ++counts_.losses;
        break;
      }
      default: return;
    }
  }
}

bool RuleFollower::read_rules() {
  forget_events();
  auto listed = list();
  const std::size_t digest = listed ? firewall::nftables::digest_of(listed->rules) : 0;
  const auto now = std::chrono::system_clock::now();
  const std::lock_guard lock(mutex_);
  const auto before = state_.not_in_use();
  if (listed) {
    ++counts_.readings;
    error_.clear();
    listing_ = std::move(*listed);
    state_.read(digest, now);
    if (!asked_ && !state_.wants_reload()) listing_.rules = {};
  } else {
    ++counts_.failures;
    error_ = std::move(listed.error());
    listing_ = {};
    state_.cannot_read(to_string(error_.front()), now);
  }
  log_change(before);
  asked_ = false;
  answered_.notify_all();
  return error_.empty();
}

/// The rules of one generation, which is the same before and after.
Result<RuleFollower::Listing> RuleFollower::list() {
  const Clock::time_point until = Clock::now() + kMostForReading;
  do {
    const auto before = generation();
    if (!before) {
      return failure(
          Error{{}, "cannot read the generation of the kernel's rules", "", how_to_get(Capability::net_admin)});
    }
    {
      // Several functions are made from the same rules.
      const std::lock_guard lock(mutex_);
      if (*before == listing_.generation && !listing_.rules.empty()) return listing_;
    }
    auto rules = firewall::nftables::list_rules();
    if (!rules) return failure(std::move(rules.error()));
    if (generation() == before) return Listing{*before, std::move(*rules)};
  } while (Clock::now() < until);
  return failure(Error{{}, "the kernel's rules change faster than they can be read", "", ""});
}

/// That of the kernel's rules, which grows with every change. Empty: the kernel does not say.
std::optional<std::uint32_t> RuleFollower::generation() {
  std::array<std::uint32_t, 8> request{};
  nlmsghdr* const header = mnl_nlmsg_put_header(request.data());
  header->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN;
  header->nlmsg_flags = NLM_F_REQUEST;
  static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)))->version = NFNETLINK_V0;
  std::span<const std::uint8_t> answer;
  if (!requests_.send({reinterpret_cast<const std::uint8_t*>(request.data()), header->nlmsg_len})) return std::nullopt;
  if (requests_.receive(answer, true) != RouteSocket::Received::messages) return std::nullopt;
  return read_generation(take_message(answer));
}

// The thread that reloads.

Result<std::string> RuleFollower::read() {
  std::unique_lock lock(mutex_);
  asked_ = true;
  wake_.signal();
  answered_.wait(lock, [this] { return !asked_; });
  if (!error_.empty()) return failure(error_);
  state_.handed_out();
  return listing_.rules;
}

bool RuleFollower::wants_reload() const {
  const std::lock_guard lock(mutex_);
  return state_.wants_reload() && Clock::now() >= next_reload_;
}

void RuleFollower::reload_ended(const ReloadOutcome& outcome) {
  const auto in_use = common_digest(followers_of(chain_));
  const std::lock_guard lock(mutex_);
  const auto before = state_.not_in_use();
  state_.reload_ended(outcome, in_use, outcome.at);
  next_reload_ = Clock::now() + std::max<Clock::duration>(kBetweenReloads,
                                                          std::chrono::duration_cast<Clock::duration>(outcome.elapsed));
  listing_.rules = {};
  log_change(before);
}

void RuleFollower::log_change(const std::optional<RuleState::NotInUse>& before) const {
  const auto& now = state_.not_in_use();
  if (now && (!before || before->why != now->why)) log_error("kernel rules: {}", text_of(*now));
  if (before && !now && !state_.wants_reload()) log_info("kernel rules: the kernel's rules are in use again");
}

// For the user.

Errors RuleFollower::cautions() const {
  const std::lock_guard lock(mutex_);
  if (!state_.not_in_use() && unread_since_ && Clock::now() - *unread_since_ > kLate) {
    return {Error{{},
                  fmt::format("the kernel's rules have changed {:.0f} s ago, and could not be read since",
                              std::chrono::duration<double>(Clock::now() - *unread_since_).count()),
                  "",
                  "rules that change less often than nft needs to list them"}};
  }
  if (!state_.not_in_use()) return {};
  return {Error{{},
                text_of(*state_.not_in_use()),
                "",
                "rules in the kernel that the firewall supports, or `penstock ctl reload` for another attempt"}};
}

void RuleFollower::report(nlohmann::json& into) const {
  const std::lock_guard lock(mutex_);
  const auto& not_in_use = state_.not_in_use();
  into = {{"in_use", !not_in_use},
          {"readings", counts_.readings},
          {"failures", counts_.failures},
          {"losses", counts_.losses}};
  if (!not_in_use) return;
  into["not_in_use_since"] = utc_text(not_in_use->since);
  into["why"] = not_in_use->why;
}

}  // namespace penstock::control
