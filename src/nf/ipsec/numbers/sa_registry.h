// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The states of all SAs of the process: one per SA end, however many functions and chains use it. An SA is identified
// by destination and SPI (RFC 4301 §4.1); the protocol is always ESP. A state lives as long as it is in use.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "base/error.h"
#include "nf/ipsec/numbers/device_numbers.h"
#include "nf/ipsec/numbers/number_source.h"
#include "nf/ipsec/numbers/state_folder.h"
#include "nf/ipsec/sa/sa_state.h"

namespace penstock::ipsec {

class SaRegistry {
 public:
  SaRegistry() = default;
  /// With a simulated device; borrowed.
  explicit SaRegistry(const std::shared_ptr<DeviceCounting>& counting) : counting_(counting) {}
  /// The process-wide registry. Tests create others to simulate several machines.
  [[nodiscard]] static SaRegistry& process();

  /// The state of one end of the SA, shared by all functions that use it. Fails on a conflict with an earlier use:
  /// keys, algorithms or limits differ; the numbers are kept elsewhere; or another SA sends with the same key and salt
  /// and a cipher that needs unique IVs. `file` is the name of the SA's file. How far the SA has got according to the
  /// file counts only if no function is using it, and never moves it back.
  [[nodiscard]] Result<std::shared_ptr<SaState>> state_of(const SecurityAssociation& sa, SaEnd end,
                                                          const std::string& file, const NumberSource& numbers);

  /// Number sources, shared by the whole process: one for each folder, and one that is random.
  [[nodiscard]] std::shared_ptr<NumberSource> kept_in(const std::string& folder, MakeParents parents);
  [[nodiscard]] std::shared_ptr<NumberSource> random();
  /// Gives out numbers for states that a device counts.
  [[nodiscard]] std::shared_ptr<DeviceCounting> counting();

 private:
  using Name = std::tuple<SaEnd, bool, std::uint64_t, std::uint64_t, std::uint32_t>;  // end, IPv6, destination, SPI
  struct Known {
    std::weak_ptr<SaState> state;
    SecurityAssociation sa;  // without its keys
    Digest fingerprint{};
    std::string folder;  // where its numbers are kept
  };
  void forget_the_dead();
  [[nodiscard]] std::shared_ptr<DeviceCounting> locked_counting();

  std::mutex mutex_;  // guards the members below
  std::map<Name, Known> states_;
  std::map<Digest, std::weak_ptr<SaState>> counting_keys_;  // by SaIdentity::owner, for ciphers that need unique IVs
  std::map<std::string, std::weak_ptr<NumberSource>> kept_;
  std::weak_ptr<NumberSource> random_;
  std::weak_ptr<DeviceCounting> counting_;
};

/// "0xc0ffee01 from 192.0.2.1 to 192.0.2.2": the name of an SA in messages.
[[nodiscard]] std::string describe(const SecurityAssociation& sa);

}  // namespace penstock::ipsec
