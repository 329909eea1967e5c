// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/ipsec.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/system_random.h"
#include "base/units.h"
#include "base/wipe.h"
#include "gpu/devices.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/explain.h"
#include "nf/ipsec/finish_stages.h"
#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/recipe.h"
#include "nf/ipsec/stages.h"

namespace penstock::ipsec {

namespace {

constexpr Access kAccess = device_access();

std::string_view kind_name() { return ipsec_kind().name; }

/// The most that protecting a packet adds: by any SA that a reload may bring, except for TFC padding, which could be as
/// long as a packet.
FrameRoom growth_of(const Tables& tables) {
  std::uint32_t padding = 0;
  for (const SaView& sa : tables.selection().sas()) padding = std::max(padding, sa.tfc_bytes);
  FrameRoom most = most_growth();
  most.tail += padding;
  return most;
}

}  // namespace

Ipsec::Ipsec(std::unique_ptr<Tables> tables, std::string left_out, ParameterPlaces places)
    : tables_(std::move(tables)),
      left_out_(std::move(left_out)),
      places_(std::move(places)),
      statuses_(tables_->sas().size()),
      turns_(std::make_shared<WorkerTurns>()) {
  for (const SecurityAssociation& sa : tables_->sas()) {
    earlier_.push_back({{sa.lifetimes.packets, sa.lifetimes.bytes}, {}});
  }
  set_traits();
}

void Ipsec::set_traits() {
  traits_.name = kind_name();
  traits_.summary = ipsec_kind().summary;
  traits_.cpu = kAccess;
  traits_.devices = {{function::Processor::gpu, kAccess}};
  traits_.finish = Access{{Field::verdict}, {Field::verdict}};  // most packets keep their verdict
  if (tables_->settings().cuts()) traits_.finish = Access{kAccess.reads, kAccess.writes};
  traits_.emits = tables_->settings().mtu != 0;
  traits_.findings_bytes = tables_->settings().inbound ? sizeof(InboundFinding) : sizeof(OutboundFinding);
  traits_.fills_gpu = true;
  traits_.drop_reasons = kReasons;
  if (tables_->settings().decides_on_host()) {
    traits_.state_bytes = tables_->settings().others_have_lanes ? sizeof(SignedDecision) : sizeof(Decision);
    // Of a packet that an earlier function drops, the number would be lost.
    traits_.state_reads = kAccess.reads - FieldSet{Field::payload, Field::trailer};
    traits_.finish_counts = tables_->settings().mtu == 0;  // the state stage has counted already
  }
  if (!tables_->settings().inbound) {
    traits_.growth = growth_of(*tables_);
    return;
  }
  traits_.stack = stack::StackNeed::ip_reassembly;
  traits_.cpu.reads |= FieldSet{Field::timestamp};  // to time out fragments
  traits_.replaces_frames = true;
}

Result<void> Ipsec::begin_run() {
  on_devices_.clear();  // copies from an earlier run have outdated IV bases
  return tables_->begin_run();
}

std::unique_ptr<function::CpuStage> Ipsec::make_cpu_stage() {
  if (tables_->settings().inbound) return std::make_unique<InboundStage>(*this);
  return std::make_unique<OutboundStage>(*this);
}

std::unique_ptr<DeviceStage> Ipsec::make_device_stage(function::Processor /*processor*/, const StageUse& use) {
  if (tables_->settings().decides_on_host()) return nullptr;  // they are made from the recipe
  const std::lock_guard lock(mutex_);
  const DeviceTables& tables = on_devices_.of_current([&] {
    has_new_devices_ = true;
    return std::make_unique<DeviceTables>(*tables_);
  });
  if (tables_->settings().inbound) return make_inbound_gpu_stage(tables.copies(), WrongIcv::drop, use);
  return make_outbound_gpu_stage(tables, std::make_unique<Sender>(*tables_, use.batch_packets),
                                 turns_->of(gpu::current_device(), use.worker), traits_.growth, use);
}

std::optional<function::StageRecipe> Ipsec::stage_recipe(function::Processor processor) const {
  if (processor != function::Processor::gpu) return std::nullopt;
  const Settings& settings = tables_->settings();
  if (settings.inbound) return recipe_of(spans_of(*tables_, ReceivedSoFar(*tables_)));
  if (!settings.decides_on_host()) return std::nullopt;
  const SealingSpans tables{tables_->selection().sas(), tables_->keys().keys(), traits_.growth, {}};
  if (!settings.others_have_lanes) return recipe_of(tables);
  // Another one for each recipe: tables that are loaded anew do not know which numbers earlier ones have used.
  auto key = random_value<SipKey>();
  if (!key) return std::nullopt;
  decision_key_[0].store(key->low, std::memory_order_relaxed);
  decision_key_[1].store(key->high, std::memory_order_relaxed);
  auto recipe = recipe_of(SealingSpans{tables.sas, tables.keys, tables.growth, {&*key, 1}});
  wipe(&*key, sizeof *key);
  return recipe;
}

void Ipsec::decide_for_others() {
  tables_->decide_for_others();
  set_traits();
}

std::unique_ptr<function::StateStage> Ipsec::make_state_stage(function::CpuStage& twin) {
  if (!tables_->settings().decides_on_host()) return nullptr;
  return std::make_unique<OutboundStateStage>(static_cast<OutboundStage&>(twin));
}

std::unique_ptr<function::FinishStage> Ipsec::make_finish_stage(function::CpuStage& /*twin*/) {
  if (tables_->settings().inbound) return std::make_unique<InboundFinishStage>(*this);
  return std::make_unique<OutboundFinishStage>(*this);
}

std::span<report::Traffic> Ipsec::make_counts() {
  const std::lock_guard lock(mutex_);
  return carried_.emplace_back(tables_->sas().size());
}

std::shared_ptr<WorkerFragments> Ipsec::make_fragments() {
  const std::lock_guard lock(mutex_);
  return fragments_.emplace_back(std::make_shared<WorkerFragments>());
}

std::optional<function::Explanation> Ipsec::explain(PacketView packet) const {
  return tables_->settings().inbound ? explain_inbound(packet, *tables_)
                                     : explain_outbound(packet, *tables_, traits_.growth);
}

std::string Ipsec::description() const {
  const std::size_t sas = tables_->sas().size();
  std::string text = fmt::format("{}, {}", tables_->settings().inbound ? "in" : "out", format_count(sas, "SA"));
  if (tables_->has_policies()) {
    const std::size_t policies = tables_->policy_count();
    text += fmt::format(", {} polic{}", format_count(policies), policies == 1 ? "y" : "ies");
  }
  if (!left_out_.empty()) text += fmt::format(", {}", left_out_);
  text += fmt::format("; on the CPU by intel-ipsec-mb ({})", mb_processor_features());
  const std::string& folder = tables_->numbers().folder();
  return text + (folder.empty() ? "; no state kept" : fmt::format("; state in {}", folder));
}

void Ipsec::look_after_sas_at_once() noexcept {
  limit_reached();
  look_after_sas(std::time(nullptr));
}

void Ipsec::log_limit(const SaState& state) noexcept {
  const bool ended = state.ended();
  log_warning("ipsec: SA {} has reached its {} limit: {}", state.origin().name, ended ? "hard" : "soft",
              name(ended ? state.hard() : state.soft()));
}

void Ipsec::look_after_sas(SaState::Seconds now) noexcept {
  SaState::Seconds before = looked_at_.load(std::memory_order_relaxed);
  const bool at_once = limit_reached_.load(std::memory_order_relaxed);
  if (before == now && !at_once) return;
  // Another worker is already checking.
  if (!looked_at_.compare_exchange_strong(before, now, std::memory_order_relaxed)) return;
  if (at_once) limit_reached_.store(false, std::memory_order_relaxed);
  for (const auto& state : tables_->used_states()) {
    // The host's counter lags behind if a device gives out numbers.
    state->numbers.advance_to(state->sent());
    if (state->look_at(now)) log_limit(*state);
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {  // by a report, or a reload; the worker does not wait for it
    limit_reached();
    return;
  }
  if (tables_->settings().inbound) on_devices_.for_each([](DeviceTables& tables) { tables.tell_tops(); });
  // Whichever function noticed the limit, each has devices of its own to update.
  bool changed = std::exchange(has_new_devices_, false);
  for (std::uint32_t i = 0; i < statuses_.size(); ++i) {
    const SaStatus status = tables_->status(i);
    changed |= std::exchange(statuses_[i], status) != status;
  }
  if (!changed) return;
  on_devices_.for_each([](DeviceTables& tables) { tables.tell_statuses(); });
}

void Ipsec::report(nlohmann::json& into) const {
  if (!left_out_.empty()) {
    into["warnings"].push_back(fmt::format("{}: packets that need them {}", left_out_,
                                           tables_->settings().inbound
                                               ? "are dropped (wrong_spi, policy_mismatch), or not checked"
                                               : "are dropped (no_policy, no_sa, unsupported), or leave in the clear"));
  }
  const NumberSource& numbers = tables_->numbers();
  into["state_dir"] = numbers.folder().empty() ? nlohmann::json() : nlohmann::json(numbers.folder());
  if (const std::string fault = numbers.fault(); !fault.empty()) into["fault"] = fault;
  const std::lock_guard lock(mutex_);
  FragmentCounts fragments = ended_fragments_;
  for (const auto& of_worker : fragments_) fragments += of_worker->counts.get();
  if (predecessor_ != nullptr) {
    fragments += predecessor_->ended_fragments_;
    for (const auto& of_worker : predecessor_->fragments_) fragments += of_worker->counts.get();
  }
  if (fragments.fragments != 0) {
    into["fragments"] = {{"received", fragments.fragments},
                         {"reassembled", fragments.reassembled},
                         {"timed_out", fragments.timed_out},
                         {"dropped", fragments.dropped}};
  }
  const std::vector<Earlier> all = totals();
  nlohmann::json& sas = into["sas"] = nlohmann::json::array();
  for (std::uint32_t i = 0; i < tables_->sas().size(); ++i) {
    const SecurityAssociation& sa = tables_->sas()[i];
    const SaState& state = *tables_->states()[i];
    report::TrafficSum carried = all[i].in_file;
    carried += all[i].here;
    const bool silent = all[i].here.packets == 0 && state.replayed() == 0 && state.refused() == 0;
    if (silent && state.soft() == SaState::Limit::none && !state.ended()) continue;
    nlohmann::json one = {{"spi", fmt::format("0x{:08x}", sa.spi)},
                          {"source", to_string(sa.source)},
                          {"destination", to_string(sa.destination)},
                          {"line", sa.line},
                          {"packets", carried.packets},
                          {"bytes", carried.bytes}};
    if (tables_->settings().inbound) {
      one["received"] = state.window.top();
      one["replayed"] = state.replayed();
      one["integrity"] = state.refused();
    } else {
      one["sent"] = state.sent();
    }
    if (state.soft() != SaState::Limit::none) one["soft"] = name(state.soft());
    if (state.ended()) one["hard"] = name(state.hard());
    sas.push_back(std::move(one));
  }
}

}  // namespace penstock::ipsec
