// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "classify/classifier.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/stages.h"
#include "packet/parse_core.h"

namespace penstock::ipsec {

InboundStage::InboundStage(Ipsec& ipsec)
    : ipsec_(ipsec),
      tables_(ipsec.tables()),
      carried_(ipsec.make_counts()),
      crypto_(tables_.mb_keys()),
      fragments_(ipsec.make_fragments()) {}

InboundStage::~InboundStage() {
  if (!is_taken_over_) fragments_->publish();  // else the worker may be using them
  ipsec_.look_after_sas_at_once();
}

void InboundStage::take_over(function::CpuStage& predecessor) noexcept {
  auto& before = static_cast<InboundStage&>(predecessor);
  unused_ = std::exchange(fragments_, before.fragments_);
  fragments_->wait.attach_again();
  last_packet_ns_ = before.last_packet_ns_;
  before.is_taken_over_ = true;
}

void InboundStage::begin_batch() noexcept {
  now_ = std::time(nullptr);
  ipsec_.look_after_sas(now_);
  fragments_->wait.expire(last_packet_ns_);
  fragments_->publish();
}

void InboundStage::process(std::span<PacketView> packets) noexcept {
  while (!packets.empty()) {
    const std::size_t count = std::min(packets.size(), kBurst);
    process_burst(packets.first(count));
    packets = packets.subspan(count);
  }
}

void InboundStage::process_burst(std::span<PacketView> packets) noexcept {
  pending_count_ = 0;
  std::fill_n(sas_.begin(), packets.size(), kNoSa);
  for (std::size_t i = 0; i < packets.size(); ++i) find(packets[i], static_cast<std::uint32_t>(i));
  open(packets);
  check_policies(packets);
  last_packet_ns_ = std::max(last_packet_ns_, packets.back().packet->timestamp_ns);
}

Arrival look_at(PacketView packet, const Tables& tables) noexcept {
  return find_arrival(packet, tables.inbound().view(), tables.inbound().ports(), tables.selection().view().sas,
                      [&tables](std::uint32_t sa) {
                        const ReplayWindow& window = tables.states()[sa]->window;
                        return Received{window.top(), window.packets()};
                      });
}

void InboundStage::find(PacketView& packet, std::uint32_t index) noexcept {
  // Constructed in place: copying it right after it was written would stall on store forwarding.
  Pending& pending = *new (&pending_[pending_count_]) Pending{index, look_at(packet, tables_)};
  if (pending.arrival.is_fragment()) {
    if (!reassemble(packet, pending.arrival.esp.udp)) return;
    pending.arrival = look_at(packet, tables_);
    if (pending.arrival.is_fragment()) {  // a fragment inside a reassembled datagram
      packet.packet->verdict = Verdict::drop(Reason::fragment);
      return;
    }
  }
  const Opening& opening = pending.arrival.opening;
  if (opening.reason != Reason::none) {
    packet.packet->verdict = Verdict::drop(opening.reason);
  } else if (opening.job.sa != kNoSa) {
    ++pending_count_;
  }
}

/// Returns whether the fragment completed its datagram, which then replaces it. Otherwise its verdict is final, except
/// for policies.
bool InboundStage::reassemble(PacketView& packet, bool udp) noexcept {
  using Kind = FragmentWait::Outcome::Kind;
  const FragmentWait::Outcome outcome = fragments_->wait.take(packet, udp, tables_.inbound().ports());
  Verdict& verdict = packet.packet->verdict;
  if (outcome.kind == Kind::waits) verdict = Verdict::consume();
  if (outcome.kind == Kind::dropped) verdict = Verdict::drop(outcome.reason);
  if (outcome.kind != Kind::completes) return false;
  const std::uint8_t* const fragment = packet.frame;
  const std::size_t link_bytes = packet.layout().network_offset;
  if (!emitter_->replace_frame(packet, link_bytes + outcome.datagram.size())) {
    verdict = Verdict::drop(Reason::no_room);
    return false;
  }
  std::memcpy(packet.frame, fragment, link_bytes);
  std::ranges::copy(outcome.datagram, packet.frame + link_bytes);
  parse(packet);
  return true;
}

/// In packet order, as the replay window requires.
void InboundStage::open(std::span<PacketView> packets) noexcept {
  std::array<bool, kBurst> authentic;
  // Packets that the replay window will refuse anyway need not be opened.
  std::size_t worth = 0;
  for (std::size_t p = 0; p < pending_count_; ++p) {
    const PacketView packet = packets[pending_[p].packet];
    const CryptoJob& job = pending_[p].arrival.opening.job;
    SaState& state = *tables_.states()[job.sa];
    const Reason reason = state.window.check(job.sequence);
    if (reason != Reason::none) {
      state.count_replayed();
      packet.packet->verdict = Verdict::drop(reason);
      continue;
    }
    work_[worth] = {job, packet.frame - packet.packet->offset};
    if (worth != p) pending_[worth] = pending_[p];
    ++worth;
  }
  const auto work = std::span(work_).first(worth);
  crypto_.open(work, std::span(authentic).first(worth));
  Carrier carrier(now_, carried_);
  for (std::size_t p = 0; p < worth; ++p) {
    PacketView& packet = packets[pending_[p].packet];
    const CryptoJob& job = work[p].job;
    SaState& state = *tables_.states()[job.sa];
    Reason reason = carrier.admit(state, job.sa, job.sequence, authentic[p], packet.layout().ip_bytes());
    if (reason == Reason::none)
      reason = decapsulate(packet, tables_.selection().view().sas[job.sa], pending_[p].arrival.esp, job);
    if (reason != Reason::none) {
      packet.packet->verdict = Verdict::drop(reason);
      continue;
    }
    sas_[pending_[p].packet] = job.sa;
    parse(packet);
  }
}

/// Applies policies to decapsulated and clear-text packets.
void InboundStage::check_policies(std::span<PacketView> packets) noexcept {
  constexpr std::size_t kGroup = classify::Classifier::kGroup;
  std::array<std::uint32_t, kGroup> policies;
  std::array<std::uint32_t, kGroup> of_key;
  std::size_t count = 0;
  const auto check = [&] {
    if (tables_.has_policies()) {
      tables_.selection().find_policies(std::span(keys_).first(count), policies.data());
    }
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t sa = sas_[of_key[k]];
      const Reason reason = tables_.has_policies()
                                ? check_inbound(tables_.selection().view(), policies[k], keys_[k], sa)
                                : check_selector(tables_.selection().view(), keys_[k], sa);
      if (reason != Reason::none) packets[of_key[k]].packet->verdict = Verdict::drop(reason);
    }
    count = 0;
  };
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const PacketView packet = packets[i];
    if (!packet.packet->verdict.alive()) continue;
    const Reason standing = standing_of(packet.layout());
    if (standing == Reason::not_ip) continue;
    if (standing != Reason::none) {
      packet.packet->verdict = Verdict::drop(standing);
      continue;
    }
    make_selector_key(packet, keys_[count]);
    of_key[count++] = static_cast<std::uint32_t>(i);
    if (count == kGroup) check();
  }
  check();
}

std::string InboundStage::explain(PacketView packet) const {
  const Arrival arrival = look_at(packet, tables_);
  if (arrival.is_fragment()) return "fragment";
  const auto& [reason, job] = arrival.opening;
  if (reason != Reason::none) return std::string(kReasons[static_cast<std::size_t>(reason)]);
  if (job.sa == kNoSa) return "in the clear";
  return fmt::format("SA {}, sequence number {}", describe(tables_.sas()[job.sa]), job.sequence);
}

}  // namespace penstock::ipsec
