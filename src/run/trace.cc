// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/nanoseconds.h"
#include "packet/field_text.h"
#include "packet/parse_core.h"
#include "run/counters.h"

namespace penstock::run {

namespace {

std::string step_text(const TracedPacket::Step& step) {
  const bool on_device = function::is_device(step.processor);
  std::string text =
      fmt::format("  {}{}\n    read{}\n", step.function,
                  on_device ? fmt::format(" ({})", function::name(step.processor)) : "", to_string(step.read));
  if (!step.changed.empty()) text += fmt::format("    changed {}\n", to_string(step.changed));
  const std::string decision = to_string(step.decision);
  const bool says_more = !step.why.empty() && !decision.ends_with(" " + step.why);  // than the drop reason
  return text + fmt::format("    {}{}{}\n", decision, says_more ? " — " : "", says_more ? printable(step.why) : "");
}

std::string outcome_text(const Decision& outcome) {
  if (!outcome.reason.empty()) return fmt::format("  drop: {}\n", outcome.reason);
  return outcome.port.empty() ? "  consumed\n" : fmt::format("  out on {}\n", outcome.port);
}

}  // namespace

std::string to_string(const TracedPacket& packet) {
  std::string text =
      fmt::format("packet {}  {}.{:09}  from {}  {} bytes  {}\n", packet.number, packet.timestamp_ns / kNsPerSecond,
                  packet.timestamp_ns % kNsPerSecond, packet.from, packet.length, packet.packet);
  for (const TracedPacket::Step& step : packet.steps) {
    text += step.function.empty() ? fmt::format("  fork — {}\n", step.arm) : step_text(step);
  }
  if (packet.outcome) text += outcome_text(*packet.outcome);
  return text;
}

std::optional<TracedWay> TracedWay::begin(const Chain& chain, const std::shared_ptr<Trace::Session>& trace,
                                          PacketView packet) {
  const auto number = trace->choose(packet);
  if (!number) return std::nullopt;
  TracedWay way(chain, trace);
  PacketDescriptor parsed = *packet.packet;
  const PacketView view{packet.frame, &parsed};
  parse(view);
  way.path_.number = *number;
  way.path_.timestamp_ns = parsed.timestamp_ns;
  way.path_.from = port_name(chain, parsed.in_port);
  way.path_.length = parsed.length;
  way.path_.packet = format_packet(view);
  return way;
}

void TracedWay::before(const function::NfTraits& traits, const function::CpuStage& stage, std::string_view name,
                       PacketView packet) {
  traits_ = &traits;
  stage_ = &stage;
  name_ = name;
  bytes_.assign(packet.frame, packet.frame + packet.length());
  descriptor_ = *packet.packet;
}

void TracedWay::after(PacketView packet, bool is_held) {
  add_step(*traits_, *stage_, name_, function::Processor::cpu, traits_->cpu.reads, {bytes_.data(), &descriptor_},
           packet);
  if (is_held) path_.steps.back().decision = {.verdict = "hold"};
}

void TracedWay::add_device_step(const function::NfTraits& traits, const function::CpuStage& twin, std::string_view name,
                                function::Processor processor, PacketView before, PacketView after) {
  const Access* const access = traits.access_on(processor);
  add_step(traits, twin, name, processor, access != nullptr ? access->reads : FieldSet(), before, after);
}

void TracedWay::add_step(const function::NfTraits& traits, const function::CpuStage& stage, std::string_view name,
                         function::Processor processor, FieldSet reads, PacketView before, PacketView after) {
  TracedPacket::Step step;
  step.function = name;
  step.processor = processor;
  step.read = values_of(*chain_, reads - FieldSet{Field::payload}, before);
  step.changed = changes_between(before, after);
  step.decision = decision_of(*chain_, traits, after.packet->verdict);
  step.why = stage.explain(before);
  path_.steps.push_back(std::move(step));
}

void TracedWay::change_decision(const function::NfTraits& traits, std::string_view name, Verdict verdict) {
  const auto decided = std::ranges::find(path_.steps, name, &TracedPacket::Step::function);
  if (decided == path_.steps.end()) return;
  decided->decision = decision_of(*chain_, traits, verdict);
  path_.steps.erase(decided + 1, path_.steps.end());
}

void TracedWay::take(const plan::Arm* arm) {
  const char* const empty = arm != nullptr && arm->first == arm->last ? ": straight on" : "";
  TracedPacket::Step step;
  step.arm = arm == nullptr ? "no arm: straight on" : arm->text + empty;
  path_.steps.push_back(std::move(step));
}

void TracedWay::end(PacketView packet, bool reached_the_end) {
  const Verdict verdict = packet.packet->verdict;
  if (reached_the_end && !verdict.alive()) {
    path_.outcome = Decision{"drop", std::string(kChainDropNames[verdict.value])};
  } else if (reached_the_end) {
    path_.outcome =
        verdict.value == kNoPort ? Decision{"consume"} : Decision{"forward", "", port_name(*chain_, verdict.value)};
  }
  trace_->give(path_);
}

}  // namespace penstock::run
