// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "base/prefetch.h"
#include "classify/classifier.h"
#include "nf/ipsec/esp/mtu.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/selection/selection_core.h"
#include "nf/ipsec/stages.h"
#include "packet/parse_core.h"
#include "packet/parse_plain.h"

namespace penstock::ipsec {

namespace {

/// Link header, IP header without options, ports.
constexpr std::size_t kUsualHeaders = sizeof(EthernetHeader) + sizeof(Ipv6Header) + 4;

void prefetch_headers(PacketView packet) noexcept {
  prefetch(packet.frame);
  prefetch(packet.frame + kUsualHeaders - 1);  // often the same cache line
}

void write(const Decision& decision, std::byte* to) noexcept { std::memcpy(to, &decision, sizeof decision); }

void sign(std::span<std::byte* const> decisions, SipKey key) noexcept {
  for (std::byte* const state : decisions) {
    Decision decision;
    std::memcpy(&decision, state, sizeof decision);
    const std::uint64_t mac = mac_of(decision, key);
    std::memcpy(state + offsetof(SignedDecision, mac), &mac, sizeof mac);
  }
}

}  // namespace

OutboundStage::OutboundStage(Ipsec& ipsec)
    : ipsec_(ipsec),
      tables_(ipsec.tables()),
      carried_(ipsec.make_counts()),
      view_(tables_.selection().view()),
      crypto_(tables_.mb_keys()) {}

void OutboundStage::take_over(function::CpuStage& predecessor) noexcept {
  answers_ = static_cast<OutboundStage&>(predecessor).answers_;
}

void OutboundStage::begin_batch() noexcept {
  now_ = std::time(nullptr);
  taken_back_count_ = next_taken_back_ = 0;
  ipsec_.look_after_sas(now_);
}

void OutboundStage::process(std::span<PacketView> packets) noexcept {
  while (!packets.empty()) {
    const std::size_t count = std::min(packets.size(), kBurst);
    process_burst(packets.first(count));
    packets = packets.subspan(count);
  }
}

void OutboundStage::process_burst(std::span<PacketView> packets) noexcept {
  job_count_ = pending_count_ = 0;
  for (std::size_t first = 0; first < packets.size(); first += kGroup)
    select(packets, first, std::min(kGroup, packets.size() - first));
  number(packets);
  seal(packets);
}

void OutboundStage::decide(std::span<const PacketView> packets, std::span<std::byte* const> decisions) noexcept {
  taken_back_count_ = next_taken_back_ = 0;
  std::array<PacketView, kBurst> burst;
  for (std::size_t first = 0; first < packets.size(); first += kBurst) {
    const std::size_t count = std::min(kBurst, packets.size() - first);
    std::ranges::copy(packets.subspan(first, count), burst.begin());
    decide_burst(std::span(burst).first(count), decisions.subspan(first, count));
  }
}

/// Packets keep their verdicts, which are for the device to write.
void OutboundStage::decide_burst(std::span<PacketView> packets, std::span<std::byte* const> decisions) noexcept {
  decisions_ = decisions;
  pending_count_ = 0;
  // The packets came a batch ago, so their headers have left the near caches.
  for (const PacketView packet : packets.first(std::min(kGroup, packets.size()))) prefetch_headers(packet);
  for (std::size_t first = 0; first < packets.size(); first += kGroup) {
    const std::size_t last = std::min(first + kGroup, packets.size());
    for (std::size_t i = first; i < last; ++i) {
      if (i + kGroup < packets.size()) prefetch_headers(packets[i + kGroup]);
      if (!parse_plain(packets[i])) parse(packets[i]);
      write(Decision{.kind = Decision::Kind::passes}, decisions[i]);
    }
    select(packets, first, last - first);
  }
  number(packets);
  decisions_ = {};
  if (tables_.settings().others_have_lanes) sign(decisions, ipsec_.decision_key());
}

/// What was decided otherwise than by an SA takes no number, so it is decided anew.
void OutboundStage::take_back(std::span<const PacketView> packets,
                              std::span<const std::byte* const> decisions) noexcept {
  taken_back_count_ = next_taken_back_ = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Decision decision;
    std::memcpy(&decision, decisions[i], sizeof decision);
    if (decision.kind == Decision::Kind::protected_by_sa)
      taken_back_[taken_back_count_++] = {packets[i].packet, decision.sa, decision.sequence};
  }
}

