// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/step_runner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <mutex>
#include <numeric>
#include <span>
#include <variant>

#include "base/jenkins_hash.h"
#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "nf/firewall/bridged_frame.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/steps/packet_fields.h"
#include "nf/firewall/steps/segment_size.h"
#include "packet/mac_address.h"

namespace penstock::firewall {

namespace {

using classify::Number;
using classify::Value;

constexpr std::uint64_t kSecondsPerDay = 86'400;

constexpr bool contains(const classify::IntervalSet& set, const Number& value) noexcept {
  const auto after = std::ranges::upper_bound(set, value, {}, &classify::Interval::low);
  return after != set.begin() && value <= std::prev(after)->high;
}

std::uint64_t time_of(PacketView packet) noexcept { return packet.packet->timestamp_ns; }

}  // namespace

StepRunner::StepRunner(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters* counters,
                       const StepContext& context)
    : rules_(rules),
      conditions_{rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(), rules.ranges6.data(),
                  static_cast<std::uint32_t>(rules.entries.size())},
      classifier_(classifier),
      counters_(counters),
      context_(context),
      random_(random_seed() | 1),
      tracks_between_(rules.tracks_between()) {
  if (context.log != nullptr) log_ = std::make_unique<PacketLog>(*context.log, *context.port_names);
  if (context.routes != nullptr && rules.asks_for_routes())
    routes_ = std::make_unique<HostRoutes>(context.routes->read_routes(), *context.addresses);
}

std::optional<std::uint32_t> StepRunner::decide(PacketView packet, const classify::Key& first_key, std::uint32_t entry,
                                                std::vector<std::uint32_t>* failed) {
  if (entry == classify::kNoEntry || rules_.entries[entry].action != classify::Action::step) return entry;
  why_dropped_ = {};
  wish_ = Wish::none;
  is_tracked_ = false;
  classify::Key key = first_key;
  Packet about{packet, key, nullptr};
  find_connection(about);
  while (entry != classify::kNoEntry && rules_.entries[entry].action == classify::Action::step) {
    const classify::Entry& here = rules_.entries[entry];
    const classify::Rule& rule = rules_.rules[here.rule];
    const bool all = std::ranges::all_of(rule.steps, [&](const classify::Step& step) {
      return std::visit([&](const auto& one) { return holds(one, about); }, step);
    });
    if (!why_dropped_.empty()) return std::nullopt;
    if (!all && failed != nullptr) failed->push_back(entry);
    if (all && rule.continues && counters_ != nullptr) counters_->add(here.rule, packet.length());
    entry = classifier_.next(key, all ? entry + 1 : here.skip_to);
  }
  return entry;
}

void StepRunner::find_connection(Packet& packet) noexcept {
  if (connections_ == nullptr) return;
  if (const auto said = connections_->said(packet.view)) packet.connection = said->connection;
}

void StepRunner::begin_batch() noexcept {
  if (log_ != nullptr) log_->flush_if_due();
  if (routes_ != nullptr) routes_->refresh();
}

std::optional<Number> StepRunner::read(const classify::Operand& operand, const Packet& packet) noexcept {
  const PacketView view = packet.view;
  const PacketLayout& layout = view.layout();
  const bool ipv4 = layout.network == NetworkLayer::ipv4;
  const auto masked = [&](Number value) {
    return Number{value.high & operand.mask.high, value.low & operand.mask.low};
  };
  const auto number = [&](std::uint64_t value) { return masked({0, value}); };
  const auto port = [&](std::uint32_t value) -> std::optional<Number> {
    if (value == classify::kNoTransportPort && !operand.or_zero) return std::nullopt;
    return number(value == classify::kNoTransportPort ? 0 : value);
  };
  switch (operand.value) {
    case Value::source: return masked(packet.key.source);
    case Value::destination: return masked(packet.key.destination);
    case Value::source_port: return port(packet.key.source_port);
    case Value::destination_port: return port(packet.key.destination_port);
    case Value::protocol: return number(packet.key.protocol());
    case Value::in_port: return number(packet.key.in_port);
    case Value::out_port: return number(packet.key.out_port);
    case Value::mark: return number(view.packet->mark);
    case Value::connection_mark:
      if (context_.state == nullptr) return number(0);
      if (packet.connection == nullptr) return std::nullopt;
      return number(packet.connection->mark);
    case Value::hop_limit: return number(ipv4 ? view.ipv4().ttl : view.ipv6().hop_limit);
    case Value::traffic_class:
      return number(ipv4 ? view.ipv4().tos : view.ipv6().version_class_label.value() >> 20 & 0xff);
    case Value::length: return number(bytes_of(packet));
    case Value::ether_source:
    case Value::ether_destination:
    case Value::packet_type: {
      const auto value = of_link(operand.value, view);
      if (!value) return std::nullopt;
      return masked(*value);
    }
    case Value::segment_size: {
      const auto size = segment_size_of(view);
      if (!size) return std::nullopt;
      return number(*size);
    }
    case Value::routing_type: {
      const auto type = routing_type_of(view);
      if (!type) return std::nullopt;
      return number(*type);
    }
    case Value::random:
      // xorshift64*
      random_ ^= random_ >> 12;
      random_ ^= random_ << 25;
      random_ ^= random_ >> 27;
      drawn_ = static_cast<std::uint32_t>((random_ * 0x2545f4914f6cdd1dU >> 32) * operand.modulus >> 32);
      return number(drawn_);
    case Value::turn: {
      if (context_.state == nullptr) return number(0);
      std::atomic<std::uint32_t>& next = context_.state->turns[operand.counter]->next;
      std::uint32_t turn = next.load(std::memory_order_relaxed);
      while (!next.compare_exchange_weak(turn, turn + 1 < operand.modulus ? turn + 1 : 0, std::memory_order_relaxed)) {
      }
      drawn_ = turn;
      return number(turn);
    }
    case Value::drawn: return number(drawn_);
    case Value::hash: {
      const auto hash = hash_of(rules_.objects.hashes[operand.counter], packet);
      if (!hash) return std::nullopt;
      return number(std::uint64_t{*hash} * operand.modulus >> 32);  // reciprocal_scale
    }
    case Value::fragment_field: {
      const auto field = fragment_field_of(view);
      if (!field) return std::nullopt;
      return number(*field);
    }
    case Value::flow_label:
      if (ipv4) return std::nullopt;
      return number(view.ipv6().version_class_label.value() & 0xfffff);
    case Value::extension_headers: {
      const auto headers = extension_headers_of(view);
      if (!headers) return std::nullopt;
      return number(*headers);
    }
    case Value::second_of_day: return number(time_of(view) / kNsPerSecond % kSecondsPerDay);
    case Value::weekday: return number((time_of(view) / kNsPerSecond / kSecondsPerDay + 4) % 7);
    default: break;
  }
  const auto value =
      classify::is_of_frame(operand.value) ? value_of_frame(view, operand.value) : of_connection(operand.value, packet);
  if (!value) return std::nullopt;
  return masked(*value);
}

std::uint32_t StepRunner::bytes_of(const Packet& packet) const noexcept {
  return context_.is_bridge ? bridged_bytes(packet.view) : packet.view.layout().ip_bytes();
}

/// A packet whose link header is lost is dropped: rules may be about it.
std::optional<Number> StepRunner::of_link(Value value, PacketView packet) noexcept {
  using classify::PacketType;
  const bool has_header = packet.packet->link_type == LinkType::ethernet && packet.packet->in_port != context_.host;
  if (!has_header) return value == Value::packet_type ? std::optional(Number{0, PacketType::kHost}) : std::nullopt;
  const EthernetHeader* header = &packet.ethernet();
  if (context_.link_is_written) header = emitter_ == nullptr ? nullptr : emitter_->link_header_at_arrival(packet);
  if (header == nullptr) {
    if (context_.state != nullptr) why_dropped_ = "the link header with which it arrived is not known";
    return std::nullopt;
  }
  const MacAddress& destination = header->destination;
  switch (value) {
    case Value::ether_source: return Number{0, to_number(header->source)};
    case Value::ether_destination: return Number{0, to_number(destination)};
    default: break;
  }
  constexpr MacAddress kAll{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  const bool is_group = (destination.bytes[0] & 1) != 0;
  return Number{0, destination == kAll ? PacketType::kBroadcast
                   : is_group          ? PacketType::kMulticast
                                       : PacketType::kHost};
}

std::optional<Number> StepRunner::of_connection(Value value, const Packet& packet) noexcept {
  if (packet.connection == nullptr) return std::nullopt;
  const conntrack::Connection& connection = *packet.connection;
  const auto number = [](std::uint64_t one) { return Number{0, one}; };
  switch (value) {
    case Value::original_source: return connection.original.source;
    case Value::original_destination: return connection.original.destination;
    case Value::original_source_port: return number(connection.original.source_port);
    case Value::original_destination_port: return number(connection.original.destination_port);
    case Value::reply_source: return connection.reply.source;
    case Value::reply_destination: return connection.reply.destination;
    case Value::reply_source_port: return number(connection.reply.source_port);
    case Value::reply_destination_port: return number(connection.reply.destination_port);
    case Value::connection_protocol: return number(connection.original.protocol);
    case Value::connection_status: return number(connection.status);
    case Value::expiration_ms: return number(connections_->remaining_ns(connection) / 1'000'000);
    default: return std::nullopt;
  }
}

std::optional<std::uint32_t> StepRunner::hash_of(const classify::HashObject& hash, const Packet& packet) noexcept {
  std::array<std::uint8_t, classify::kMostElementValues * sizeof(Ipv6Address)> bytes{};
  std::size_t end = 0;
  const auto put = [&](const Number& value, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t shift = 8 * (length - 1 - i);
      bytes[end + i] = static_cast<std::uint8_t>(shift < 64 ? value.low >> shift : value.high >> (shift - 64));
    }
    end += length;
  };
  if (hash.symmetric) {
    const classify::Key& key = packet.key;
    const auto [low, high] = std::minmax(key.source, key.destination);
    const auto [low_port, high_port] = std::minmax(key.source_port, key.destination_port);
    put(low, 16), put(high, 16), put({0, low_port}, 4), put({0, high_port}, 4), put({0, key.protocol()}, 4);
    return jenkins_hash({bytes.data(), end}, hash.seed);
  }
  for (std::size_t i = 0; i < hash.of.size(); ++i) {
    const std::optional<Number> value = read(hash.of[i], packet);
    if (!value) return std::nullopt;
    end = (end + 3) / 4 * 4;
    put(*value, hash.bytes[i]);
  }
  if (hash.of.size() > 1) end = (end + 3) / 4 * 4;
  return jenkins_hash({bytes.data(), end}, hash.seed);
}

std::optional<ElementTable::Key> StepRunner::read(const std::vector<classify::Operand>& operands,
                                                  const Packet& packet) noexcept {
  ElementTable::Key key{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::optional<Number> value = read(operands[i], packet);
    if (!value) return std::nullopt;
    key[i] = *value;
  }
  return key;
}

bool StepRunner::is_listed(std::uint32_t set, const ElementTable::Key& key) {
  const std::vector<classify::ChangingSet::Element>& elements = rules_.objects.sets[set].elements;
  const auto key_at = [&](std::uint32_t i) { return std::span(elements[i].key); };
  const auto less = [](std::span<const Number> a, std::span<const Number> b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  const auto [known, is_new] = listed_.try_emplace(set);
  std::vector<std::uint32_t>& order = known->second;
  if (is_new) {
    order.resize(elements.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, less, key_at);
  }
  return std::ranges::binary_search(order, std::span(key).first(rules_.objects.sets[set].values), less, key_at);
}

/// The elements that the rules list live from the set's first use on.
ElementTable& StepRunner::elements_of(std::uint32_t set, std::uint64_t now_ns) noexcept {
  SetState& state = *context_.state->sets[set];
  if (state.filled.load(std::memory_order_acquire)) return state.elements;
  const std::lock_guard lock(state.mutex);
  if (state.filled.load(std::memory_order_relaxed)) return state.elements;
  const auto key_of = [](const classify::ChangingSet::Element& element) {
    ElementTable::Key key{};
    std::ranges::copy(element.key, key.begin());
    return key;
  };
  for (const classify::ChangingSet::Element& element : state.to_remove) state.elements.remove(key_of(element));
  for (const classify::ChangingSet::Element& element : state.to_add) {
    const std::uint64_t expires_ns = element.timeout_ns == 0 ? 0 : now_ns + element.timeout_ns;
    static_cast<void>(
        state.elements.with(key_of(element), now_ns, expires_ns, true, nullptr, [](ElementTable::Element&) {}));
  }
  state.to_add.clear();
  state.to_remove.clear();
  state.filled.store(true, std::memory_order_release);
  return state.elements;
}

bool StepRunner::count(ConnectionList& list, const classify::ConnectionCount& count, const Packet& packet) noexcept {
  if (packet.connection == nullptr) return list.holds_without(count);
  return list.holds(count, *packet.connection, *connections_, time_of(packet.view));
}

bool StepRunner::holds(const classify::Test& test, const Packet& packet) noexcept {
  const std::optional<Number> value = read(test.operand, packet);
  return (value && contains(test.values, *value)) != test.negated;
}

bool StepRunner::holds(const classify::AnyOf& any, const Packet& packet) noexcept {
  return std::ranges::any_of(any.alternatives, [&](const classify::Alternative& one) {
    return (one.family == NetworkLayer::none || one.family == packet.key.family) &&
           std::ranges::all_of(one.conditions, [&](const classify::Condition& condition) {
             return classify::holds(conditions_, condition, packet.key);
           });
  });
}

bool StepRunner::holds(const classify::UseRate& use, const Packet& packet) noexcept {
  if (context_.state == nullptr) return !rules_.objects.rates[use.object].rate.over;
  const classify::Rate& rate = rules_.objects.rates[use.object].rate;
  RateState& state = *context_.state->rates[use.object];
  const std::uint64_t now_ns = time_of(packet.view);
  const std::lock_guard lock(state.mutex);
  if (!state.begun) state.bucket = TokenBucket::full(rate, now_ns);
  state.begun = true;
  return state.bucket.take(rate, bytes_of(packet), now_ns);
}

namespace {

/// As nft_quota: within it, up to the packet that uses it up.
bool quota_holds(const classify::Quota& quota, std::uint64_t used) noexcept {
  return (used > quota.bytes) == quota.over;
}

}  // namespace

bool StepRunner::holds(const classify::UseQuota& use, const Packet& packet) noexcept {
  if (context_.state == nullptr) return !rules_.objects.quotas[use.object].quota.over;
  const std::uint64_t bytes = bytes_of(packet);
  return quota_holds(rules_.objects.quotas[use.object].quota,
                     context_.state->quotas[use.object]->used.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

bool StepRunner::holds(const classify::UseCount& use, const Packet& packet) noexcept {
  if (context_.state == nullptr) return !rules_.objects.counts[use.object].count.over;
  CountState& state = *context_.state->counts[use.object];
  const std::lock_guard lock(state.mutex);
  return count(state.connections, rules_.objects.counts[use.object].count, packet);
}

bool StepRunner::holds(const classify::LookUp& look_up, const Packet& packet) noexcept {
  const auto key = read(look_up.key, packet);
  if (!key) return look_up.negated && look_up.also_without;
  if (context_.state == nullptr) return is_listed(look_up.set, *key) != look_up.negated;
  const std::uint64_t now_ns = time_of(packet.view);
  return elements_of(look_up.set, now_ns).contains(*key, now_ns) != look_up.negated;
}

namespace {

/// Whether it holds for what is over a limit.
bool is_beyond(const decltype(classify::Update::of_element)& limit) noexcept {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.over; }) return one.over;
        return false;
      },
      limit);
}

}  // namespace

