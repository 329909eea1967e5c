// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/kept_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"

namespace penstock::ipsec {

KeptNumbers::KeptNumbers(std::string folder, Access access, RandomBits random)
    : path_(std::move(folder)), access_(std::move(access)), random_(std::move(random)) {}

/// Writes the record to its next slot; the record's generation stays that of the last durable one.
int KeptNumbers::write(Owner& owner) {
  const auto there = folder_->identify(owner.name);
  if (!there) return there.error();
  if (*there != owner.record.file) return ESTALE;
  NumberRecord next = owner.record;
  ++next.generation;
  return folder_->write(owner.name, slot_of(next.generation), encode(next, owner.seal));
}

void KeptNumbers::give_back(Use& use) {
  NumberRecord& record = use.owner->record;
  const std::uint64_t sent = use.state->sent();
  record.entries[use.entry].reserved = std::max(use.first, sent);
  if (sent <= use.first) std::erase(record.runs, use.run);
}

void KeptNumbers::end(SaStates states) noexcept {
  for (std::size_t first = 0; first < states.size(); first += kPart) {
    if (first != 0) std::this_thread::sleep_for(kBetweenParts);
    end_part(states.subspan(first, std::min(kPart, states.size() - first)));
  }
}

void KeptNumbers::end_part(SaStates states) noexcept {
  const std::lock_guard lock(mutex_);
  std::vector<Owner*> changed;
  std::vector<Owner*> owners;
  for (const auto& state : states) {
    const auto use = uses_.find(state.get());
    if (use == uses_.end() || --use->second.functions > 0) continue;
    state->end_run();
    Owner& owner = *use->second.owner;
    if (owner.has_record) give_back(use->second);
    --owner.uses;
    owners.push_back(&owner);
    uses_.erase(use);
  }
  std::ranges::sort(owners);
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  // If this fails, reserved numbers are skipped.
  std::vector<std::string> names;
  for (Owner* const owner : owners) {
    if (!owner->has_record || write(*owner) != 0) continue;
    names.push_back(owner->name);
    changed.push_back(owner);
  }
  if (!names.empty() && folder_->sync(names) == 0) {
    for (Owner* const owner : changed) ++owner->record.generation;
  }
  std::erase_if(owners_, [&](const auto& owner) {
    if (owner.second->uses > 0) return false;
    folder_->unlock(owner.second->lock);
    return true;
  });
}

std::string KeptNumbers::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

/// Where the sender's next reservation ends, a second's worth ahead; the current end if that is far enough.
std::uint64_t KeptNumbers::next_end(Use& use, double seconds) const noexcept {
  const SequenceCounter& numbers = use.state->numbers;
  const std::uint64_t sent = use.state->sent();
  const double rate = seconds > 0 ? static_cast<double>(sent - std::min(sent, use.seen)) / seconds : 0;
  use.seen = sent;
  const auto ahead = static_cast<std::uint64_t>(
      std::clamp(rate, static_cast<double>(kLeastReservation), static_cast<double>(kMostReservation)));
  const std::uint64_t reserved = use.owner->record.entries[use.entry].reserved;
  if (reserved > sent && reserved - sent >= ahead / 2) return reserved;
  return std::max(reserved, std::min(sum_or_most(sent, ahead, numbers.most()),
                                     sum_or_most(reserved, kMostReservation, numbers.most())));
}

void KeptNumbers::fail(const std::string& name, int error) {
  const bool is_new = fault_.empty();
  fault_ = fmt::format("{}/{}: {}", path_, name, std::strerror(error));
  if (!is_new) return;
  log_error(
      "ipsec: cannot reserve sequence numbers: {}; packets will be dropped as not_reserved once the reserved numbers "
      "run out",
      fault_);
}

/// Senders get the reservations that became durable. False: not all did.
bool KeptNumbers::reserve(std::vector<Extension>& extensions) {
  bool all = true;
  std::vector<std::string> names;
  std::vector<Extension*> written;
  for (Extension& extension : extensions) {
    Owner& owner = *extension.use->owner;
    std::uint64_t& reserved = owner.record.entries[extension.use->entry].reserved;
    reserved = extension.end;
    if (const int error = write(owner); error != 0) {
      reserved = extension.before;
      fail(owner.name, error);
      all = false;
      continue;
    }
    written.push_back(&extension);
    names.push_back(owner.name);
  }
  const bool together = !names.empty() && folder_->sync(names) == 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    Owner& owner = *written[i]->use->owner;
    // Synced one by one, since only one of them may have failed.
    const int error = together ? 0 : folder_->sync({&names[i], 1});
    if (error != 0) {
      owner.record.entries[written[i]->use->entry].reserved = written[i]->before;
      fail(owner.name, error);
      all = false;
      continue;
    }
    ++owner.record.generation;
    written[i]->use->state->reserve_to(written[i]->end);
  }
  return all;
}

std::size_t KeptNumbers::extend(double seconds) noexcept {
  constexpr double kRetry = 0.5;
  const std::lock_guard lock(mutex_);
  until_retry_ = std::max(0.0, until_retry_ - seconds);
  std::vector<Extension> extensions;
  std::set<const Owner*> owners;
  for (auto& [state, use] : uses_) {
    if (!use.owner->has_record) continue;
    const std::uint64_t before = use.owner->record.entries[use.entry].reserved;
    const std::uint64_t end = next_end(use, seconds);
    // Of two SAs with one key, one waits for the next call, because each write of their record must be durable before
    // the next.
    if (end != before && owners.insert(use.owner).second) extensions.push_back({&use, end, before});
  }
  if (extensions.empty() || until_retry_ > 0) return uses_.size();
  if (!folder_->holds_locks()) {
    fail("locks", ESTALE);
    until_retry_ = kRetry;
    return uses_.size();
  }
  if (!reserve(extensions)) {
    until_retry_ = kRetry;
  } else if (!fault_.empty()) {
    fault_.clear();
    log_info("ipsec: sequence numbers can be reserved again");
  }
  return uses_.size();
}

}  // namespace penstock::ipsec
