// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For each frame: decode it into packets, find or create the flow of each packet, update the session of TCP packets,
// and pass the packet to the sink. Flows that have timed out end before the packet whose timestamp shows it.

#include "stack/tracker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/nanoseconds.h"
#include "base/prefetch.h"
#include "stack/decoder.h"
#include "stack/flow_table.h"
#include "stack/memory_pool.h"
#include "stack/tcp_session.h"
#include "stack/tcp_tracker.h"
#include "stack/transport_checksum.h"

namespace penstock::stack {
namespace {

constexpr std::size_t kMostEndedAtOnce = 4;  // limit on flows that time out per packet

}  // namespace

struct Tracker::Parts {
  explicit Parts(const TrackerOptions& given)
      : options(given),
        decoder(options, counters),
        flows(options),
        slots(std::make_unique<std::uint64_t[]>(options.flow_slots)),
        // Sessions have a separate pool, so that idle connections cannot use up the memory for stream data.
        session_memory(options.stream_memory / 4),
        stream_memory(options.stream_memory - options.stream_memory / 4),
        tcp(options, session_memory, stream_memory, counters) {}

  [[nodiscard]] PacketFlow look_up(const DecodedPacket& packet) noexcept;
  void keep_slots(Flow& flow) noexcept;
  void end_unkept(PacketSink& sink) noexcept;
  void take(DecodedPacket& decoded, PacketSink& sink) noexcept;
  Flow* flow_of(const FlowLookup& lookup, TrackedPacket& tracked, PacketSink& sink) noexcept;
  Flow* flow_or_another(Flow& flow, const FlowLookup& lookup, TrackedPacket& tracked, PacketSink& sink) noexcept;
  Flow* begin_flow(const FlowLookup& lookup, std::optional<Handshake> handshake, TrackedPacket& tracked,
                   PacketSink& sink) noexcept;
  [[nodiscard]] bool may_go_on_unseen(const DecodedPacket& packet) const noexcept;
  static Direction direction_of(const Flow& flow, const DecodedPacket& packet) noexcept;
  void count(Flow& flow, TrackedPacket& packet, bool icmp_error) const noexcept;
  void track_tcp(Flow& flow, TrackedPacket& packet, PacketSink& sink) noexcept;
  [[nodiscard]] bool checksums_are_right(const DecodedPacket& packet) noexcept;
  void inspect_rest(Flow& flow, Direction direction, std::uint64_t now_ns, PacketSink& sink) noexcept;
  void end(Flow& flow, std::uint64_t now_ns, PacketSink& sink) noexcept;
  void time_out(Flow& flow, std::uint64_t now_ns, PacketSink& sink) noexcept;
  bool evict(const Flow* but, std::uint64_t time_ns, PacketSink& sink) noexcept;