bool StepRunner::holds(const classify::Update& update, const Packet& packet) noexcept {
  using Way = classify::Update::Way;
  const auto key = read(update.key, packet);
  if (!key) return false;
  if (context_.state == nullptr) return !is_beyond(update.of_element);
  const std::uint64_t now_ns = time_of(packet.view);
  ElementTable& elements = elements_of(update.set, now_ns);
  if (update.way == Way::remove) {
    elements.remove(*key);
    return true;
  }
  const std::uint64_t timeout_ns =
      update.timeout_ns != 0 ? update.timeout_ns : rules_.objects.sets[update.set].timeout_ns;
  bool holds = true;
  const auto use = [&](ElementTable::Element& element) {
    if (const auto* const rate = std::get_if<classify::Rate>(&update.of_element)) {
      if (element.is_new) element.bucket = TokenBucket::full(*rate, now_ns);
      holds = element.bucket.take(*rate, bytes_of(packet), now_ns);
    } else if (const auto* const quota = std::get_if<classify::Quota>(&update.of_element)) {
      element.bytes += bytes_of(packet);
      holds = quota_holds(*quota, quota->used + element.bytes);
    } else if (const auto* const most = std::get_if<classify::ConnectionCount>(&update.of_element)) {
      if (element.connections == nullptr) element.connections = new (std::nothrow) ConnectionList;
      holds = element.connections == nullptr ? most->over : count(*element.connections, *most, packet);
    }
  };
  const bool stays = timeout_ns == 0 || timeout_ns == classify::Update::kForever;
  const std::uint64_t expires_ns = stays ? 0 : now_ns + timeout_ns;
  if (elements.with(*key, now_ns, expires_ns, update.way == Way::update, connections_, use)) return holds;
  if (update.drops_if_full) why_dropped_ = "a set of a rule is full";
  return false;
}

