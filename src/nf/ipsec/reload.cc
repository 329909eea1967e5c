// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How one `ipsec` function takes the place of another while packets flow.
//
//     before    ── begin_run ────────── packets ───────────▶ end_run            (by predecessor_ended)
//     after                  begin_run (by take_over) ───────── packets ──▶
//
// No sequence number and no IV is used twice under a key, whichever functions send, side by side or in turn:
//
// - The registry has one state for each end of an SA (SaRegistry), so both functions take numbers from one counter. It
//   gives out each number once, on the host (SequenceCounter), on a device (DeviceCounting), and while counting moves
//   between them.
// - An IV is the state's base plus the number. The base changes only when a run of the state begins (NumberSource),
//   that is, when the first function begins to use it. The later function begins before the earlier one ends, so the
//   run of an SA that stays goes on, and both functions have the same base.
// - The run of an SA that is removed ends after the last stage that could send on it, and its counter is then closed.
//   If the SA comes back, by a reload or because the earlier function takes its place back, a new run begins. Numbers
//   continue in the state if it still exists, and otherwise where state_dir says. The new run's IVs differ from those
//   of all earlier ones (number_source.h).
// - A function copies the bases in `take_over`, while it has no stages.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/table_changes.h"

namespace penstock::ipsec {

namespace {

/// The most SAs that are remembered after their removal. Enough for mistakes that the next reloads correct, and
/// bounded, since SAs are replaced by others all the time.
constexpr std::size_t kMostRemoved = 16'384;

std::string_view name(TooBig too_big) { return too_big == TooBig::icmp ? "icmp" : "fragment"; }

std::string folder_name(const Tables& tables) {
  const std::string& folder = tables.numbers().folder();
  return folder.empty() ? "none" : folder;
}

Error only_in_a_new_run(const Place& place, std::string_view parameter, std::string found, const std::string& running) {
  return {place, fmt::format("{} cannot change in a reload", parameter), std::move(found),
          fmt::format("{}, or a new run", running)};
}

std::string mtu_text(std::uint32_t mtu) { return mtu == 0 ? "no mtu" : fmt::format("mtu: {}", mtu); }

}  // namespace

Result<std::string> Ipsec::changes_from(const function::NetworkFunction& running) const {
  const auto& other = static_cast<const Ipsec&>(running);
  const Settings& now = tables_->settings();
  const Settings& old = other.tables_->settings();
  Errors errors;
  if (now.inbound != old.inbound) {
    errors.push_back(
        only_in_a_new_run(places_.direction, "direction", now.inbound ? "in" : "out", old.inbound ? "in" : "out"));
    return failure(std::move(errors));
  }
  // What the stages read and write depends on these.
  if ((now.mtu == 0) != (old.mtu == 0)) {
    errors.push_back(only_in_a_new_run(places_.mtu, "whether there is an mtu", mtu_text(now.mtu),
                                       old.mtu == 0 ? "no mtu" : "an mtu"));
  } else if (now.mtu != 0 && now.too_big != old.too_big) {
    errors.push_back(
        only_in_a_new_run(places_.too_big, "too_big", std::string(name(now.too_big)), std::string(name(old.too_big))));
  }
  if (folder_name(*tables_) != folder_name(*other.tables_)) {
    errors.push_back(
        only_in_a_new_run(places_.state_dir, "state_dir", folder_name(*tables_), folder_name(*other.tables_)));
  }
  // The room in batches was chosen at the start of the run.
  if (traits_.growth.tail > other.traits_.growth.tail) {
    errors.push_back(only_in_a_new_run(
        places_.state, "the longest TFC padding (tfcpad)",
        fmt::format("{} bytes", traits_.growth.tail - most_growth().tail),
        fmt::format("at most {} bytes, which packets have room for", other.traits_.growth.tail - most_growth().tail)));
  }
  if (!errors.empty()) return failure(std::move(errors));
  std::string text = changes(*other.tables_, *tables_);
  if (text.empty() && left_out_ != other.left_out_) text = left_out_.empty() ? "no constructs left out" : left_out_;
  return text;
}

Result<void> Ipsec::take_over(function::NetworkFunction& predecessor) {
  auto& before = static_cast<Ipsec&>(predecessor);
  if (auto begun = begin_run(); !begun) return begun;
  const std::lock_guard lock(mutex_);
  follow(before);
  return {};
}

void Ipsec::follow(Ipsec& predecessor) {
  predecessor_ = &predecessor;
  in_predecessor_ = find_sas(*tables_, *predecessor.tables_);
  for (std::uint32_t i = 0; i < in_predecessor_.size(); ++i) {
    std::uint32_t& there = in_predecessor_[i];
    // An SA that one of the two does not use has another state there.
    if (there != kNoSa && tables_->states()[i] != predecessor.tables_->states()[there]) there = kNoSa;
  }
  traits_.growth = predecessor.traits_.growth;  // the room that packets have
  turns_ = predecessor.turns_;
  has_new_devices_ = true;
}

std::vector<Ipsec::Earlier> Ipsec::totals() const {
  std::vector<Earlier> totals = earlier_;
  if (predecessor_ != nullptr) {
    const std::vector<Earlier> before = predecessor_->totals();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (in_predecessor_[i] != kNoSa) totals[i] = before[in_predecessor_[i]];
    }
  }
  for (const std::vector<report::Traffic>& of_stage : carried_) {
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i].here += of_stage[i];
  }
  return totals;
}

void Ipsec::predecessor_ended() noexcept {
  Ipsec* const before = predecessor_;
  if (before == nullptr) return;
  {
    const std::scoped_lock lock(mutex_, before->mutex_);
    // Its own counters stay complete, for SAs that come back when it takes its place back.
    before->earlier_ = before->totals();
    before->carried_.clear();
    for (std::size_t i = 0; i < earlier_.size(); ++i) {
      if (in_predecessor_[i] != kNoSa) earlier_[i] = before->earlier_[in_predecessor_[i]];
    }
    ended_fragments_ = std::exchange(before->ended_fragments_, {});
    std::ranges::move(before->fragments_, std::back_inserter(fragments_));
    before->fragments_.clear();
    std::erase_if(fragments_, [this](const std::shared_ptr<WorkerFragments>& of_worker) {
      if (of_worker.use_count() > 1) return false;  // a stage of this epoch uses it
      ended_fragments_ += of_worker->counts.get();
      return true;
    });
    remember_removed(*before);
    before->on_devices_.clear();
    predecessor_ = nullptr;
    in_predecessor_.clear();
  }
  before->tables_->end_run();
}

/// Keeps the states of SAs that this function does not have, so that their numbers and windows continue if a later
/// reload brings them back.
void Ipsec::remember_removed(Ipsec& predecessor) {
  const SaStates mine = tables_->used_states();
  const std::set<std::shared_ptr<SaState>> here(mine.begin(), mine.end());
  removed_ = std::exchange(predecessor.removed_, {});
  std::erase_if(removed_, [&](const auto& state) { return here.contains(state); });
  for (const auto& state : predecessor.tables_->used_states()) {
    if (!here.contains(state)) removed_.push_back(state);
  }
  while (removed_.size() > kMostRemoved) removed_.pop_front();
}

}  // namespace penstock::ipsec