  TrackerOptions options;
  TrackerCounters counters;
  Decoder decoder;
  FlowTable flows;
  Flow begun;                              // new flow of the packet that was looked up, until its verdict is known
  std::unique_ptr<std::uint64_t[]> slots;  // of `begun`
  bool begins = false;                     // `begun` is in use
  MemoryPool session_memory;
  MemoryPool stream_memory;
  TcpTracker tcp;
  std::uint64_t now_ns = 0;       // latest packet timestamp
  std::uint64_t given_up_ns = 0;  // when a TCP connection was last evicted
};

Tracker::Tracker(const TrackerOptions& options) : parts_(std::make_unique<Parts>(options)) {}
Tracker::~Tracker() = default;  // sessions live in the pools, which are freed as a whole

void Tracker::raise_seam(std::uint32_t bytes) noexcept {
  parts_->options.seam_bytes = std::max(parts_->options.seam_bytes, bytes);
}

const TrackerCounters& Tracker::counters() const noexcept { return parts_->counters; }

// Each step prefetches, for all frames, what the next step reads, so that cache misses overlap.
void Tracker::prefetch(std::span<const PacketView> frames, const PacketSink& sink) const noexcept {
  const FlowTable& flows = parts_->flows;
  if (!parts_->options.keep_flows) return;
  frames = frames.first(std::min(frames.size(), kMostPrefetched));
  for (const PacketView& frame : frames) penstock::prefetch(frame.frame, 2 * kCacheLineBytes);

  std::array<std::uint32_t, kMostPrefetched> hashes;
  std::size_t count = 0;
  for (const PacketView& frame : frames) {
    const std::optional<std::uint32_t> hash = likely_hash_of(frame, flows.seed());
    if (!hash) continue;
    flows.prefetch_bucket(*hash);
    hashes[count++] = *hash;
  }
  const std::span<const std::uint32_t> wanted(hashes.data(), count);
  for (const std::uint32_t hash : wanted) flows.prefetch_flow(hash);

  std::array<const TcpSession*, kMostPrefetched> sessions;
  count = 0;
  for (const std::uint32_t hash : wanted) {
    const Flow* const flow = flows.likely_flow(hash);
    if (flow == nullptr || flow->tcp == nullptr) continue;
    sink.prefetch(*flow);
    flow->tcp->prefetch();
    sessions[count++] = flow->tcp;
  }
  const std::span<const TcpSession* const> open(sessions.data(), count);
  for (const TcpSession* const session : open) {
    session->stream(Direction::to_server).buffer.prefetch_last_run();
    session->stream(Direction::to_client).buffer.prefetch_last_run();
  }
  for (const TcpSession* const session : open) {
    session->stream(Direction::to_server).buffer.prefetch_end_of_last_run();
    session->stream(Direction::to_client).buffer.prefetch_end_of_last_run();
  }
}

void Tracker::track(PacketView packet, std::uint64_t number, PacketSink& sink) noexcept {
  parts_->decoder.decode(packet, number, [&](DecodedPacket& decoded) noexcept { parts_->take(decoded, sink); });
}

void Tracker::observe(PacketView packet, std::uint64_t number, PacketSink& sink) noexcept {
  bool is_completed = false;
  parts_->decoder.decode(packet, number, [&](DecodedPacket& decoded) noexcept {
    is_completed = is_completed || decoded.reassembled;
    if (is_completed) parts_->take(decoded, sink);
  });
}

void Tracker::track(DecodedPacket& packet, PacketSink& sink) noexcept { parts_->take(packet, sink); }

PacketFlow Tracker::look_up(PacketView packet, std::uint64_t number) noexcept {
  return parts_->look_up(parts_->decoder.begin(packet, number));
}

void Tracker::pass(PacketSink& sink) noexcept {
  const auto take = [&](DecodedPacket& decoded) noexcept {
    parts_->take(decoded, sink);
    parts_->end_unkept(sink);  // the flow belonged to the first packet
  };
  if (parts_->options.keep_streams) {
    parts_->decoder.complete(take);
  } else {
    take(parts_->decoder.outermost());  // no function needs its payload decoded
  }
}

void Tracker::drop(PacketSink& sink) noexcept { parts_->end_unkept(sink); }

PacketFlow Tracker::Parts::look_up(const DecodedPacket& packet) noexcept {
  const std::optional<FlowLookup> lookup = options.keep_flows ? flow_lookup_of(packet, flows.seed()) : std::nullopt;
  if (!lookup) return {};
  PacketFlow found{.flow = flows.find(*lookup), .icmp_error = lookup->begins_none};
  if (found.flow != nullptr && !flows.has_timed_out(*found.flow, packet.timestamp_ns)) {
    found.direction = direction_of(*found.flow, packet);
    const bool is_tcp = packet.is_tcp();
    if (!is_tcp || found.flow->blocked || !tcp.begins_by_syn(*found.flow, packet, found.direction)) {
      found.established = is_tcp ? found.flow->tcp != nullptr && found.flow->tcp->established()
                                 : found.flow->state == FlowState::established;
      return found;
    }
  }
  if (lookup->begins_none) return {.icmp_error = true};
  begun = Flow{.key = lookup->key, .start_ns = packet.timestamp_ns, .last_ns = packet.timestamp_ns};
  begun.slots = slots.get();
  begins = true;
  return {.flow = &begun, .begins = true};
}

/// Gives the new flow the slots that were set while its first packet was looked up.
void Tracker::Parts::keep_slots(Flow& flow) noexcept {
  if (!begins) return;
  std::copy_n(slots.get(), options.flow_slots, flow.slots);
  std::fill_n(slots.get(), options.flow_slots, 0);
  begins = false;
}

/// The flow of the packet that was looked up does not start after all. Reports its end if any slot was set.
void Tracker::Parts::end_unkept(PacketSink& sink) noexcept {
  if (!std::exchange(begins, false)) return;
  if (std::any_of(slots.get(), slots.get() + options.flow_slots, [](std::uint64_t slot) { return slot != 0; })) {
    sink.flow_ended(begun);
  }
  std::fill_n(slots.get(), options.flow_slots, 0);
}

void Tracker::Parts::take(DecodedPacket& decoded, PacketSink& sink) noexcept {
  FlowLookup lookup;
  const bool has_flow = options.keep_flows && read_flow_of(decoded, flows.seed(), lookup);
  if (decoded.timestamp_ns > now_ns) now_ns = decoded.timestamp_ns;
  for (std::size_t i = 0; i < kMostEndedAtOnce; ++i) {
    Flow* const old = flows.expired(now_ns);
    if (old == nullptr) break;
    time_out(*old, now_ns, sink);
  }
  TrackedPacket tracked;
  tracked.packet = decoded;
  Flow* const flow = has_flow ? flow_of(lookup, tracked, sink) : nullptr;
  if (flow == nullptr) {
    sink.packet(tracked);
    return;
  }
  tracked.flow = flow;
  tracked.direction = direction_of(*flow, decoded);
  count(*flow, tracked, lookup.begins_none);
  if (decoded.is_tcp()) {
    track_tcp(*flow, tracked, sink);
  } else {
    sink.packet(tracked);
  }
  flows.note_state(*flow);
}

// A mid-stream packet of an unknown connection, soon after one was evicted, may belong to the evicted one.
bool Tracker::Parts::may_go_on_unseen(const DecodedPacket& packet) const noexcept {
  if (!packet.is_tcp() || given_up_ns == 0) return false;
  const auto& header = *reinterpret_cast<const TcpHeader*>(packet.transport.data());
  if ((header.flags & TcpHeader::kSyn) != 0) return false;
  return packet.timestamp_ns < given_up_ns + std::uint64_t{options.tcp_new_timeout_s} * kNsPerSecond;
}

Flow* Tracker::Parts::flow_of(const FlowLookup& lookup, TrackedPacket& tracked, PacketSink& sink) noexcept {
  const DecodedPacket& packet = tracked.packet;
  Flow* const flow = flows.find(lookup);
  if (flow == nullptr) return begin_flow(lookup, std::nullopt, tracked, sink);
  if (flows.has_timed_out(*flow, packet.timestamp_ns)) {
    time_out(*flow, packet.timestamp_ns, sink);
    return begin_flow(lookup, std::nullopt, tracked, sink);
  }
  if (!packet.is_tcp() || flow->blocked || !TcpTracker::may_begin_another(*flow, packet)) return flow;
  return flow_or_another(*flow, lookup, tracked, sink);
}

Flow* Tracker::Parts::flow_or_another(Flow& flow, const FlowLookup& lookup, TrackedPacket& tracked,
                                      PacketSink& sink) noexcept {
  const DecodedPacket& packet = tracked.packet;
  const Direction direction = direction_of(flow, packet);
  const std::optional<Handshake> handshake = tcp.begins_anew(flow, packet, direction);
  if (!handshake && !tcp.begins_by_syn(flow, packet, direction)) return &flow;
  end(flow, packet.timestamp_ns, sink);
  return begin_flow(lookup, handshake, tracked, sink);
}

Flow* Tracker::Parts::begin_flow(const FlowLookup& lookup, std::optional<Handshake> handshake, TrackedPacket& tracked,
                                 PacketSink& sink) noexcept {
  const DecodedPacket& packet = tracked.packet;
  Flow* flow = nullptr;
  if (lookup.begins_none) return nullptr;
  if (!options.refuse_when_full || !may_go_on_unseen(packet)) {
    flow = flows.add(lookup, packet.timestamp_ns);
    if (flow == nullptr && evict(nullptr, packet.timestamp_ns, sink)) flow = flows.add(lookup, packet.timestamp_ns);
  }
  if (flow == nullptr) {
    if (handshake) tcp.abandon(*handshake);
    ++counters.flow_memory_refused;
    if (options.refuse_when_full) tracked.refused = Refusal::flow_memory;
    return nullptr;
  }
  ++counters.flows;
  keep_slots(*flow);
  if (handshake) tcp.begin(*flow, *handshake, packet.timestamp_ns);
  return flow;
}

Direction Tracker::Parts::direction_of(const Flow& flow, const DecodedPacket& packet) noexcept {
  constexpr std::uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kIcmpV6 = 58, kSctp = 132;
  const auto has_ports = [](std::uint8_t protocol) noexcept {
    return protocol == kTcp || protocol == kUdp || protocol == kSctp;
  };
  // Flows without ports have one direction only, except ICMP.
  if (!has_ports(packet.protocol) && packet.protocol != kIcmp && packet.protocol != kIcmpV6)
    return Direction::to_server;
  const bool by_port = has_ports(packet.protocol) && packet.source.port != packet.destination.port;
  const bool from_client =
      by_port ? packet.source.port == flow.key.client.port : packet.source.address == flow.key.client.address;
  return from_client ? Direction::to_server : Direction::to_client;
}

void Tracker::Parts::count(Flow& flow, TrackedPacket& packet, bool icmp_error) const noexcept {
  flow.last_ns = std::max(flow.last_ns, packet.packet.timestamp_ns);
  Flow::Counts& counts = flow.count(packet.direction);
  ++counts.packets;
  counts.bytes += packet.packet.frame.size();
  if (!icmp_error) flow.seen[static_cast<std::size_t>(packet.direction)] = true;
  if (flow.state == FlowState::established) {
    packet.established = true;
  } else if (flow.key.protocol == 6) {
    packet.established = flow.tcp != nullptr && flow.tcp->established();
  } else if (flow.seen[0] && flow.seen[1]) {
    packet.established = true;
    flow.state = FlowState::established;
  }
}

void Tracker::Parts::track_tcp(Flow& flow, TrackedPacket& packet, PacketSink& sink) noexcept {
  ++counters.tcp_segments;
  if (options.verify_checksums && !checksums_are_right(packet.packet)) {
    if (options.inline_streams) packet.refused = Refusal::invalid;
    sink.packet(packet);
    return;
  }
  packet.encrypted = flow.tcp != nullptr && flow.tcp->encrypted();
  const bool in_handshake = flow.tcp != nullptr && !flow.tcp->established();
  TcpOutcome outcome = tcp.track(flow, packet.packet, packet.direction);
  if (outcome.session_refused) {
    // Evict another connection. The front of the list is never the flow just added, unless it is the only one.
    if (evict(&flow, packet.packet.timestamp_ns, sink)) outcome = tcp.track(flow, packet.packet, packet.direction);
    if (outcome.session_refused) ++counters.stream_memory_refused;
  }
  if (outcome.reversed) {
    // The flow's first packet came from the server: swap the directions.
    std::swap(flow.key.client, flow.key.server);
    std::swap(flow.counts[0], flow.counts[1]);
    std::swap(flow.seen[0], flow.seen[1]);
    packet.direction = opposite(packet.direction);
  }
  // The handshake's last ACK is part of the handshake, but a request in it belongs to the connection (as in Suricata).
  if (in_handshake && flow.tcp->established() && !packet.packet.payload.empty()) packet.established = true;
  // Inline, data in a SYN must be inspected now: the server may accept it before it replies.
  if (options.inline_streams && outcome.payload_in_stream) packet.established = true;
  packet.stream_events = outcome.events;
  if (flow.state == FlowState::closed && flow.tcp != nullptr) flow.end_confirmed = flow.tcp->end_confirmed();
  if (options.inline_streams && outcome.different) {
    packet.refused = Refusal::changed_bytes;
  } else if (options.refuse_when_full && (outcome.session_refused || outcome.bytes_refused)) {
    packet.refused = Refusal::stream_memory;
  } else if (outcome.invalid) {
    packet.refused = Refusal::invalid;
    ++counters.stream_invalid;
  }
  packet.payload_in_stream = outcome.payload_in_stream;
  if (flow.tcp == nullptr) {
    if (!outcome.session_refused) ++counters.tcp_unknown_connection;
    sink.packet(packet);
    return;
  }
  TcpSession& session = *flow.tcp;
  session.set_seam(options.seam_bytes);  // it may have been raised since the session began
  packet.stream_ready = !packet.encrypted && tcp.stream_ready(session, packet.direction, packet.payload_in_stream);
  const TcpStream::Progress before = session.stream(packet.direction).progress();
  sink.packet(packet);
  tcp.settle(session, packet.direction, packet.stream_ready, false, before);
  // No further packet will trigger inspection of the rest of the other direction.
  const Direction other = opposite(packet.direction);
  if (outcome.reset && TcpTracker::has_uninspected(session, other)) {
    inspect_rest(flow, other, packet.packet.timestamp_ns, sink);
  }
}

// The decoder counts wrong IPv4 checksums.
bool Tracker::Parts::checksums_are_right(const DecodedPacket& packet) noexcept {
  if (packet.wrong_ip_checksum) return false;
  if (transport_checksum_is_right(packet, packet.ip_payload.size())) return true;
  ++counters.tcp_invalid_checksums;
  return false;
}

// Sends pseudo-packets without payload to the sink: one, or more if there are more chunks than one inspection offers.
void Tracker::Parts::inspect_rest(Flow& flow, Direction direction, std::uint64_t time_ns, PacketSink& sink) noexcept {
  TrackedPacket packet;
  const bool to_server = direction == Direction::to_server;
  packet.packet.timestamp_ns = time_ns;
  packet.packet.ip_version = flow.key.ip_version;
  packet.packet.protocol = flow.key.protocol;
  packet.packet.source = to_server ? flow.key.client : flow.key.server;
  packet.packet.destination = to_server ? flow.key.server : flow.key.client;
  packet.packet.vlan_ids = flow.key.vlan_ids;
  while (packet.packet.vlan_count < flow.key.vlan_ids.size() && flow.key.vlan_ids[packet.packet.vlan_count] != 0) {
    ++packet.packet.vlan_count;
  }
  packet.packet.tunnel_depth = flow.key.tunnel_depth;
  packet.flow = &flow;
  packet.direction = direction;
  packet.established = true;
  packet.stream_end = true;
  const TcpStream& stream = flow.tcp->stream(direction);
  for (bool more = true; more;) {
    const TcpStream::Progress before = stream.progress();
    packet.stream_ready = TcpTracker::has_uninspected(*flow.tcp, direction);
    sink.packet(packet);
    tcp.settle(*flow.tcp, direction, true, true, before);
    more = stream.progress() != before && TcpTracker::has_uninspected(*flow.tcp, direction);
  }
}

void Tracker::Parts::end(Flow& flow, std::uint64_t time_ns, PacketSink& sink) noexcept {
  if (flow.tcp != nullptr) {
    const TcpState state = flow.tcp->state();
    const bool open = state >= TcpState::established && state != TcpState::closed;
    for (const Direction direction : {Direction::to_server, Direction::to_client}) {
      if (open || TcpTracker::has_uninspected(*flow.tcp, direction)) inspect_rest(flow, direction, time_ns, sink);
    }
  }
  sink.flow_ended(flow);
  tcp.release(flow);
  flows.remove(flow);
  ++counters.flows_ended;
}

void Tracker::Parts::time_out(Flow& flow, std::uint64_t time_ns, PacketSink& sink) noexcept {
  if (flow.tcp != nullptr && flow.state == FlowState::established) ++counters.tcp_idle_timeouts;
  if (flow.tcp != nullptr && flow.state == FlowState::new_flow) ++counters.handshake_timeouts;
  end(flow, time_ns, sink);
}

bool Tracker::Parts::evict(const Flow* but, std::uint64_t time_ns, PacketSink& sink) noexcept {
  Flow* const flow = flows.victim(options.refuse_when_full);
  if (flow == nullptr || flow == but) return false;
  if (flow->key.protocol == 6 && flow->state != FlowState::closed) given_up_ns = time_ns;
  ++counters.flows_evicted;
  end(*flow, time_ns, sink);
  return true;
}

void Tracker::refuse_frame() noexcept { parts_->decoder.refuse_completed(); }

void Tracker::expire(std::uint64_t now_ns, PacketSink& sink) noexcept {
  Parts& parts = *parts_;
  if (now_ns > parts.now_ns) parts.now_ns = now_ns;
  parts.decoder.expire(parts.now_ns);
  while (Flow* const flow = parts.flows.expired(parts.now_ns)) parts.time_out(*flow, parts.now_ns, sink);
}

void Tracker::finish(PacketSink& sink) noexcept {
  Parts& parts = *parts_;
  while (Flow* const flow = parts.flows.any()) parts.end(*flow, parts.now_ns, sink);
}

}  // namespace penstock::stack
