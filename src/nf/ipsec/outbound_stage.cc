// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "classify/classifier.h"
#include "nf/ipsec/esp/mtu.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/selection/selection_core.h"
#include "nf/ipsec/stages.h"
#include "packet/parse_core.h"

namespace penstock::ipsec {

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
  job_count_ = 0;
  // In groups, so that what the lookups read stays in the first-level cache until the packets are laid out.
  for (std::size_t first = 0; first < packets.size(); first += kGroup) {
    pending_count_ = 0;
    select(packets, first, std::min(kGroup, packets.size() - first));
    lay_out(packets);
  }
  seal(packets);
}

void OutboundStage::decide(std::span<const PacketView> packets, std::span<std::byte* const> decisions) noexcept {
  taken_back_count_ = next_taken_back_ = 0;
  std::array<PacketView, kGroup> group;
  for (std::size_t first = 0; first < packets.size(); first += kGroup) {
    const std::size_t count = std::min(kGroup, packets.size() - first);
    std::ranges::copy(packets.subspan(first, count), group.begin());
    decide_group(std::span(group).first(count), decisions.subspan(first, count));
  }
}

/// Packets keep their verdicts, which are for the device to write.
void OutboundStage::decide_group(std::span<PacketView> packets, std::span<std::byte* const> decisions) noexcept {
  std::array<Decision, kGroup> decided;
  std::array<Verdict, kGroup> before;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    parse(packets[i]);
    before[i] = packets[i].packet->verdict;
    decided[i] = {.kind = Decision::Kind::passes};
  }
  decisions_ = std::span(decided).first(packets.size());
  pending_count_ = 0;
  select(packets, 0, packets.size());
  lay_out(packets);
  decisions_ = {};
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const Verdict verdict = std::exchange(packets[i].packet->verdict, before[i]);
    if (verdict.kind == VerdictKind::punt) decided[i] = {};
    if (verdict.kind == VerdictKind::drop) decided[i] = {.reason = verdict.value, .kind = Decision::Kind::dropped};
    std::memcpy(decisions[i], &decided[i], sizeof decided[i]);
  }
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
  const Pending pending{static_cast<std::uint32_t>(packet), known.sa,
                        plan_encapsulation(packets[packet], view_.sas[known.sa], ipsec_.traits().growth)};
  if (pending.plan.reason == Reason::none) return lay_out(packets[packet], pending, known.sequence);
  packets[packet].packet->verdict = Verdict::drop(pending.plan.reason);
}

/// Looks up the policies of a group of packets.
void OutboundStage::select(std::span<PacketView> packets, std::size_t first, std::size_t count) noexcept {
  std::array<std::uint32_t, kGroup> policies;
  std::array<std::uint32_t, kGroup> of_key;
  std::size_t selectable = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    if (const TakenBack* const known = taken_back(packets[i].packet)) {
      lay_out_again(packets, i, *known);
      continue;
    }
    const Reason reason = standing_of(packets[i].layout());
    if (reason == Reason::not_ip && !drops_not_ip(packets[i].layout(), tables_.settings().drops_unselected)) continue;
    if (reason != Reason::none) {
      packets[i].packet->verdict = Verdict::drop(reason);
      continue;
    }
    make_selector_key(packets[i], keys_[selectable]);
    of_key[selectable++] = static_cast<std::uint32_t>(i);
  }
  tables_.selection().find_policies(std::span(keys_).first(selectable), policies.data());
  for (std::size_t k = 0; k < selectable; ++k) {
    Verdict& verdict = packets[of_key[k]].packet->verdict;
    if (policies[k] == kNoPolicy) {
      if (tables_.settings().drops_unselected) verdict = Verdict::drop(Reason::no_policy);
      continue;
    }
    const Selected selected =
        select_outbound(view_, policies[k], keys_[k], [this](std::uint32_t sa) { return tables_.status(sa); });
    if (selected.reason != Reason::none) {
      verdict = Verdict::drop(selected.reason);
    } else if (selected.sa != kNoSa && plan(pending_[pending_count_], packets, of_key[k], selected.sa)) {
      ++pending_count_;
    }
  }
}