bool StepRunner::holds(const classify::Recent& recent, const Packet& packet) noexcept {
  if (context_.state == nullptr) return recent.way == classify::Recent::Way::set || recent.negated;
  const std::optional<Number> address = read(recent.address, packet);
  const PacketView view = packet.view;
  const std::uint8_t hop_limit = view.layout().network == NetworkLayer::ipv4 ? view.ipv4().ttl : view.ipv6().hop_limit;
  const std::optional<bool> holds =
      context_.state->recents[recent.list]->holds(recent, *address, packet.key.family, hop_limit, time_of(view));
  if (!holds) why_dropped_ = "a list of recent addresses has no memory";
  return holds.value_or(false);
}

bool StepRunner::holds(const classify::SetMark& mark, const Packet& packet) noexcept {
  using Source = classify::SetMark::Source;
  const bool known = packet.connection != nullptr;
  if (mark.source == Source::connection && !known) return context_.state == nullptr;
  if (mark.of_connection && !known) return true;
  std::uint32_t source = 0;
  if (mark.source == Source::packet) source = packet.view.packet->mark;
  if (mark.source == Source::connection) source = packet.connection->mark;
  std::uint32_t& target = mark.of_connection ? packet.connection->mark : packet.view.packet->mark;
  target = (target & mark.keep) ^ (source & mark.mask) ^ mark.flip;
  return true;
}

