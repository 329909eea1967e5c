// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/state_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/nanoseconds.h"
#include "nf/nids/detect/flow_memory.h"
#include "nf/nids/detect/host_memory.h"

namespace penstock::nids {
namespace {

using stack::DecodedPacket;
using stack::TrackedPacket;

// Suricata's clock: whole microseconds.
std::uint64_t time_us(const TrackedPacket& packet) noexcept { return packet.packet.timestamp_ns / 1000; }
std::uint64_t time_s(const TrackedPacket& packet) noexcept { return packet.packet.timestamp_ns / kNsPerSecond; }

std::uint32_t bytes_of(const DecodedPacket& packet) noexcept {
  const bool own_frame = packet.tunnel_depth == 0 && !packet.reassembled;
  return static_cast<std::uint32_t>(own_frame ? packet.frame.size() : packet.ip.size() + packet.ip_payload.size());
}

bool contains(const AddressSet& set, const stack::Endpoint& endpoint, std::uint8_t ip_version) noexcept {
  if (ip_version == 4) return set.contains(Ipv4Address{static_cast<std::uint32_t>(endpoint.address.low)});
  return set.contains(endpoint.address);
}

HostKey key_of(TrackBy track, const DecodedPacket& packet, HostRecordKind kind, std::uint32_t index) noexcept {
  switch (track) {
    case TrackBy::source: return host_key(packet, true, kind, index);
    case TrackBy::destination: return host_key(packet, false, kind, index);
    case TrackBy::both:
    case TrackBy::ip_pair: return pair_key(packet, kind, index);
    case TrackBy::rule:
    case TrackBy::flow: break;
  }
  return common_key(kind, index);
}

bool compare(FlowintMatch::Operator operation, std::uint32_t value, std::uint32_t with) noexcept {
  switch (operation) {
    case FlowintMatch::Operator::less: return value < with;
    case FlowintMatch::Operator::less_equal: return value <= with;
    case FlowintMatch::Operator::equal: return value == with;
    case FlowintMatch::Operator::not_equal: return value != with;
    case FlowintMatch::Operator::greater_equal: return value >= with;
    case FlowintMatch::Operator::greater: return value > with;
    case FlowintMatch::Operator::is_set:
    case FlowintMatch::Operator::is_not_set: break;
  }
  return false;
}

}  // namespace

struct StateStore::Parts {
  HostMemory::Parts& hosts;
  std::shared_ptr<FlowMemory> flows;
  std::shared_ptr<FlowMemory> spare;  // unused; to be freed with this store
  const std::shared_ptr<const StateIds> ids;
  std::vector<Suppression> suppressions;
  std::vector<std::vector<std::uint32_t>> suppressions_of;  // by rule; empty if there are none at all

  Parts(const RuleSet& rules, HostMemory& memory, std::size_t flow_bytes, std::shared_ptr<const StateIds> numbers);

  using Numbers = std::vector<std::uint32_t> StateIds::*;
  [[nodiscard]] std::uint32_t id(Numbers numbers, std::uint32_t index) const noexcept {
    return ids == nullptr ? index : ((*ids).*numbers)[index];
  }

