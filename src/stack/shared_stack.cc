// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/shared_stack.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "packet/flow_hash.h"
#include "packet/parse_core.h"

namespace penstock::stack {

namespace {

/// Clears the options that may differ between functions that share a tracker, because they are not settings of a
/// function, or the view uses a value that suits all.
TrackerOptions settings_of(TrackerOptions options) noexcept {
  options.flow_slots = 0;
  options.flow_id_seed = 0;
  options.seam_bytes = 0;
  return options;
}

/// A view, while functions may still join it.
struct OpenView {
  ViewPlan plan;
  std::size_t run = 0;
  bool has_streams = false, has_flow_need = false, in_batches = false;

  [[nodiscard]] bool suits(const StackUse& use) const noexcept {
    if (use.run != run || use.need == StackNeed::ip_reassembly) return false;
    const bool by_flow = use.need == StackNeed::flow;
    // After a function that inspects streams, packets are already tracked. And a packet that a later function drops has
    // already passed the functions that decided before it.
    if (by_flow && (has_streams || use.ends_packets)) return false;
    if ((in_batches || use.in_batches) && (by_flow || has_flow_need)) return false;
    return by_flow || !has_streams || settings_of(use.options) == settings_of(plan.options);
  }
  void add(std::size_t function, const StackUse& use) {
    plan.functions.push_back(function);
    in_batches |= use.in_batches;
    if (use.need == StackNeed::flow) {
      has_flow_need = true;
    } else {
      const std::uint32_t seam_bytes = has_streams ? plan.options.seam_bytes : 0;
      plan.options = use.options;
      plan.options.seam_bytes = std::max(seam_bytes, use.options.seam_bytes);
      has_streams = true;
    }
  }
  [[nodiscard]] ViewPlan close() && {
    plan.lockstep = has_flow_need && plan.functions.size() > 1;
    if (!has_streams) plan.options.keep_streams = false;
    plan.options.frames_are_parsed = !in_batches;  // layouts determined on a device are not copied back
    return std::move(plan);
  }
};

}  // namespace

std::vector<ViewPlan> plan_views(std::span<const StackUse> chain) {
  std::vector<ViewPlan> views;
  std::optional<OpenView> open;
  const auto close = [&] {
    if (open) views.push_back(std::move(*open).close());
    open.reset();
  };
  for (std::size_t f = 0; f < chain.size(); ++f) {
    const StackUse& use = chain[f];
    bool decides_first = false;
    if (use.need != StackNeed::none) {
      if (!open || !open->suits(use)) {
        close();
        open.emplace().run = use.run;
      }
      open->add(f, use);
      decides_first = use.need == StackNeed::flow && open->plan.functions.size() == 1;
      if (use.need == StackNeed::ip_reassembly) close();
    }
    if (use.changes_packets || (use.ends_packets && !decides_first)) close();
  }
  close();
  return views;
}

SharedStack::SharedStack(FieldSet reads, std::span<const StackUse> chain, unsigned worker)
    : hash_flows_(reads.has(Field::flow_hash)), functions_(chain.size()) {
  for (std::size_t f = 0; f < chain.size(); ++f) functions_[f].lockstep_end = f + 1;
  for (ViewPlan& plan : plan_views(chain)) {
    const auto count = static_cast<unsigned>(plan.functions.size());
    plan.options.flow_id_seed = worker + 1;
    std::vector<std::uint32_t> seams;
    for (const std::size_t f : plan.functions) seams.push_back(chain[f].options.seam_bytes);
    views_.push_back(std::make_unique<TrafficView>(plan.options, seams));
    for (unsigned i = 0; i < count; ++i) {
      Function& function = functions_[plan.functions[i]];
      function.attachment = &views_.back()->attachment(i);
      if (!plan.lockstep) function.settles = views_.back().get();
    }
    if (plan.lockstep) {
      Function& first = functions_[plan.functions.front()];
      first.lockstep = views_.back().get();
      first.lockstep_end = plan.functions.back() + 1;
    }
  }
}

void SharedStack::prepare(std::span<const PacketView> packets) const noexcept {
  for (const PacketView& packet : packets) {
    parse(packet);
    if (hash_flows_) packet.packet->flow_hash = flow_hash(packet);
  }
}

void SharedStack::finish() noexcept {
  for (const auto& view : views_) view->finish();
}

}  // namespace penstock::stack