bool StepRunner::holds(const classify::Log& log, const Packet& packet) noexcept {
  if (log_ != nullptr) log_->add(packet.view, log.prefix);
  return true;
}

bool StepRunner::holds(const classify::ClampSegmentSize& clamp, const Packet& packet) noexcept {
  std::uint32_t most = clamp.most;
  if (most == 0) {
    const std::vector<std::uint16_t>& mtus = *context_.largest_packets;
    std::uint32_t smallest = 0xffff;
    for (const PortIndex port : {packet.key.in_port, packet.key.out_port}) {
      if (port < mtus.size()) smallest = std::min<std::uint32_t>(smallest, mtus[port]);
    }
    // IP and TCP headers without options.
    most = smallest - (packet.key.family == NetworkLayer::ipv4 ? 40 : 60);
  }
  return lower_segment_size(packet.view, static_cast<std::uint16_t>(most));
}

bool StepRunner::holds(const classify::SetField& set, const Packet& packet) noexcept {
  set_field(packet.view, set);
  return true;
}

bool StepRunner::holds(const classify::FindText& find, const Packet& packet) noexcept {
  if (context_.state == nullptr && packet.view.packet->length == 0) return find.negated;  // a tuple has no text
  return has_text(packet.view, find) != find.negated;
}

bool StepRunner::holds(const classify::AtTime& at, const Packet& packet) noexcept {
  return is_at(at, time_of(packet.view));
}

