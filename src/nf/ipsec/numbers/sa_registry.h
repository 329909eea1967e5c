// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The states of all SAs of the process: one for each end of an SA, however many functions and chains name it. RFC 4301
// §4.1: destination and SPI say which SA it is; the protocol is always ESP. A state lives as long as somebody uses it.

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
  /// That of the process. Others are for tests that play several machines.
  [[nodiscard]] static SaRegistry& process();

  /// The state of the SA's end, shared with whoever has named it before. An error where that contradicts: keys,
  /// algorithms or limits differ; the numbers are kept elsewhere; or another SA sends with the same key and salt, and
  /// a cipher whose IVs must be unique. `file` is the name of the SA's file.
  [[nodiscard]] Result<std::shared_ptr<SaState>> state_of(const SecurityAssociation& sa, SaEnd end,
                                                          const std::string& file, const NumberSource& numbers);

  /// Numbers that are kept in that folder, or that are random: one source each for the process.
  [[nodiscard]] std::shared_ptr<NumberSource> kept_in(const std::string& folder, MakeParents parents);
  [[nodiscard]] std::shared_ptr<NumberSource> random();
  /// Who counts for the states on a device.
  [[nodiscard]] std::shared_ptr<DeviceCounting> counting();

 private:
  using Name = std::tuple<SaEnd, bool, std::uint64_t, std::uint64_t, std::uint32_t>;  // end, IPv6, destination, SPI
  struct Known {
    std::weak_ptr<SaState> state;
    SecurityAssociation sa;  // without keys
    Digest fingerprint{};
    std::string folder;  // of its numbers
  };
  void forget_the_dead();
  [[nodiscard]] std::shared_ptr<DeviceCounting> locked_counting();

  std::mutex mutex_;  // guards all below
  std::map<Name, Known> states_;
  std::map<Digest, std::weak_ptr<SaState>> counting_keys_;  // by SaIdentity::owner, of ciphers that count
  std::map<std::string, std::weak_ptr<NumberSource>> kept_;
  std::weak_ptr<NumberSource> random_;
  std::weak_ptr<DeviceCounting> counting_;
};

/// "0xc0ffee01 from 192.0.2.1 to 192.0.2.2": how messages name an SA.
[[nodiscard]] std::string describe(const SecurityAssociation& sa);

}  // namespace penstock::ipsec