  [[nodiscard]] bool holds(const FlowbitsMatch& match, const TrackedPacket& packet) const noexcept;
  [[nodiscard]] bool holds(const FlowintMatch& match, const TrackedPacket& packet) const noexcept;
  [[nodiscard]] bool holds(const XbitsMatch& match, const TrackedPacket& packet) noexcept;
  void change(const FlowbitsChange& change, const TrackedPacket& packet) noexcept;
  void change(const FlowintChange& change, const TrackedPacket& packet) noexcept;
  void change(const XbitsChange& change, const TrackedPacket& packet) noexcept;
};

StateStore::Parts::Parts(const RuleSet& rules, HostMemory& memory, std::size_t flow_bytes,
                         std::shared_ptr<const StateIds> numbers)
    : hosts(memory.parts()),
      flows(std::make_shared<FlowMemory>(flow_bytes)),
      ids(std::move(numbers)),
      suppressions(rules.suppressions) {
  if (suppressions.empty()) return;
  suppressions_of.resize(rules.rules.size());
  for (std::size_t rule = 0; rule < rules.rules.size(); ++rule) {
    for (std::uint32_t i = 0; i < suppressions.size(); ++i) {
      const Suppression& suppression = suppressions[i];
      const bool every = suppression.gid == 0 && suppression.sid == 0;
      if (!every && suppression.gid != rules.rules[rule].gid) continue;
      if (suppression.sid != 0 && suppression.sid != rules.rules[rule].sid) continue;
      suppressions_of[rule].push_back(i);
    }
  }
}

bool StateStore::Parts::holds(const FlowbitsMatch& match, const TrackedPacket& packet) const noexcept {
  if (packet.flow == nullptr) return false;
  return std::any_of(match.bits.begin(), match.bits.end(), [&](std::uint32_t bit) {
    return flows->bit(*packet.flow, id(&StateIds::flowbits, bit)) != match.negated;
  });
}

bool StateStore::Parts::holds(const FlowintMatch& match, const TrackedPacket& packet) const noexcept {
  if (packet.flow == nullptr) return false;
  const auto value_of = [&](std::uint32_t name) { return flows->number(*packet.flow, id(&StateIds::flowints, name)); };
  const std::optional<std::uint32_t> value = value_of(match.name);
  if (match.operation == FlowintMatch::Operator::is_set) return value.has_value();
  if (match.operation == FlowintMatch::Operator::is_not_set) return !value;
  if (!value) return false;
  return compare(match.operation, *value, match.other ? value_of(*match.other).value_or(0) : match.value);
}

bool StateStore::Parts::holds(const XbitsMatch& match, const TrackedPacket& packet) noexcept {
  if (packet.packet.ip_version == 0) return match.negated;
  return hosts.bit(key_of(match.track, packet.packet, HostRecordKind::xbit, id(&StateIds::xbits, match.bit)),
                   time_us(packet)) != match.negated;
}

void StateStore::Parts::change(const FlowbitsChange& change, const TrackedPacket& packet) noexcept {
  if (packet.flow == nullptr) return;
  const std::uint32_t bit = id(&StateIds::flowbits, change.bit);
  const bool set = change.how == FlowbitsChange::How::toggle ? !flows->bit(*packet.flow, bit)
                                                             : change.how == FlowbitsChange::How::set;
  if (set) {
    flows->set_bit(*packet.flow, bit);
  } else {
    flows->unset_bit(*packet.flow, bit);
  }
}

void StateStore::Parts::change(const FlowintChange& change, const TrackedPacket& packet) noexcept {
  if (packet.flow == nullptr) return;
  stack::Flow& flow = *packet.flow;
  const std::uint32_t name = id(&StateIds::flowints, change.name);
  const std::uint32_t by =
      change.other ? flows->number(flow, id(&StateIds::flowints, *change.other)).value_or(0) : change.value;
  const std::optional<std::uint32_t> value = flows->number(flow, name);
  switch (change.how) {
    case FlowintChange::How::set: flows->set_number(flow, name, by); break;
    case FlowintChange::How::add: flows->set_number(flow, name, value.value_or(0) + by); break;
    case FlowintChange::How::subtract:
      if (value) flows->set_number(flow, name, *value - by);
      break;
  }
}

void StateStore::Parts::change(const XbitsChange& change, const TrackedPacket& packet) noexcept {
  if (packet.packet.ip_version == 0) return;
  constexpr std::uint64_t kSecond = 1'000'000;
  hosts.change_bit(key_of(change.track, packet.packet, HostRecordKind::xbit, id(&StateIds::xbits, change.bit)),
                   change.how, time_us(packet) + change.expire_s * kSecond);
}

StateStore::StateStore(const RuleSet& rules, HostMemory& hosts, std::size_t flow_bytes,
                       std::shared_ptr<const StateIds> ids)
    : parts_(std::make_unique<Parts>(rules, hosts, flow_bytes, std::move(ids))) {}
StateStore::~StateStore() = default;

void StateStore::share_flows(StateStore& other) noexcept {
  other.parts_->spare = std::exchange(parts_->flows, other.parts_->flows);
}

bool StateStore::holds(const StateMatch& match, const TrackedPacket& packet) noexcept {
  return std::visit([&](const auto& one) { return parts_->holds(one, packet); }, match);
}

void StateStore::change(const StateChange& change, const TrackedPacket& packet) noexcept {
  std::visit([&](const auto& one) { parts_->change(one, packet); }, change);
}

StateStore::Decision StateStore::count(const Rule& rule, std::uint32_t rule_index,
                                       const TrackedPacket& packet) noexcept {
  if (!rule.threshold || packet.packet.ip_version == 0) return {};
  const Threshold& threshold = *rule.threshold;
  const std::uint32_t id = parts_->id(&StateIds::thresholds, rule_index);
  Counted counted = Counted::nothing;
  if (threshold.track == TrackBy::flow) {
    if (packet.flow != nullptr) counted = parts_->flows->count(*packet.flow, id, threshold, time_us(packet));
  } else if (threshold.type == Threshold::Type::threshold && threshold.count == 1) {
    return {};
  } else {
    const HostKey key = key_of(threshold.track, packet.packet, HostRecordKind::threshold, id);
    counted = parts_->hosts.count(key, threshold, time_us(packet));
  }
  switch (counted) {
    case Counted::nothing: return {.alerts = false, .acts = false};
    case Counted::silent: return {.alerts = false, .acts = true};
    case Counted::alert: return {};
    case Counted::new_action: break;
  }
  return {.alerts = threshold.new_action != Action::pass, .acts = true, .new_action = threshold.new_action};
}

bool StateStore::suppressed(std::uint32_t rule_index, const TrackedPacket& packet) const noexcept {
  if (parts_->suppressions_of.empty()) return false;
  const DecodedPacket& decoded = packet.packet;
  return std::any_of(parts_->suppressions_of[rule_index].begin(), parts_->suppressions_of[rule_index].end(),
                     [&](std::uint32_t i) {
                       const Suppression& by = parts_->suppressions[i];
                       if (by.always) return true;
                       if (decoded.ip_version == 0) return false;
                       const bool source = by.track != TrackBy::destination;
                       const bool destination = by.track != TrackBy::source;
                       return (source && contains(by.addresses, decoded.source, decoded.ip_version)) ||
                              (destination && contains(by.addresses, decoded.destination, decoded.ip_version));
                     });
}

void StateStore::tag(const Rule& rule, std::uint32_t rule_index, const TrackedPacket& packet) noexcept {
  if (rule.tags.empty()) return;
  const std::uint32_t id = parts_->id(&StateIds::tags, rule_index);
  for (const Tag& tag : rule.tags) {
    if (tag.of == Tag::Of::session) {
      if (packet.flow != nullptr) parts_->flows->tag(*packet.flow, id, tag, time_s(packet));
    } else if (packet.packet.ip_version != 0) {
      parts_->hosts.tag(host_key(packet.packet, tag.by_source, HostRecordKind::tag, id), tag, time_s(packet));
    }
  }
}

bool StateStore::tagged(const TrackedPacket& packet) noexcept {
  bool logged = false;
  if (packet.flow != nullptr && parts_->flows->has_tags()) {
    logged = parts_->flows->tagged(*packet.flow, time_s(packet), bytes_of(packet.packet));
  }
  if (packet.packet.ip_version != 0 && parts_->hosts.has_tags()) {
    for (const bool source : {true, false}) {
      const HostKey host = host_key(packet.packet, source, HostRecordKind::tag, 0);
      if (parts_->hosts.tagged(host, time_s(packet), bytes_of(packet.packet))) logged = true;
    }
  }
  return logged;
}

void StateStore::use_slot(unsigned slot) noexcept { parts_->flows->use_slot(slot); }

void StateStore::flow_ended(stack::Flow& flow) noexcept { parts_->flows->end(flow); }

StateStore::FlowFate StateStore::fate(const stack::Flow& flow) const noexcept { return parts_->flows->fate(flow); }
void StateStore::set_fate(stack::Flow& flow, FlowFate fate) noexcept { parts_->flows->set_fate(flow, fate); }

StateStore::Counters StateStore::counters() const noexcept { return parts_->flows->counters(); }

}  // namespace penstock::nids
