// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the stages of one `ipsec` look packets up in: SAs with their keys, policies, and how far each SA has got.
// Immutable while packets come, but for the latter; shared by all workers. The SAs' states are shared with other
// functions that name the SAs too.

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

/// What to do with a packet that is longer than the MTU once it is protected. One that must not be cut (IPv4 with DF,
/// RFC 4301 §8.1) is always refused.
enum class TooBig : std::uint8_t {
  fragment,  // cut behind ESP (RFC 4303 §3.3.4)
  icmp,      // refused, and its sender told what would fit
};

struct Settings {
  bool inbound = false;
  std::uint32_t mtu = 0;  // of the link that protected packets leave by, 0: none; outwards
  TooBig too_big = TooBig::fragment;
  bool answers = true;            // who sent a packet that is refused for its length is told what fits
  bool drops_unselected = false;  // outwards, what no policy selects; else it passes, as in Linux

  [[nodiscard]] bool cuts() const noexcept { return mtu != 0 && too_big == TooBig::fragment; }
  [[nodiscard]] MtuView link() const noexcept { return {mtu, cuts()}; }
};

struct TableSources {
  SecurityAssociations sas;
  std::optional<Policies> policies;  // none: inwards, whatever an SA may carry
  std::string state_file, policy_file;
  classify::Interfaces interfaces;
  Settings settings;
  std::shared_ptr<NumberSource> numbers;
  SaRegistry* registry = nullptr;
};

/// The SAs' keys for host core and devices; wiped when it goes.
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

  /// Tells what is left out, or what the files contradict each other in.
  [[nodiscard]] static Result<Read<std::unique_ptr<Tables>>> build(TableSources sources);

  /// A run begins, before its packets come: the SAs that packets may go by get numbers. An error leaves all as it was.
  /// Stages that were made before are of no use any more.
  [[nodiscard]] Result<void> begin_run();
  void end_run() noexcept;
  [[nodiscard]] const NumberSource& numbers() const noexcept { return *numbers_; }
  [[nodiscard]] DeviceCounting& counting() const noexcept { return *counting_; }
  /// The states of the SAs that packets may go by, as `numbers` has them.
  [[nodiscard]] SaStates used_states() const noexcept { return used_; }

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] const SecurityAssociations& sas() const noexcept { return sas_; }
  [[nodiscard]] const std::vector<std::shared_ptr<SaState>>& states() const noexcept { return states_; }
  [[nodiscard]] const KeyTable& keys() const noexcept { return *keys_; }
  [[nodiscard]] const MbKeys& mb_keys() const noexcept { return *mb_keys_; }
  [[nodiscard]] const Selection& selection() const noexcept { return *selection_; }
  [[nodiscard]] const InboundTable& inbound() const noexcept { return inbound_; }
  [[nodiscard]] bool has_policies() const noexcept { return has_policies_; }
  [[nodiscard]] std::size_t policy_count() const noexcept { return selection_->policies().size(); }

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
  std::vector<std::shared_ptr<SaState>> used_;    // those of the registry among them
  std::shared_ptr<NumberSource> numbers_;
  std::shared_ptr<DeviceCounting> counting_;
  std::unique_ptr<KeyTable> keys_;
  std::unique_ptr<MbKeys> mb_keys_;
  std::unique_ptr<const Selection> selection_;
  InboundTable inbound_;
  bool has_policies_ = false;
  bool runs_ = false;
};

}  // namespace penstock::ipsec