/// Null: nothing is known of the packet. To be asked in packet order.
const OutboundStage::TakenBack* OutboundStage::taken_back(const PacketDescriptor* packet) noexcept {
  for (std::size_t i = next_taken_back_; i < taken_back_count_; ++i) {
    if (taken_back_[i].packet != packet) continue;
    next_taken_back_ = i + 1;
    return &taken_back_[i];
  }
  return nullptr;
}

/// A device has not protected the packet, or its result was not used, so the number is still the packet's.
void OutboundStage::lay_out_again(std::span<PacketView> packets, std::size_t packet, const TakenBack& known) noexcept {
  const Pending pending{static_cast<std::uint32_t>(packet),
                        known.sa,
                        {},
                        plan_encapsulation(packets[packet], view_.sas[known.sa], ipsec_.traits().growth)};
  if (pending.plan.reason == Reason::none) return lay_out(packets[packet], pending, known.sequence);
  packets[packet].packet->verdict = Verdict::drop(pending.plan.reason);
}

/// Selects the SAs of a group of packets, and plans what will be numbered.
void OutboundStage::select(std::span<PacketView> packets, std::size_t first, std::size_t count) noexcept {
  Group group;
  for (std::size_t i = first; i < first + count; ++i) {
    if (next_taken_back_ != taken_back_count_) {
      if (const TakenBack* const known = taken_back(packets[i].packet)) {
        lay_out_again(packets, i, *known);
        continue;
      }
    }
    const PacketLayout& layout = packets[i].layout();
    const Reason reason = standing_of(layout);
    if (reason == Reason::not_ip && !drops_not_ip(layout, tables_.settings().drops_unselected)) continue;
    if (reason != Reason::none) {
      refuse(packets, i, Verdict::drop(reason));
      continue;
    }
    Group::Member& member = group.members[group.count++];
    member.packet = static_cast<std::uint32_t>(i);
    member.entry = nullptr;
    if (!SelectionMemo::covers(layout)) continue;
    member.flow = SelectionMemo::flow_of(packets[i]);
    member.entry = &memo_.entry_of(member.flow);
    prefetch(member.entry);
  }
  find_policies(packets, group);
  fetch_sas(group);
  // Of the last SA that was looked at: packets in a row mostly have the same, and other workers write to its state.
  std::uint32_t sa_of_status = kNoSa;
  SaStatus status = SaStatus::valid;
  const auto status_of = [&](std::uint32_t sa) {
    if (sa != std::exchange(sa_of_status, sa)) status = tables_.status(sa);
    return status;
  };
  for (const Group::Member& member : std::span(group.members).first(group.count)) {
    if (member.policy == kNoPolicy) {
      if (tables_.settings().drops_unselected) refuse(packets, member.packet, Verdict::drop(Reason::no_policy));
      continue;
    }
    Selected selected{Reason::none, member.sa};
    if (member.sa == kNoSa || status_of(member.sa) >= SaStatus::dead) {
      classify::Key key;
      make_selector_key(packets[member.packet], key);
      selected = select_outbound(view_, member.policy, key, status_of);
    }
    if (selected.reason != Reason::none) {
      refuse(packets, member.packet, Verdict::drop(selected.reason));
    } else if (selected.sa != kNoSa && plan(pending_[pending_count_], packets, member.packet, selected.sa)) {
      ++pending_count_;
    }
  }
}

