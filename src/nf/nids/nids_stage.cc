// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/nids_stage.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/prefetch.h"

namespace penstock::nids {

namespace {

const PacketLiterals& literals_of(const std::byte* found) noexcept {
  return *reinterpret_cast<const PacketLiterals*>(found);
}

InspectorOptions with(InspectorOptions options, std::shared_ptr<const StateIds> ids, RuleCounts& counts) noexcept {
  options.profile = counts.profile;
  options.ids = std::move(ids);
  return options;
}

/// Of packets whose whole payload was searched, and has no literal. A test of the first bytes of PacketLiterals.
function::ClearFindings no_literals() noexcept {
  static_assert(offsetof(PacketLiterals, count) == 0 && offsetof(PacketLiterals, flags) == 2 &&
                std::endian::native == std::endian::little);
  constexpr std::uint64_t kCount = 0xffff;
  const auto flags = [](std::uint64_t them) { return them << 16; };
  return {kCount | flags(PacketLiterals::kScanned | PacketLiterals::kTooMany | PacketLiterals::kPayload),
          flags(PacketLiterals::kScanned | PacketLiterals::kPayload)};
}

/// How many packets ahead bytes are prefetched: packets that come back from a device, or arrived a batch ago, are no
/// longer in the cache.
constexpr std::size_t kFetchedAhead = 2;

}  // namespace

function::ClearFindings clear_findings(const Detection& detection, const NidsSettings& settings) noexcept {
  const bool literals_tell_all =
      !settings.tracker.keep_flows && !settings.tracker.refuse_undecodable && detection.literals_select_all();
  return literals_tell_all ? no_literals() : function::ClearFindings();
}

NidsStage::NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings,
                     std::shared_ptr<const StateIds> ids, std::shared_ptr<WorkerCounts> counts,
                     std::shared_ptr<RuleCounts> rule_counts, AtBoundary at_boundary)
    : counts_(std::move(counts)),
      rule_counts_(std::move(rule_counts)),
      seam_bytes_(settings.tracker.seam_bytes),
      clear_(clear_findings(detection, settings)),
      writes_flows_(settings.flow_records),
      at_boundary_(std::move(at_boundary)),
      writer_(settings.eve_log, settings.fast_log, settings.eve, detection.rules().rules, rule_counts_->alerts,
              counts_->alert_frames ? &*counts_->alert_frames : nullptr),
      inspector_(detection, hosts, writer_, with(settings.inspector, std::move(ids), *rule_counts_)) {}

NidsStage::~NidsStage() {
  if (!is_succeeded_) publish();  // else the worker may be using the counts
}

void NidsStage::attach(stack::Attachment& attachment) noexcept {
  attachment_ = &attachment;
  attachment.look_with(*this);
  attachment.set_seam(seam_bytes_);
  inspector_.use_slot(attachment.slot_index());
}

void NidsStage::take_over(function::CpuStage& predecessor) noexcept {
  auto& from = static_cast<NidsStage&>(predecessor);
  inspector_.take_over(from.inspector_);
  counts_ = from.counts_;
  writer_.collect_frames(counts_->alert_frames ? &*counts_->alert_frames : nullptr);
  from.is_succeeded_ = true;
}

void NidsStage::begin_batch() noexcept {
  publish();
  const auto now = report::EventLog::Clock::now();
  if (at_boundary_) at_boundary_(now);
  writer_.flush_if_due(now);
}

void NidsStage::observe(PacketView packet) noexcept {
  attachment_->observe(packet);
  if (inspector_.frame_dropped()) attachment_->refuse_frame();  // the datagram's other fragments are dropped here too
}

void NidsStage::inspect(std::span<const PacketView> packets, std::span<const std::byte* const> found,
                        std::span<const std::byte* const> states) noexcept {
  found_ = found;
  states_ = states;
  if (!attachment_->tracks()) {
    std::ranges::copy(found, found_for_later_.begin());
    found_ = std::span(found_for_later_).first(found.size());
    std::ranges::copy(states, states_for_later_.begin());
    states_ = std::span(states_for_later_).first(states.size());
    return;
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i % stack::Tracker::kMostPrefetched == 0) attachment_->prefetch(packets.subspan(i));
    if (i + kFetchedAhead < packets.size()) {
      const PacketView later = packets[i + kFetchedAhead];
      penstock::prefetch(later.frame, later.length());
      if (!found.empty()) penstock::prefetch(found[i + kFetchedAhead], sizeof(PacketLiterals));
    }
    const PacketView packet = packets[i];
    if (!found.empty() && clear_.has(found[i])) {
      ++counts_->counting.scanned_on_gpu;
      pass_over(packet);
      continue;
    }
    attachment_->track(packet, i);
    if (const std::optional<DropReason> reason = inspector_.frame_dropped()) {
      packet.packet->verdict = Verdict::drop(*reason);
      attachment_->refuse_frame();
    }
  }
}

void NidsStage::begin_frame(PacketView frame, std::size_t index) noexcept {
  if (index == kNone) return inspector_.begin_frame();
  WorkerCounts::Numbers& numbers = counts_->counting;
  numbers.frame_bytes += frame.length();
  numbers.last_ns = std::max(numbers.last_ns, frame.packet->timestamp_ns);
  if (index >= found_.size()) return inspector_.begin_frame();
  ++numbers.scanned_on_gpu;
  const PacketLiterals& literals = literals_of(found_[index]);
  const bool has_state = index < states_.size() && (literals.flags & PacketLiterals::kWithState) != 0;
  numbers.flow_states += has_state ? 1 : 0;
  const FlowState none;
  const FlowState& state = has_state ? *reinterpret_cast<const FlowState*>(states_[index]) : none;
  inspector_.begin_frame({literals.complete(), literals.list(), !states_.empty(), state});
}

std::size_t NidsStage::choose(std::span<const PacketView> packets, std::span<const std::byte* const> found,
                              std::span<std::uint8_t> chosen) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (clear_.has(found[i])) {
      pass_over(packets[i]);
    } else {
      chosen[count++] = static_cast<std::uint8_t>(i);
    }
  }
  counts_->counting.scanned_on_gpu += packets.size() - count;
  return count;
}

void NidsStage::pass_over(const function::PassedOver& packets) noexcept {
  WorkerCounts::Numbers& numbers = counts_->counting;
  numbers.clear += packets.packets;
  numbers.scanned_on_gpu += packets.packets;
  numbers.frame_bytes += packets.bytes;
}

void NidsFinishStage::finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept {
  twin_.inspect(packets, findings, std::exchange(states_, {}));
}

std::size_t NidsFinishStage::choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                                    std::span<std::uint8_t> chosen) noexcept {
  return twin_.choose(packets, findings, chosen);
}

bool NidsFinishStage::can_be(const std::byte* finding) const noexcept {
  const PacketLiterals& found = literals_of(finding);
  return found.count <= PacketLiterals::kMost &&
         std::ranges::all_of(found.list(), [this](std::uint32_t literal) { return literal < literals_; });
}

bool NidsFinishStage::can_be_state(const std::byte* state) const noexcept {
  FlowState given;
  std::memcpy(&given, state, sizeof given);
  return given.is_sound();
}

void NidsStage::publish() noexcept {
  WorkerCounts::Numbers& numbers = counts_->counting;
  if (attachment_ != nullptr) numbers.tracker = attachment_->counters();
  numbers.inspector = inspector_.counters();
  counts_->numbers.publish(numbers);
}

}  // namespace penstock::nids
