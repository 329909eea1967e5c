// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/transfer_plan.h"

#include <utility>

#include "packet/field_range.h"
#include "packet/ip.h"
#include "packet/layout.h"

namespace penstock::plan {

namespace {

std::vector<PlannedStage> stages_of(std::span<const function::NfTraits> chain, function::Processor processor) {
  std::vector<PlannedStage> stages;
  for (std::size_t f = 0; f < chain.size(); ++f) {
    const function::NfTraits& nf = chain[f];
    const std::string name(nf.name);
    if (processor == function::Processor::gpu && nf.gpu) {
      stages.push_back({name, function::Processor::gpu, f, false, *nf.gpu, {}, {}});
      if (nf.finish) stages.push_back({name + " (finish)", function::Processor::cpu, f, true, *nf.finish, {}, {}});
    } else {
      stages.push_back({name, function::Processor::cpu, f, false, nf.cpu, {}, {}});
    }
  }
  return stages;
}

/// What comes back with the results of a segment (ring/lane.h).
constexpr FieldSet kWithResults{Field::verdict, Field::frame_shape, Field::wire_length};

/// What of a stage's access has fields cross.
Access crossing_access(const PlannedStage& stage) {
  if (!stage.finish) return stage.access;
  const FieldSet writes = stage.access.writes - FieldSet{Field::verdict};
  return {stage.access.reads - (kWithResults - writes), writes};
}

/// The fields that the stages from `first` on, on `processor`, read before anyone writes them there or on the other
/// side: what a crossing before `first` can bring along for all of them.
FieldSet wanted(std::span<const PlannedStage> stages, function::Processor processor) {
  FieldSet wanted;
  FieldSet settled;  // changed on the way: what crosses now would be stale by then
  for (const PlannedStage& stage : stages) {
    const Access access = crossing_access(stage);
    if (stage.processor == processor) wanted |= access.reads - settled;
    settled |= access.writes;
  }
  return wanted;
}

}  // namespace

bool PlannedStage::divides() const {
  if (processor == function::Processor::gpu) return false;
  return !finish || !(to_host - kWithResults).empty() || !crossing_access(*this).writes.empty();
}

FieldSet TransferPlan::to_device() const {
  FieldSet fields;
  for (const PlannedStage& stage : stages) fields |= stage.to_device;
  return fields;
}

FieldSet TransferPlan::to_host() const {
  FieldSet fields = to_host_at_end;
  for (const PlannedStage& stage : stages) fields |= stage.to_host;
  return fields;
}

TransferPlan plan_transfers(std::span<const function::NfTraits> chain, function::Processor processor) {
  TransferPlan plan{stages_of(chain, processor), {}};
  FieldSet on_host = FieldSet::all();  // up to date there
  FieldSet on_device;
  FieldSet dropped_since;  // the verdict, once a finish stage has had a say: stale for what begins anew
  const std::span<PlannedStage> stages(plan.stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    PlannedStage& stage = stages[i];
    const bool on_gpu = stage.processor == function::Processor::gpu;
    FieldSet& here = on_gpu ? on_device : on_host;
    FieldSet& there = on_gpu ? on_host : on_device;
    const Access access = crossing_access(stage);
    if (stage.finish) {
      stage.to_host = (stage.access.reads - access.reads - on_host) & on_device;
      on_host |= stage.to_host;
    }
    if (!(access.reads - here).empty()) {
      if (on_gpu) on_device -= std::exchange(dropped_since, {});
      // Something must cross now, so all that this side will read crosses with it.
      const FieldSet crossing = (wanted(stages.subspan(i), stage.processor) - here) & there;
      (on_gpu ? stage.to_device : stage.to_host) |= crossing;
      here |= crossing;
    }
    here |= access.writes;
    there -= access.writes;
    if (stage.finish) dropped_since |= stage.access.writes & FieldSet{Field::verdict};
    if (stage.divides()) on_device -= std::exchange(dropped_since, {});
  }
  plan.to_host_at_end = FieldSet::all() - on_host;
  return plan;
}

std::uint32_t bytes_of(FieldSet fields, std::uint32_t frame_length) {
  PacketLayout layout;
  layout.network = NetworkLayer::ipv4;
  layout.transport = ip_protocol::kTcp;
  layout.network_offset = 14;
  layout.transport_offset = 34;
  layout.payload_offset = 54;
  layout.end = frame_length;
  layout.flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
  std::uint32_t bytes = 0;
  for (unsigned f = 0; f < kByteFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (fields.has(field)) bytes += field_range(field, layout, LinkType::ethernet, frame_length).length;
  }
  // Metadata, as the ring lays it out: offset and length of the frame, the rest by their own widths.
  const struct {
    Field field;
    std::uint32_t bytes;
  } metadata[] = {{Field::frame_shape, 8}, {Field::wire_length, 4}, {Field::timestamp, 8}, {Field::in_port, 2},
                  {Field::verdict, 4},     {Field::mark, 4},        {Field::flow_hash, 4}};
  for (const auto& m : metadata) {
    if (fields.has(m.field)) bytes += m.bytes;
  }
  return bytes;
}

}  // namespace penstock::plan