/// Finds policies, and SAs where only one is possible: by the memo or, all together, by the engine.
void OutboundStage::find_policies(std::span<const PacketView> packets, Group& group) noexcept {
  std::array<Group::Member*, kGroup> unknown;
  std::array<std::uint32_t, kGroup> policies;
  std::size_t count = 0;
  for (Group::Member& member : std::span(group.members).first(group.count)) {
    if (member.entry != nullptr && member.entry->flow == member.flow) {
      member.policy = member.entry->policy;
      member.sa = member.entry->sa;
      continue;
    }
    make_selector_key(packets[member.packet], keys_[count]);
    unknown[count++] = &member;
  }
  if (count == 0) return;
  tables_.selection().find_policies(std::span(keys_).first(count), policies.data());
  for (std::size_t k = 0; k < count; ++k) {
    Group::Member& member = *unknown[k];
    member.policy = policies[k];
    member.sa = only_sa(view_, policies[k], keys_[k]);
    if (member.entry != nullptr) *member.entry = {member.flow, member.policy, member.sa};
  }
}

/// Fetches what will be read of the SAs. The fetches overlap.
void OutboundStage::fetch_sas(const Group& group) const noexcept {
  std::uint32_t last = kNoSa;
  for (const Group::Member& member : std::span(group.members).first(group.count)) {
    if (member.sa == std::exchange(last, member.sa) || member.sa == kNoSa) continue;
    prefetch_object(view_.sas[member.sa]);
    prefetch(&carried_[member.sa]);
    tables_.states()[member.sa]->prefetch();
  }
}

/// Where decisions are wanted, the packet keeps its verdict.
void OutboundStage::refuse(std::span<PacketView> packets, std::size_t packet, Verdict verdict) noexcept {
  if (decisions_.empty()) {
    packets[packet].packet->verdict = verdict;
  } else if (verdict.kind == VerdictKind::drop) {
    write(Decision{.reason = verdict.value, .kind = Decision::Kind::dropped}, decisions_[packet]);
  } else {
    write(Decision{}, decisions_[packet]);
  }
}

/// False if the packet cannot use this SA and has been refused.
bool OutboundStage::plan(Pending& pending, std::span<PacketView> packets, std::size_t packet,
                         std::uint32_t sa) noexcept {
  const SaView& view = view_.sas[sa];
  const Settings& settings = tables_.settings();
  // Constructed in place: copying it right after it was written would stall on store forwarding.
  auto& plan = (new (&pending) Pending{static_cast<std::uint32_t>(packet),
                                       sa,
                                       {},
                                       plan_encapsulation(packets[packet], view, ipsec_.traits().growth)})
                   ->plan;
  if (plan.reason == Reason::none && exceeds_mtu(packets[packet], view, plan, settings.link())) {
    plan.reason = Reason::too_big;
    if (settings.answers && !decisions_.empty()) {  // answered when the packet comes back
      refuse(packets, packet, Verdict::punt());
      return false;
    }
    if (settings.answers && answers_.take(now_)) answer_too_big(packets[packet], view, settings.mtu, *emitter_);
  }
  if (plan.reason != Reason::none) refuse(packets, packet, Verdict::drop(plan.reason));
  return plan.reason == Reason::none;
}

/// Numbers the selected packets of the burst, in packet order, and lays them out, or writes what was decided.
void OutboundStage::number(std::span<PacketView> packets) noexcept {
  numbers_.clear();
  for (std::size_t p = 0; p < pending_count_; ++p) pending_[p].lot = numbers_.announce(pending_[p].sa);
  Carrier carrier(now_, carried_);
  for (std::size_t p = 0; p < pending_count_;) {
    const Pending& pending = pending_[p];
    if (pending.sa == kNoSa) {
      ++p;
      continue;
    }
    PacketView& packet = packets[pending.packet];
    SaState& state = *tables_.states()[pending.sa];
    std::uint64_t number = 0;
    const bool numbered = numbers_.next(pending.lot, state, number);
    if (!numbered || !carrier.carry(state, pending.sa, packet.layout().ip_bytes())) {
      ipsec_.limit_reached();
      select_again(packets, p, numbered ? Reason::lifetime : state.shortage());
      continue;
    }
    if (decisions_.empty()) {
      lay_out(packet, pending, number);
    } else {
      write({.sequence = number, .sa = pending.sa, .kind = Decision::Kind::protected_by_sa},
            decisions_[pending.packet]);
    }
    ++p;
  }
}

