// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequence numbers that survive a crash, kept in a folder. Before an SA uses a block of sequence numbers, the block's
// end is on disk; before a run sends its first packet, the run is recorded too. So after a crash, numbers continue
// after the block, and no run is used twice. One lock per key keeps other processes out.
//
// `extend` runs every few milliseconds, off the packet path. It reserves the next block while half of the last one is
// still unused. If the disk is too slow or full, packets are dropped as `not_reserved`.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nf/ipsec/numbers/number_record.h"
#include "nf/ipsec/numbers/number_source.h"
#include "nf/ipsec/numbers/state_folder.h"

namespace penstock::ipsec {

/// The smallest reservation. A crash skips at most this many numbers of a slow SA.
inline constexpr std::uint64_t kLeastReservation = std::uint64_t{1} << 22;

/// a + b, capped at `most`.
[[nodiscard]] constexpr std::uint64_t sum_or_most(std::uint64_t a, std::uint64_t b, std::uint64_t most) noexcept {
  return a > most || most - a < b ? most : a + b;
}

class KeptNumbers final : public NumberSource {
 public:
  struct Access {
    std::function<Result<std::unique_ptr<StateFolder>>()> open;  // for the first `begin`; creates the folder if missing
    std::function<Errors()> check;                               // what would make `open` fail
    std::function<std::unique_ptr<StateFolder>()> view;          // read-only; null if the folder is missing
  };
  KeptNumbers(std::string folder, Access access, RandomBits random = system_random_bits);

  const std::string& folder() const noexcept override { return path_; }
  Errors check(SaStates states) const override;
  Result<void> begin(SaStates states) override;
  void end(SaStates states) noexcept override;
  std::string fault() const override;

  /// Reserves more numbers for senders that have used half of theirs. `seconds` since the last call, to estimate how
  /// fast they send. Returns the number of SAs to look at.
  std::size_t extend(double seconds) noexcept;

 private:
  /// How many states begin or end at a time. `extend` runs in between.
  static constexpr std::size_t kPart = 1024;
  static constexpr std::chrono::milliseconds kBetweenParts{1};

  /// What is kept for one key while an SA of this process uses it. For a receiver, only the lock.
  struct Owner {
    std::string name;
    Digest seal;
    std::uint64_t lock = 0;
    bool has_record = false;
    NumberRecord record;
    unsigned uses = 0;  // number of SAs with this key
  };
  /// An SA state in use.
  struct Use {
    std::shared_ptr<SaState> state;
    Owner* owner = nullptr;
    std::size_t entry = 0;
    std::uint16_t run = 0;
    std::uint64_t start = 0;  // random start of the IV count
    std::uint64_t first = 0;  // the last number before this run
    std::uint64_t seen = 0;   // last number sent when `extend` last looked
    unsigned functions = 0;
  };
  using Owners = std::map<Digest, std::unique_ptr<Owner>>;

  /// A block to be reserved.
  struct Extension {
    Use* use;
    std::uint64_t end, before;
  };

  class Beginning;
  [[nodiscard]] Result<void> begin_part(SaStates states);
  void end_part(SaStates states) noexcept;
  [[nodiscard]] int write(Owner& owner);
  [[nodiscard]] bool reserve(std::vector<Extension>& extensions);
  [[nodiscard]] std::uint64_t next_end(Use& use, double seconds) const noexcept;
  void fail(const std::string& name, int error);
  void give_back(Use& use);

  const std::string path_;
  const Access access_;
  const RandomBits random_;
  mutable std::mutex mutex_;  // guards the members below
  std::unique_ptr<StateFolder> folder_;
  Owners owners_;
  std::map<const SaState*, Use> uses_;
  std::string fault_;
  double until_retry_ = 0;  // seconds
};

/// KeptNumbers in a folder of the file system, with a thread that calls `extend` from the first run on.
[[nodiscard]] std::shared_ptr<NumberSource> kept_numbers(const std::string& folder, MakeParents parents);

}  // namespace penstock::ipsec
