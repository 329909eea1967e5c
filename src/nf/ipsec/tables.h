// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The lookup tables of one `ipsec` function: SAs with their keys, policies, and the state of each SA. Shared by all
// workers. Only the SA states change while packets flow; they are shared with other functions that use the same SAs.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "nf/ipsec/crypto/keys.h"
#include "nf/ipsec/crypto/mb_crypto.h"
#include "nf/ipsec/esp/decapsulate_core.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/numbers/number_source.h"
#include "nf/ipsec/numbers/sa_registry.h"
#include "nf/ipsec/sa/sa_state.h"
#include "nf/ipsec/selection/selection.h"
#include "nf/ipsec/xfrm/policy_reader.h"
#include "nf/ipsec/xfrm/state_reader.h"

namespace penstock::ipsec {

/// What to do with a packet that exceeds the MTU once it is protected. A packet that must not be fragmented (IPv4 with
/// DF, RFC 4301 §8.1) is always refused.
enum class TooBig : std::uint8_t {
  fragment,  // fragmented after ESP processing (RFC 4303 §3.3.4)
  icmp,      // refused; an ICMP error tells the sender the largest size that fits
};

struct Settings {
  bool inbound = false;
  std::uint32_t mtu = 0;  // of the link that protected packets leave by, 0 if unlimited; outbound only
  TooBig too_big = TooBig::fragment;
  bool answers = true;             // sends an ICMP error to the sender of a packet that is too big
  bool drops_unselected = false;   // outbound: drops packets that no policy selects; otherwise they pass, as in Linux
  bool device_is_remote = false;   // device stages are made from recipes, in another process
  bool others_have_lanes = false;  // … in lanes of somebody who must not decide

  [[nodiscard]] bool cuts() const noexcept { return mtu != 0 && too_big == TooBig::fragment; }
  [[nodiscard]] MtuView link() const noexcept { return {mtu, cuts()}; }
  /// Outbound, the worker chooses SAs and numbers for a device: only this process may give out numbers.
  [[nodiscard]] bool decides_on_host() const noexcept { return device_is_remote && !inbound; }
};

struct TableSources {
  SecurityAssociations sas;
  std::optional<Policies> policies;  // without policies, an SA's own selector decides what it may carry inbound
  std::string state_file, policy_file;
  classify::Interfaces interfaces;
  Settings settings;
  std::shared_ptr<NumberSource> numbers;
  SaRegistry* registry = nullptr;
};

/// The SAs' keys, expanded for the portable core and for devices. Wiped on destruction.
class KeyTable {
 public:
  explicit KeyTable(std::span<const KeyMaterial> sas);
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;
  ~KeyTable();
  [[nodiscard]] const std::vector<SaKeys>& keys() const noexcept { return keys_; }
  void set_iv_base(std::uint32_t sa, std::uint64_t iv_base) noexcept { keys_[sa].iv_base = iv_base; }

 private:
  std::vector<SaKeys> keys_;
};

class Tables {
 public:
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;
  ~Tables() { end_run(); }

  /// Reports skipped constructs and contradictions between the files as warnings.
  [[nodiscard]] static Result<Read<std::unique_ptr<Tables>>> build(TableSources sources);

  /// Starts a run, before its packets: SAs that packets may use get sequence numbers and IV bases. SAs that other
  /// functions use keep theirs, also while these functions' packets flow. On error nothing has changed. Stages made
  /// earlier must not be used any more.
  [[nodiscard]] Result<void> begin_run();
  void end_run() noexcept;
  [[nodiscard]] const NumberSource& numbers() const noexcept { return *numbers_; }
  [[nodiscard]] DeviceCounting& counting() const noexcept { return *counting_; }
  /// The states of the SAs that packets may use, as passed to `numbers`.
  [[nodiscard]] SaStates used_states() const noexcept { return used_; }

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// As function::DecidingFunction. Before there are stages.
  void decide_for_others() noexcept { settings_.device_is_remote = settings_.others_have_lanes = true; }
  [[nodiscard]] const SecurityAssociations& sas() const noexcept { return sas_; }
  [[nodiscard]] const std::vector<std::shared_ptr<SaState>>& states() const noexcept { return states_; }
  [[nodiscard]] const KeyTable& keys() const noexcept { return *keys_; }
  [[nodiscard]] const MbKeys& mb_keys() const noexcept { return *mb_keys_; }
  [[nodiscard]] const Selection& selection() const noexcept { return *selection_; }
  [[nodiscard]] const InboundTable& inbound() const noexcept { return inbound_; }
  [[nodiscard]] bool has_policies() const noexcept { return has_policies_; }
  [[nodiscard]] std::size_t policy_count() const noexcept { return selection_->policies().size(); }
  // What these tables were built from, to compare them with others (table_changes.h).
  [[nodiscard]] const std::vector<std::uint64_t>& policy_hashes() const noexcept { return policy_hashes_; }
  [[nodiscard]] const classify::Interfaces& interfaces() const noexcept { return interfaces_; }

  [[nodiscard]] SaStatus status(std::uint32_t sa) const noexcept {
    const SaState& state = *states_[sa];
    if (state.numbers.exhausted()) return SaStatus::exhausted;
    if (state.ended()) return SaStatus::dead;
    return state.soft() == SaState::Limit::none && !state.is_near_end() ? SaStatus::valid : SaStatus::dying;
  }

 private:
  Tables() = default;

  Settings settings_;
  SecurityAssociations sas_;
  std::vector<std::shared_ptr<SaState>> states_;  // by SA
  std::vector<std::shared_ptr<SaState>> used_;    // those of them that come from the registry
  std::shared_ptr<NumberSource> numbers_;
  std::shared_ptr<DeviceCounting> counting_;
  std::unique_ptr<KeyTable> keys_;
  std::unique_ptr<MbKeys> mb_keys_;
  std::unique_ptr<const Selection> selection_;
  InboundTable inbound_;
  std::vector<std::uint64_t> policy_hashes_;  // of the policies of its direction, in the order in which they are tried
  classify::Interfaces interfaces_;
  bool has_policies_ = false;
  bool runs_ = false;
};

}  // namespace penstock::ipsec