void OutboundStage::lay_out(PacketView& packet, const Pending& pending, std::uint64_t sequence) noexcept {
  new (&work_[job_count_])
      MbCrypto::Work{encapsulate(packet, view_.sas[pending.sa], pending.sa, pending.plan, sequence), packet.frame};
  // Relative to the frame, because the frame may be outside its batch and start before the batch's base.
  work_[job_count_].job.esp -= packet.packet->offset;
  of_job_[job_count_++] = pending.packet;
}

/// The SA of pending packet `first` has ended since it was selected. Selects another one for it and for all later
/// packets of that SA, if their policies have one. `ended` is the reason. The packets are still unmodified.
void OutboundStage::select_again(std::span<PacketView> packets, std::size_t first, Reason ended) noexcept {
  const std::uint32_t before = pending_[first].sa;
  for (std::size_t p = first; p < pending_count_; ++p) {
    if (pending_[p].sa != before) continue;
    const std::size_t packet = pending_[p].packet;
    pending_[p].sa = kNoSa;
    classify::Key key;
    make_selector_key(packets[packet], key);
    std::uint32_t policy = kNoPolicy;
    tables_.selection().find_policies({&key, 1}, &policy);
    const Selected selected =
        select_outbound(view_, policy, key, [this](std::uint32_t sa) { return tables_.status(sa); });
    if (selected.reason != Reason::none || selected.sa == before) {
      refuse(packets, packet, Verdict::drop(selected.reason != Reason::none ? selected.reason : ended));
    } else if (selected.sa != kNoSa) {
      if (plan(pending_[p], packets, packet, selected.sa)) {
        pending_[p].lot = numbers_.announce(selected.sa);
      } else {
        pending_[p].sa = kNoSa;
      }
    }
  }
}

void OutboundStage::seal(std::span<PacketView> packets) noexcept {
  const auto work = std::span(work_).first(job_count_);
  crypto_.seal(work);
  const Settings& settings = tables_.settings();
  for (std::size_t j = 0; j < job_count_; ++j) {
    const PacketView packet = packets[of_job_[j]];
    if (needs_udp_checksum(view_.sas[work[j].job.sa])) {
      CryptoJob job = work[j].job;
      job.esp += packet.packet->offset;
      write_udp_checksum(packet, job);
    }
    // Encapsulation does not change the link header's length.
    if (settings.cuts() && packet.length() - packet.layout().network_offset > settings.mtu) {
      parse(packet);
      if (!cut_into_fragments(packet, settings.mtu, *emitter_)) packet.packet->verdict = Verdict::drop(Reason::no_room);
    }
  }
}

std::string OutboundStage::explain(PacketView packet) const {
  const Reason standing = standing_of(packet.layout());
  if (standing == Reason::not_ip) {
    return drops_not_ip(packet.layout(), tables_.settings().drops_unselected) ? "not IP" : "not IP: passes";
  }
  if (standing != Reason::none) return fmt::format("{} header", kReasons[static_cast<std::size_t>(standing)]);
  classify::Key key;
  make_selector_key(packet, key);
  std::uint32_t policy = kNoPolicy;
  tables_.selection().find_policies({&key, 1}, &policy);
  if (policy == kNoPolicy) return tables_.settings().drops_unselected ? "no policy" : "no policy: passes";
  const std::string of_line = fmt::format("policy in line {}", tables_.selection().line(policy));
  const Selected selected =
      select_outbound(view_, policy, key, [this](std::uint32_t sa) { return tables_.status(sa); });
  if (selected.reason != Reason::none)
    return fmt::format("{}: {}", of_line, kReasons[static_cast<std::size_t>(selected.reason)]);
  if (selected.sa == kNoSa) return of_line + ": passes";
  return fmt::format("{}: protected by SA {}", of_line, describe(tables_.sas()[selected.sa]));
}

}  // namespace penstock::ipsec
