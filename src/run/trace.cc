// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/trace.h"

#include <fmt/format.h>

#include "base/error.h"
#include "packet/field_text.h"
#include "run/counters.h"
#include "run/packet_path.h"

namespace penstock::run {

Trace::Way Trace::begin(PacketView packet) {
  const std::lock_guard lock(mutex_);
  if (!wants_more()) return Way(nullptr);
  left_.fetch_sub(1);
  Way way(this);
  const PacketDescriptor& p = *packet.packet;
  way.text_ = fmt::format("packet {}  {}.{:09}  from {}  {} bytes  {}\n", ++number_, p.timestamp_ns / 1'000'000'000,
                          p.timestamp_ns % 1'000'000'000, port_name(*chain_, p.in_port), p.length, format_packet(packet));
  return way;
}

void Trace::Way::before(const function::NfTraits& function, const function::CpuStage& stage, std::string_view name,
                        PacketView packet) {
  if (trace_ == nullptr) return;
  function_ = &function;
  stage_ = &stage;
  bytes_.assign(packet.frame, packet.frame + packet.length());
  descriptor_ = *packet.packet;
  const FieldSet reads = function.cpu.reads - FieldSet{Field::payload};
  text_ += fmt::format("  {}\n    read{}\n", name, to_string(values_of(reads, packet)));
}

void Trace::Way::after(PacketView packet) {
  if (trace_ == nullptr) return;
  const PacketView was{bytes_.data(), &descriptor_};
  const std::string changes = to_string(changes_between(was, packet));
  if (!changes.empty()) text_ += fmt::format("    changed {}\n", changes);
  const std::string decision = to_string(decision_of(*trace_->chain_, *function_, packet.packet->verdict));
  std::string why = stage_->explain(was);
  if (decision.ends_with(" " + why)) why.clear();  // the drop reason says everything
  text_ += fmt::format("    {}{}{}\n", decision, why.empty() ? "" : " — ", printable(why));
}

void Trace::Way::take(const plan::Arm* arm) {
  if (trace_ == nullptr) return;
  const char* const empty = arm != nullptr && arm->first == arm->last ? ": straight on" : "";
  text_ += arm == nullptr ? "  fork — no arm: straight on\n" : fmt::format("  fork — {}{}\n", arm->text, empty);
}

void Trace::Way::end(PacketView packet, bool reached_the_end) {
  if (trace_ == nullptr) return;
  const Verdict& verdict = packet.packet->verdict;
  if (reached_the_end && !verdict.alive()) {
    text_ += fmt::format("  drop: {}\n", kChainDropNames[verdict.value]);
  } else if (reached_the_end) {
    text_ += verdict.value == kNoPort ? "  consumed\n" : fmt::format("  out on {}\n", port_name(*trace_->chain_, verdict.value));
  }
  const std::lock_guard lock(trace_->mutex_);
  std::fwrite(text_.data(), 1, text_.size(), trace_->out_);
}

}  // namespace penstock::run
