// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where SAs get what must never repeat: sequence numbers, and the base of their IVs (SaState). An IV is the base plus
// the sequence number. It has 64 bits:
//
//     | run                                   | count                                             |
//     | 16, drawn at random from those unused | 48, from a random number below 2^47 on            |
//
// So IVs of one run differ in the count, and IVs of different runs differ in the run. No clock is involved.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "nf/ipsec/sa/sa_state.h"

namespace penstock::ipsec {

using SaStates = std::span<const std::shared_ptr<SaState>>;

class NumberSource {
 public:
  virtual ~NumberSource() = default;
  /// The folder that numbers are kept in. If empty, none are kept, and uniqueness relies on randomness.
  [[nodiscard]] virtual const std::string& folder() const noexcept = 0;
  /// What would make `begin` fail, as far as can be determined without changing anything or taking a lock.
  [[nodiscard]] virtual Errors check(SaStates states) const = 0;
  /// A function starts using these states. The first function to use a sender's state makes it get numbers, and an IV
  /// base. For later ones both go on, so a function that takes the place of another one begins before that one ends. On
  /// error nothing has changed.
  [[nodiscard]] virtual Result<void> begin(SaStates states) = 0;
  /// The same function stops using them. The last user's `end` returns a state's unused numbers.
  virtual void end(SaStates states) noexcept = 0;
  /// Why the last attempt to reserve numbers failed; empty if it succeeded.
  [[nodiscard]] virtual std::string fault() const = 0;
};

/// 64 random bits from the system's generator; empty if it is unavailable.
using RandomBits = std::function<std::optional<std::uint64_t>()>;
[[nodiscard]] std::optional<std::uint64_t> system_random_bits();

/// The most packets that an SA sends in one run. Even from the highest start of the count, that many fit in 48 bits.
inline constexpr std::uint64_t kMostOfRun = std::uint64_t{1} << 47;

/// The IV base for a run whose first packet has number `sent` + 1.
[[nodiscard]] constexpr std::uint64_t iv_base(std::uint16_t run, std::uint64_t random, std::uint64_t sent) noexcept {
  return (std::uint64_t{run} << 48 | random % kMostOfRun) - sent;
}

/// Keeps nothing and locks nothing: sequence numbers continue from the state file, and each run is chosen at random.
[[nodiscard]] std::shared_ptr<NumberSource> random_numbers(RandomBits random = system_random_bits);

}  // namespace penstock::ipsec
