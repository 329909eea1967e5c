// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a function starts using its SAs: locks, records, and for each sender a run and the first block of numbers; and
// what can be checked in advance.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "nf/ipsec/numbers/kept_numbers.h"

namespace penstock::ipsec {

namespace {

/// New keys always help: their record has another file name, and none of their IVs has been used.
Error record_error(const SaOrigin& sa, const std::string& path, const std::string& why) {
  return {sa.place, fmt::format("the sequence numbers that SA {} has used are unknown", sa.name),
          fmt::format("{} in {}/{}", why, path, sa.identity.file_name()),
          why == kCopiedRecord ? "the state_dir where the SA was last used; if that is lost, give the SA new keys"
                               : "the file as this machine last wrote it; if that is lost, give the SA new keys"};
}

Error in_use(const SaOrigin& sa, const std::string& path) {
  const bool sends = sa.identity.end == SaEnd::sender;
  return {sa.place,
          sends ? fmt::format("another process sends with SA {}, or with its key", sa.name)
                : fmt::format("another process receives with SA {}", sa.name),
          fmt::format("locked in {}", path),
          sends ? "one process: two would use the same sequence numbers" : "one process: each would accept replays"};
}

/// Enough to show what is wrong, since there may be thousands of SAs.
Errors first_of(Errors errors) {
  constexpr std::size_t kMost = 10;
  if (errors.size() <= kMost) return errors;
  const std::size_t more = errors.size() - kMost;
  errors.resize(kMost);
  errors.push_back({errors.back().place, fmt::format("and {} more", more), "", ""});
  return errors;
}

std::array<std::uint8_t, 16> entry_name(const SaIdentity& identity) {
  std::array<std::uint8_t, 16> name;
  std::copy_n(identity.sa.begin(), name.size(), name.begin());
  return name;
}

}  // namespace

Errors KeptNumbers::check(SaStates states) const {
  if (Errors errors = access_.check(); !errors.empty()) return errors;
  const auto folder = access_.view();
  if (folder == nullptr) return {};
  Errors errors;
  for (const auto& state : states) {
    const SaOrigin& sa = state->origin();
    const std::string name = sa.identity.file_name();
    if (sa.identity.end == SaEnd::receiver) continue;
    if (const auto there = folder->identify(name); !there && there.error() == ENOENT) continue;
    const auto record = read_record(*folder, name, sa.identity.seal);
    if (!record) errors.push_back(record_error(sa, path_, record.error()));
  }
  return first_of(std::move(errors));
}

/// One function's attempt to start. Nothing is visible outside until `commit`; without it, the locks are released.
class KeptNumbers::Beginning {
 public:
  explicit Beginning(KeptNumbers& numbers) : numbers_(numbers), folder_(*numbers.folder_) {}
  ~Beginning() {
    for (const auto& [digest, owner] : made_) folder_.unlock(owner->lock);
    for (auto& [owner, before] : changed_) {
      if (is_committed_) continue;
      before.generation = owner->record.generation;  // as on disk, or the next write would seem older
      owner->record = std::move(before);
    }
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  void add(const std::shared_ptr<SaState>& state) {
    const SaIdentity& identity = state->origin().identity;
    Owner* const owner = owner_of(state->origin());
    if (owner == nullptr) return;
    Use use;
    use.state = state;
    use.owner = owner;
    use.first = state->sent();
    if (owner->has_record && !reserve(use, identity)) return;
    uses_.push_back(std::move(use));
  }

  [[nodiscard]] Errors take_errors() { return first_of(std::move(errors_)); }

  /// 0 or errno. On success, everything is durable.
  [[nodiscard]] int write() {
    if (uses_.empty()) return 0;  // all are in use already, so a full disk does not matter
    std::vector<std::string> fresh, there;
    std::vector<Owner*> old;
    for (const auto& [digest, owner] : made_) {
      if (!owner->has_record) continue;
      if (owner->record.generation != 0) {
        old.push_back(owner.get());
        continue;
      }
      const std::string name = owner->name + ".new";
      const auto identity = folder_.make(name);
      if (!identity) return identity.error();
      owner->record.file = *identity;
      for (int slot = 0; slot < 2; ++slot) {
        ++owner->record.generation;
        const int error = folder_.write(name, slot_of(owner->record.generation), encode(owner->record, owner->seal));
        if (error != 0) return error;
      }
      fresh.push_back(name);
    }
    for (const auto& [owner, before] : changed_) old.push_back(owner);
    if (!fresh.empty()) {
      if (const int error = folder_.sync(fresh); error != 0) return error;
      for (const std::string& name : fresh) {
        if (const int error = folder_.rename(name, name.substr(0, name.size() - 4)); error != 0) return error;
      }
    }
    // Also for files that existed already, because the process that created them may not have come this far.
    if (const int error = folder_.sync_names(); error != 0) return error;
    for (const Owner* const owner : old) there.push_back(owner->name);
    // Writes both slots, one after the other: whichever is damaged later, the other one has this run.
    for (int slot = 0; slot < 2 && !old.empty(); ++slot) {
      for (Owner* const owner : old) {
        if (const int error = numbers_.write(*owner); error != 0) return error;
      }
      if (const int error = folder_.sync(there); error != 0) return error;
      for (Owner* const owner : old) ++owner->record.generation;
    }
    return 0;
  }

  void commit() {
    is_committed_ = true;
    for (Use& use : uses_) {
      ++use.owner->uses;
      if (use.owner->has_record) {
        SaState& state = *use.state;
        state.begin_run(use.first, iv_base(use.run, use.start, use.first), kMostOfRun);
        state.reserve_to(use.owner->record.entries[use.entry].reserved);
      }
      use.seen = use.first;
      numbers_.uses_[use.state.get()] = std::move(use);
    }
    for (auto& [digest, owner] : made_) numbers_.owners_[digest] = std::move(owner);
    made_.clear();
  }

 private:
  Owner* owner_of(const SaOrigin& sa) {
    const SaIdentity& identity = sa.identity;
    if (const auto here = numbers_.owners_.find(identity.owner); here != numbers_.owners_.end()) {
      Owner& owner = *here->second;
      const bool is_first =
          std::ranges::find(changed_, &owner, &std::pair<Owner*, NumberRecord>::first) == changed_.end();
      if (owner.has_record && is_first) changed_.emplace_back(&owner, owner.record);
      return &owner;
    }
    if (const auto made = made_.find(identity.owner); made != made_.end()) return made->second.get();
    const int error = folder_.lock(identity.lock_place());
    if (error != 0) {
      errors_.push_back(error == EAGAIN ? in_use(sa, numbers_.path_)
                                        : Error{sa.place, "cannot lock an SA in " + numbers_.path_,
                                                std::strerror(error), "a file system that supports locks"});
      return nullptr;
    }
    auto& owner = made_[identity.owner] = std::make_unique<Owner>();
    owner->name = identity.file_name();
    owner->seal = identity.seal;
    owner->lock = identity.lock_place();
    owner->has_record = identity.end == SaEnd::sender;
    if (!owner->has_record) return owner.get();
    if (const auto there = folder_.identify(owner->name); !there && there.error() == ENOENT) return owner.get();
    auto record = read_record(folder_, owner->name, identity.seal);
    if (!record) {
      errors_.push_back(record_error(sa, numbers_.path_, record.error()));
      return nullptr;
    }
    owner->record = std::move(*record);
    return owner.get();
  }

  /// Chooses a run that the key has not had, and reserves the SA's first numbers.
  bool reserve(Use& use, const SaIdentity& identity) {
    NumberRecord& record = use.owner->record;
    const SaOrigin& sa = use.state->origin();
    const auto name = entry_name(identity);
    const auto entry = std::ranges::find(record.entries, name, &NumberRecord::Entry::sa);
    use.entry = static_cast<std::size_t>(entry - record.entries.begin());
    if (record.runs.size() >= kMostRuns || (use.entry >= kMostRecordEntries)) {
      errors_.push_back({sa.place, fmt::format("the key of SA {} has been used by too many runs or SAs", sa.name),
                         fmt::format("{} runs, {} SAs", record.runs.size(), record.entries.size()), "a new key"});
      return false;
    }
    if (entry == record.entries.end()) record.entries.push_back({name, 0});
    if (identity.has_iv && !draw(use)) {
      errors_.push_back({sa.place, "the system returned no random numbers, which IVs require", "", "getrandom(2)"});
      return false;
    }
    std::uint64_t& reserved = record.entries[use.entry].reserved;
    use.first = std::max(use.first, reserved);
    reserved = sum_or_most(use.first, kLeastReservation, use.state->numbers.highest());
    return true;
  }

  [[nodiscard]] bool draw(Use& use) {
    std::vector<std::uint16_t>& runs = use.owner->record.runs;
    do {
      const auto run = numbers_.random_();
      if (!run) return false;
      use.run = static_cast<std::uint16_t>(*run);
    } while (std::ranges::find(runs, use.run) != runs.end());
    runs.push_back(use.run);
    const auto start = numbers_.random_();
    use.start = start.value_or(0);
    return start.has_value();
  }

  KeptNumbers& numbers_;
  StateFolder& folder_;
  Owners made_;
  std::vector<std::pair<Owner*, NumberRecord>> changed_;  // with their previous records
  std::vector<Use> uses_;
  Errors errors_;
  bool is_committed_ = false;
};

/// In parts, since `extend` has to wait meanwhile: senders that other functions use must not run out of numbers.
Result<void> KeptNumbers::begin(SaStates states) {
  for (std::size_t first = 0; first < states.size(); first += kPart) {
    if (first != 0) std::this_thread::sleep_for(kBetweenParts);
    auto begun = begin_part(states.subspan(first, std::min(kPart, states.size() - first)));
    if (begun) continue;
    end(states.first(first));
    return begun;
  }
  return {};
}

Result<void> KeptNumbers::begin_part(SaStates states) {
  const std::lock_guard lock(mutex_);
  if (folder_ == nullptr) {
    auto opened = access_.open();
    if (!opened) return failure(std::move(opened.error()));
    folder_ = std::move(*opened);
  }
  Beginning beginning(*this);
  for (const auto& state : states) {
    if (!uses_.contains(state.get())) beginning.add(state);
  }
  if (Errors errors = beginning.take_errors(); !errors.empty()) return failure(std::move(errors));
  if (const int error = beginning.write(); error != 0) {
    return failure(Error{{path_, 0, 0},
                         "cannot reserve sequence numbers in state_dir",
                         std::strerror(error),
                         "a writable disk with free space"});
  }
  beginning.commit();
  for (const auto& state : states) ++uses_.at(state.get()).functions;
  return {};
}

}  // namespace penstock::ipsec
