// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/esp/fragment_wait.h"

#include <array>

#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "packet/ip.h"
#include "stack/decode_event.h"

namespace penstock::ipsec {

FragmentCounts& FragmentCounts::operator+=(const FragmentCounts& other) noexcept {
  fragments += other.fragments;
  reassembled += other.reassembled;
  timed_out += other.timed_out;
  dropped += other.dropped;
  return *this;
}

namespace {

constexpr std::size_t kUdpDatagrams = 1024;
constexpr std::uint64_t kTimeoutNs = std::uint64_t{stack::TrackerOptions{}.fragment_timeout_s} * kNsPerSecond;

/// Hash of addresses and identification. For IPv6, the fragment header must be the last extension header.
std::uint64_t datagram_hash(PacketView fragment, std::uint64_t seed) noexcept {
  if (fragment.layout().network == NetworkLayer::ipv4) {
    const Ipv4Header& ip = fragment.ipv4();
    const std::uint64_t addresses = std::uint64_t{ip.source.value()} << 32 | ip.destination.value();
    return mix_product(mix_product(seed, addresses), seed ^ ip.id.value());
  }
  const Ipv6Header& ip = fragment.ipv6();
  std::uint64_t hash = seed;
  for (const Be64& word : {ip.source[0], ip.source[1], ip.destination[0], ip.destination[1]}) {
    hash = mix_product(hash, word.value());
  }
  const auto& header =
      fragment.at<Ipv6FragmentHeader>(fragment.layout().transport_offset - kBytesOf<Ipv6FragmentHeader>);
  return mix_product(hash, seed ^ header.id.value());
}

}  // namespace

UdpDatagrams::UdpDatagrams() : seed_(random_seed()), entries_(kUdpDatagrams) {}

UdpDatagrams::State& UdpDatagrams::state_of(PacketView fragment) noexcept {
  const std::uint64_t hash = datagram_hash(fragment, seed_);
  Entry& entry = entries_[hash % kUdpDatagrams];
  const std::uint64_t now_ns = fragment.packet->timestamp_ns;
  const bool is_old = now_ns > entry.last_ns && now_ns - entry.last_ns > kTimeoutNs;
  if (entry.datagram != hash || is_old) entry = {hash, 0, State::unknown};
  entry.last_ns = now_ns;
  return entry.state;
}

stack::TrackerOptions FragmentWait::stack_options() noexcept {
  stack::TrackerOptions options;
  options.fragment_policy = stack::OverlapPolicy::linux_host;
  options.every_version = false;
  options.inline_streams = true;  // so that a fragment that contradicts another is refused
  options.keep_flows = options.keep_streams = false;
  options.flow_memory = options.stream_memory = 0;
  options.most_tunnels = 0;
  return options;
}

void FragmentWait::attach(stack::Attachment& attachment) noexcept {
  attachment_ = &attachment;
  attachment.look_with(*this);
}

FragmentWait::Outcome FragmentWait::take(PacketView fragment, bool udp, const NatTraversalPorts& ports) noexcept {
  outcome_ = {};
  if (udp && passes(fragment, ports)) {
    outcome_.kind = Outcome::Kind::passes;
    return outcome_;
  }
  const std::uint64_t no_room_before = attachment_->counters().fragment_memory_refused;
  attachment_->track(fragment, 0);
  if (outcome_.kind == Outcome::Kind::completes) {
    if (udp) udp_datagrams_.state_of(fragment) = UdpDatagrams::State::unknown;
  } else if (attachment_->counters().fragment_memory_refused != no_room_before) {
    refuse(Reason::no_room);
  }
  return outcome_;
}

bool FragmentWait::passes(PacketView fragment, const NatTraversalPorts& ports) noexcept {
  using State = UdpDatagrams::State;
  State& state = udp_datagrams_.state_of(fragment);
  const bool is_first = fragment.layout().has(PacketLayout::kTransportHeader);
  if (is_first && may_carry_esp(fragment, ports)) {
    state = State::waits;
  } else if (state == State::unknown) {
    state = is_first ? State::passes : State::waits;
  }
  return state == State::passes;
}

void FragmentWait::refuse(Reason reason) noexcept { outcome_ = {Outcome::Kind::dropped, reason, {}}; }

void FragmentWait::packet(stack::TrackedPacket& tracked) noexcept {
  const stack::DecodedPacket& packet = tracked.packet;
  if (packet.reassembled) {
    // Only the outermost datagram, if there are fragments inside fragments.
    if (packet.tunnel_depth != 0 || outcome_.kind == Outcome::Kind::completes) return;
    const std::span datagram(packet.ip.data(), packet.ip.size() + packet.ip_payload.size());
    outcome_ = {Outcome::Kind::completes, Reason::none, datagram};
    return;
  }
  static constexpr std::array kRefusing{
      stack::decode_event("ipv4.frag_overlap"), stack::decode_event("ipv6.frag_overlap"),
      stack::decode_event("ipv4.frag_pkt_too_large"), stack::decode_event("ipv6.frag_pkt_too_large")};
  bool is_refused = !packet.fragment || packet.refused != stack::Refusal::none;
  for (const stack::DecodeEvent event : kRefusing) is_refused |= packet.events[event.index];
  if (is_refused) refuse(Reason::fragment);
}

void FragmentWait::expire(std::uint64_t now_ns) noexcept {
  if (counts().fragments != 0) attachment_->expire(now_ns);
}

FragmentCounts FragmentWait::counts() const noexcept {
  if (attachment_ == nullptr) return {};
  const stack::TrackerCounters& counters = attachment_->counters();
  return {counters.fragments, counters.reassembled, counters.fragments_timed_out, counters.fragments_dropped};
}

}  // namespace penstock::ipsec
