// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where SAs get what must not come twice from: sequence numbers, and the base that IVs are counted from (SaState). An
// IV is the base plus the sequence number. It has 64 bits:
//
//     | run                                   | count                                             |
//     | 16, drawn at random from those unused | 48, from a random number below 2^47 on            |
//
// So IVs of one run differ in the count, and IVs of two runs in the run. No clock has a part in it.

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
  /// The folder that numbers are kept in; empty: none, and that nothing comes twice rests on randomness.
  [[nodiscard]] virtual const std::string& folder() const noexcept = 0;
  /// What would keep `begin` from working, as far as can be told without changing anything or taking a lock.
  [[nodiscard]] virtual Errors check(SaStates states) const = 0;
  /// A function begins to use these states; the first that does gets numbers for senders. An error leaves all as it
  /// was.
  [[nodiscard]] virtual Result<void> begin(SaStates states) = 0;
  /// The same function uses them no longer. With the last use of a state its unused numbers are given back.
  virtual void end(SaStates states) noexcept = 0;
  /// Why no more numbers could be reserved when it was last tried; empty where they could.
  [[nodiscard]] virtual std::string fault() const = 0;
};

/// 64 random bits of the system's generator; none where it has none.
using RandomBits = std::function<std::optional<std::uint64_t>()>;
[[nodiscard]] std::optional<std::uint64_t> system_random_bits();

/// The most packets that an SA sends in one run: they fill what follows the highest start of the count.
inline constexpr std::uint64_t kMostOfRun = std::uint64_t{1} << 47;

/// The base of IVs for a run whose first packet has the number `sent` + 1.
[[nodiscard]] constexpr std::uint64_t iv_base(std::uint16_t run, std::uint64_t random, std::uint64_t sent) noexcept {
  return (std::uint64_t{run} << 48 | random % kMostOfRun) - sent;
}

/// Keeps nothing and locks nothing: sequence numbers go on from those of the state file, and each run is a random one.
[[nodiscard]] std::shared_ptr<NumberSource> random_numbers(RandomBits random = system_random_bits);

}  // namespace penstock::ipsec
