// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the start of a connection: SYNs and SYN/ACKs that the host does not accept, data in them, packets before
// them.

#include <algorithm>
#include <array>

#include "evasion/draft.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

/// SYNs (SYN/ACKs if the attacker is the server) with other numbers that the host never sees, before the real one.
void syn_decoys(Draft& draft, std::string_view name) {
  const std::uint64_t count = draft.random.percent(70) ? 1 : 1 + draft.random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t position = draft.handshake();
    Packet packet = draft.script.steps[position].packet;
    packet.connection = draft.add_connection();
    if (draft.random.percent(20)) packet.flags |= tcp::kEce | tcp::kCwr;
    draft.hide(packet);
    draft.insert(position, packet, name);
  }
}

/// Likewise after the real one, before or after the end of the handshake.
void syn_decoys_later(Draft& draft, std::string_view name) {
  const std::uint64_t count = draft.random.percent(70) ? 1 : 1 + draft.random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t real = draft.handshake();
    Packet packet = draft.script.steps[real].packet;
    if (draft.random.percent(80)) packet.connection = draft.add_connection();
    if (draft.random.percent(70)) draft.hide(packet);
    const std::size_t end = draft.random.percent(50) ? draft.established() : draft.resend();
    draft.insert(real + 1 + draft.random.below(end - real), packet, name);
  }
}

/// The same number again with other options, mostly hidden from the host: which options does the connection have?
void syn_again(Draft& draft, std::string_view name) {
  const std::size_t position = draft.handshake();
  Packet packet = draft.script.steps[position].packet;
  packet.connection = draft.add_connection();
  Random& random = draft.random;
  Connection& other = draft.script.connections[packet.connection];
  other.isn = draft.connection().isn;
  other.timestamps = random.percent(50);
  other.window_scale = random.percent(50);
  other.scale = static_cast<std::uint8_t>(random.below(15));
  if (random.percent(30)) packet.timestamp_shift = random.between(-1'000'000, 0x7fffff00);
  if (random.percent(10)) packet.timestamp_zero = true;
  if (random.percent(75)) draft.hide(packet);
  draft.insert(position + (random.percent(70) ? 0 : 1), packet, name);
}

/// Packets on the connection's addresses and ports before it begins.
void stray_first(Draft& draft, std::string_view name) {
  Random& random = draft.random;
  if (draft.script.role == HostRole::client && draft.script.host_port == 0) {
    draft.script.host_port = static_cast<std::uint16_t>(random.between(1024, 65535));  // the attacker has to guess it
  }
  const std::uint64_t count = 1 + random.below(2);
  for (std::uint64_t i = 0; i < count; ++i) {
    constexpr std::array<std::uint8_t, 6> kFlags = {
        tcp::kAck, tcp::kAck | tcp::kPsh, tcp::kRst, tcp::kSyn | tcp::kAck, tcp::kFin | tcp::kAck, tcp::kPsh};
    Packet packet = draft.decoy(random.between(-2, 2), random.percent(50) ? 0 : random.between(1, 30));
    packet.flags = random.pick(std::span<const std::uint8_t>(kFlags));
    packet.acknowledges = Acknowledges::zero;
    packet.ack_shift = static_cast<std::int64_t>(random.word());
    if (random.percent(40)) draft.hide(packet);
    draft.insert(0, packet, name);
  }
  if (random.percent(10)) draft.insert(count, Step::Kind::pause, 61, name);
}

/// Packets that appear to come from the host. A sensor that sees both directions on one wire cannot tell.
void spoofed(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Random& random = draft.random;
  Packet packet = segment(draft.attacked, draft.script.steps[*position].packet.at, tcp::kAck);
  packet.spoofed = true;
  constexpr std::array<std::uint8_t, 5> kFlags = {tcp::kRst, tcp::kRst | tcp::kAck, tcp::kFin | tcp::kAck, tcp::kAck,
                                                  tcp::kSyn | tcp::kAck};
  packet.flags = random.pick(std::span<const std::uint8_t>(kFlags));
  if (packet.flags == tcp::kAck) packet.at += random.between(0, 2000);
  if (random.percent(30)) packet.payload = Bytes(static_cast<std::size_t>(random.between(1, 30)), '#');
  draft.insert(*position, packet, name);
}

/// A SYN that the host answers, then a RST for it.
void syn_then_rst(Draft& draft, std::string_view name) {
  if (!draft.is_server()) return;
  const std::size_t position = draft.handshake();
  Packet syn = draft.script.steps[position].packet;
  const std::uint8_t connection = syn.connection = draft.add_connection();
  draft.insert(position, syn, name);
  Packet rst = segment(connection, 0, tcp::kRst);
  if (draft.random.percent(50)) rst.flags |= tcp::kAck;
  if (draft.random.percent(20)) rst.timestamp_shift = -100'000;
  draft.insert(position + 1, rst, name);
}

void syn_with_data(Draft& draft, std::string_view name) {
  Packet& syn = draft.change(draft.handshake(), name);
  const std::int64_t length = draft.random.between(1, 60);
  syn.payload = draft.random.percent(70) ? draft.decoy(0, length).payload : draft.data(0, length).payload;
  if (draft.random.percent(30)) syn.options = {34, 2, 1, 1};  // requests a TCP Fast Open cookie
  if (draft.random.percent(20)) syn.options = {34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1};
  if (draft.random.percent(10)) {
    syn.flags |= tcp::kUrg;
    syn.urgent = 1;
  }
}

/// The SYN's number is a little higher than the connection's: a host that answers with a SYN cookie may accept the ACK.
void syn_shifted(Draft& draft, std::string_view name) {
  if (draft.is_server()) draft.change(draft.handshake(), name).at += draft.random.between(1, 4);
}