/// False if the packet cannot use this SA and has been dropped.
bool OutboundStage::plan(Pending& pending, std::span<PacketView> packets, std::size_t packet,
                         std::uint32_t sa) noexcept {
  const SaView& view = view_.sas[sa];
  const Settings& settings = tables_.settings();
  // Constructed in place: copying it right after it was written would stall on store forwarding.
  auto& plan = (new (&pending) Pending{static_cast<std::uint32_t>(packet), sa,
                                       plan_encapsulation(packets[packet], view, ipsec_.traits().growth)})
                   ->plan;
  if (plan.reason == Reason::none && exceeds_mtu(packets[packet], view, plan, settings.link())) {
    plan.reason = Reason::too_big;
    if (settings.answers && !decisions_.empty()) {  // answered when the packet comes back
      packets[packet].packet->verdict = Verdict::punt();
      return false;
    }
    if (settings.answers && answers_.take(now_)) answer_too_big(packets[packet], view, settings.mtu, *emitter_);
  }
  if (plan.reason != Reason::none) packets[packet].packet->verdict = Verdict::drop(plan.reason);
  return plan.reason == Reason::none;
}

/// Numbers and encapsulates the selected packets, in packet order.
void OutboundStage::lay_out(std::span<PacketView> packets) noexcept {
  for (std::size_t first = 0; first < pending_count_;) {
    // Handles consecutive packets of the same SA together.
    const std::uint32_t sa = pending_[first].sa;
    std::size_t last = first + 1;
    while (last < pending_count_ && pending_[last].sa == sa) ++last;
    first = sa == kNoSa ? last : lay_out_run(packets, first, last);
  }
}

/// Packets of one SA. Returns where to continue: before `last` if the SA has ended and SAs were selected again.
std::size_t OutboundStage::lay_out_run(std::span<PacketView> packets, std::size_t first, std::size_t last) noexcept {
  const std::uint32_t sa = pending_[first].sa;
  SaState& state = *tables_.states()[sa];
  Carrier carrier(now_, carried_);
  const SequenceRange numbers = state.take(static_cast<std::uint32_t>(last - first));
  for (std::size_t p = first; p < last; ++p) {
    PacketView& packet = packets[pending_[p].packet];
    const bool numbered = p - first < numbers.count;
    if (!numbered || !carrier.carry(state, sa, packet.layout().ip_bytes())) {
      ipsec_.limit_reached();
      select_again(packets, p, last, numbered ? Reason::lifetime : state.shortage());
      return p;
    }
    const std::uint64_t number = numbers.first + (p - first);
    if (decisions_.empty()) {
      lay_out(packet, pending_[p], number);
    } else {
      decisions_[pending_[p].packet] = {.sequence = number, .sa = sa, .kind = Decision::Kind::protected_by_sa};
    }
  }
  return last;
}

void OutboundStage::lay_out(PacketView& packet, const Pending& pending, std::uint64_t sequence) noexcept {
  new (&work_[job_count_])
      MbCrypto::Work{encapsulate(packet, view_.sas[pending.sa], pending.sa, pending.plan, sequence), packet.frame};
  // Relative to the frame, because the frame may be outside its batch and start before the batch's base.
  work_[job_count_].job.esp -= packet.packet->offset;
  of_job_[job_count_++] = pending.packet;
}

/// Selects another SA for packets whose SA has ended since it was selected, if their policy has one. `ended` is the
/// reason. The packets are still unmodified.
void OutboundStage::select_again(std::span<PacketView> packets, std::size_t first, std::size_t last,
                                 Reason ended) noexcept {
  for (std::size_t p = first; p < last; ++p) {
    const std::size_t packet = pending_[p].packet;
    const std::uint32_t before = std::exchange(pending_[p].sa, kNoSa);
    classify::Key key;
    make_selector_key(packets[packet], key);
    std::uint32_t policy = kNoPolicy;
    tables_.selection().find_policies({&key, 1}, &policy);
    const Selected selected =
        select_outbound(view_, policy, key, [this](std::uint32_t sa) { return tables_.status(sa); });
    if (selected.reason != Reason::none || selected.sa == before) {
      packets[packet].packet->verdict = Verdict::drop(selected.reason != Reason::none ? selected.reason : ended);
    } else if (selected.sa != kNoSa && !plan(pending_[p], packets, packet, selected.sa)) {
      pending_[p].sa = kNoSa;
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