bool StepRunner::holds(const classify::GiveHelper& /*give*/, const Packet& packet) noexcept {
  if (tracks_between_ && !is_tracked_) {
    if (wish_ == Wish::none) wish_ = Wish::helper;
    return true;
  }
  if (connections_ == nullptr) return true;
  if (const auto said = connections_->said(packet.view); said && connections_->may_begin(*said))
    static_cast<void>(connections_->give_helper(*said));
  return true;
}

bool StepRunner::holds(const classify::LeaveUntracked& /*leave*/, const Packet& /*packet*/) noexcept {
  if (wish_ == Wish::none) wish_ = Wish::untracked;
  return true;
}

bool StepRunner::holds(const classify::ReversePath& path, const Packet& packet) noexcept {
  if (routes_ == nullptr) return context_.state == nullptr || path.negated;
  return routes_->holds(path, packet.key);
}

bool StepRunner::holds(const classify::RouteOut& out, const Packet& packet) noexcept {
  if (routes_ == nullptr) return context_.state == nullptr || out.negated;
  return routes_->holds(out, packet.key);
}

bool StepRunner::holds(const classify::TrackConnection& /*track*/, Packet& packet) noexcept {
  is_tracked_ = true;
  if (between_ == nullptr) return true;
  why_dropped_ = between_->track(packet.view, packet.key, wish_ == Wish::untracked);
  find_connection(packet);
  return why_dropped_.empty() && (wish_ != Wish::helper || holds(classify::GiveHelper(), packet));
}

bool StepRunner::holds(const classify::TranslateAddresses& /*translate*/, Packet& packet) noexcept {
  if (between_ != nullptr) why_dropped_ = between_->translate(packet.view, packet.key);
  return why_dropped_.empty();
}

std::uint32_t TupleSteps::decide(const classify::Key& key, std::uint32_t entry) {
  std::array<std::uint8_t, sizeof(Ipv6Header)> header{};
  PacketDescriptor descriptor;
  descriptor.link_type = LinkType::raw_ip;
  descriptor.layout.network = key.family;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  descriptor.timestamp_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
  return runner_.decide({header.data(), &descriptor}, key, entry).value_or(classify::kNoEntry);
}

}  // namespace penstock::firewall