void syn_odd(Draft& draft, std::string_view name) {
  Draft& d = draft;
  Packet& syn = d.change(d.handshake(), name);
  switch (d.random.below(5)) {
    case 0: syn.flags |= tcp::kEce | tcp::kCwr; break;
    case 1: syn.flags |= tcp::kPsh; break;
    case 2: syn.timestamp_zero = true; break;
    case 3: syn.window = static_cast<std::uint16_t>(d.random.below(3)); break;
    default: syn.options = {3, 3, 14, 1}; break;
  }
}

/// The ACK that ends the handshake is omitted or comes late; data complete the handshake instead.
void without_handshake_ack(Draft& draft, std::string_view name) {
  if (!draft.is_server()) return;
  for (std::size_t i = draft.handshake() + 1; i < draft.script.steps.size(); ++i) {
    const Step& step = draft.script.steps[i];
    if (step.kind != Step::Kind::packet || step.genuine) return;
    if (!step.move.empty() || step.handshake || step.packet.flags != tcp::kAck) continue;
    const Packet ack = step.packet;
    draft.erase(i);
    if (draft.random.percent(50)) draft.insert(i + 1 + draft.random.below(3), ack, name);
    return;
  }
}

/// Data with numbers that the host does not accept, before the handshake ends.
void early_data(Draft& draft, std::string_view name) {
  const std::size_t real = draft.handshake();
  Packet packet = draft.decoy(draft.random.between(0, 3), draft.random.between(1, 40));
  switch (draft.random.below(5)) {
    case 0: packet.ack_shift = draft.random.between(-3, 3); break;
    case 1: packet.flags = tcp::kPsh; break;
    case 2: draft.hide(packet); break;
    case 3: packet.timestamp_shift = -1'000'000; break;
    default: packet.at += 1 << 20; break;
  }
  draft.insert(real + 1, packet, name);
}

/// A RST or FIN that the host does not accept, soon after the SYN.
void early_rst(Draft& draft, std::string_view name) {
  const std::size_t real = draft.handshake();
  Packet packet = segment(draft.attacked, draft.random.between(-1, 2), tcp::kRst);
  if (draft.random.percent(50)) packet.flags |= tcp::kAck;
  if (draft.random.percent(20)) packet.flags = tcp::kFin | tcp::kAck;
  if (draft.random.percent(60)) {
    draft.hide(packet);
  } else if (draft.is_server()) {
    packet.at = draft.random.percent(50) ? 1'000'000 : -1000;
  } else {
    packet.ack_shift = draft.random.between(1, 1000);
  }
  const bool ahead = !draft.is_server() && draft.random.percent(50);
  draft.insert(ahead ? real : real + 1, packet, name);
}

void synack_with_data(Draft& draft, std::string_view name) {
  if (draft.is_server()) return;
  syn_with_data(draft, name);
}

/// The server answers with a SYN, as in a simultaneous open.
void split_handshake(Draft& draft, std::string_view name) {
  if (draft.is_server()) return;
  const std::size_t position = draft.handshake();
  Packet& synack = draft.change(position, name);
  if (synack.flags != (tcp::kSyn | tcp::kAck)) return;
  Packet again = synack;
  synack.flags = tcp::kSyn;
  synack.acknowledges = Acknowledges::zero;
  switch (draft.random.below(3)) {
    case 0: draft.insert(position + 1, segment(draft.attacked, 0, tcp::kAck), name); break;
    case 1: draft.insert(position + 1, again, name); break;
    default: break;
  }
  if (draft.random.percent(30)) draft.insert(position, segment(draft.attacked, 0, tcp::kAck), name);
}

void synack_wrong_ack(Draft& draft, std::string_view name) {
  if (draft.is_server()) return;
  const std::size_t position = draft.handshake();
  Packet synack = draft.script.steps[position].packet;
  synack.connection = draft.add_connection();
  synack.ack_shift = draft.random.between(-2, 2);
  draft.insert(position, synack, name);
}

void odd_synack_echo(Draft& draft, std::string_view name) {
  if (draft.is_server()) return;
  Packet& synack = draft.change(draft.handshake(), name);
  if (draft.random.percent(50)) {
    synack.echo_zero = true;
  } else {
    synack.echo_shift = draft.random.between(-100'000, 100'000);
  }
}

constexpr Move kMoves[] = {
    {"syn_decoys", 4, For::tcp, &syn_decoys},
    {"syn_decoys_later", 4, For::tcp, &syn_decoys_later},
    {"syn_again", 3, For::tcp, &syn_again},
    {"stray_first", 3, For::tcp, &stray_first},
    {"spoofed", 0, For::tcp, &spoofed},
    {"syn_then_rst", 3, For::tcp, &syn_then_rst},
    {"syn_with_data", 3, For::tcp, &syn_with_data},
    {"syn_shifted", 1, For::tcp, &syn_shifted},
    {"syn_odd", 2, For::tcp, &syn_odd},
    {"without_handshake_ack", 3, For::tcp, &without_handshake_ack},
    {"early_data", 3, For::tcp, &early_data},
    {"early_rst", 3, For::tcp, &early_rst},
    {"synack_with_data", 1, For::tcp, &synack_with_data},
    {"split_handshake", 2, For::tcp, &split_handshake},
    {"synack_wrong_ack", 2, For::tcp, &synack_wrong_ack},
    {"odd_synack_echo", 1, For::tcp, &odd_synack_echo},
};

}  // namespace

std::span<const Move> handshake_moves() { return kMoves; }

}  // namespace penstock::evasion
