// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attacks on a connection's course and end: FINs, data from the host, pauses, another connection on the same ports.

#include <algorithm>
#include <array>

#include "evasion/draft.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

void end_earlier(Draft& draft, std::uint8_t connection, std::int64_t size, std::size_t& at, std::string_view name) {
  Random& random = draft.random;
  const auto add = [&](Packet packet) { draft.insert(at++, std::move(packet), name); };
  const auto add_step = [&](Step::Kind kind) { draft.insert(at++, kind, 0, name); };
  switch (random.below(8)) {
    case 0: {  // a valid RST
      Packet rst = segment(connection, size, random.percent(50) ? tcp::kRst : tcp::kRst | tcp::kAck);
      if (random.percent(30)) rst.timestamp_shift = -1'000'000;
      if (random.percent(20)) rst.ack_shift = random.between(-70'000, 70'000);
      if (random.percent(20)) rst.payload = {'#', '#'};
      add(rst);
      break;
    }
    case 1:  // a RST at the end of data that follow a hole
      add(segment(connection, size + 10, tcp::kAck, "##########"));
      add(segment(connection, size + 20, tcp::kRst));
      break;
    case 2: {  // the attacker closes first
      add(segment(connection, size, tcp::kFin | tcp::kAck));
      add_step(Step::Kind::host_closes);
      add(segment(connection, size + 1, tcp::kAck));
      break;
    }
    case 3: {  // the host closes first: TIME_WAIT
      add_step(Step::Kind::host_closes);
      add(segment(connection, size, tcp::kAck));
      add(segment(connection, size, tcp::kFin | tcp::kAck));
      break;
    }
    case 4:  // both close at once
      add_step(Step::Kind::host_shuts);
      add(segment(connection, size, tcp::kFin | tcp::kAck));
      add_step(Step::Kind::host_closes);
      break;
    case 5: {  // closed, and a RST after the FIN
      add(segment(connection, size, tcp::kFin | tcp::kAck));
      add(segment(connection, size + static_cast<std::int64_t>(random.below(2)), tcp::kRst));
      break;
    }
    case 6: {  // the host aborts: data arrive that nobody reads
      add_step(Step::Kind::host_closes);
      add(segment(connection, size, tcp::kAck, "####"));
      break;
    }
    default: {  // TIME_WAIT, and a RST in that state
      add_step(Step::Kind::host_closes);
      add(segment(connection, size, tcp::kFin | tcp::kAck));
      add(segment(connection, size + 1, tcp::kAck));
      if (random.percent(60)) add(segment(connection, size + 1, tcp::kRst));
      break;
    }
  }
}

void fin_early(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  Random& random = draft.random;
  Packet fin = draft.decoy(target.at, random.percent(50) ? 0 : random.between(1, 8));
  fin.flags = tcp::kFin | (random.percent(85) ? tcp::kAck : std::uint8_t{0});
  switch (random.below(6)) {
    case 0: fin.dies = true; break;
    case 1: fin.wrong_checksum = true; break;
    case 2: fin.at += random.between(70'000, 1 << 20); break;                    // outside the window
    case 3: fin.at = random.between(target.at + 1, draft.stream_size()); break;  // after a hole
    case 4: fin.at -= random.between(1, 2); break;
    default: fin.ack_shift = random.between(-3, 100'000); break;
  }
  draft.insert(*position, fin, name);
}

void host_speaks(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  draft.insert_write(*position, std::string(static_cast<std::size_t>(draft.random.between(1, 2000)), '.'), name);
}

/// The host's application shuts down its side, and continues reading.
void host_shuts(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  draft.insert(*position, Step::Kind::host_shuts, 0, name);
  if (!draft.random.percent(50)) return;
  Packet fin;  // the attacker appears to do the same
  fin.connection = draft.attacked;
  fin.at = draft.stream_size() + draft.random.between(0, 10);
  fin.flags = tcp::kFin | tcp::kAck;
  if (draft.random.percent(50)) {
    fin.dies = true;
    fin.at = draft.script.steps[*position + 1].packet.at;
  }
  draft.insert(*position + 1 + draft.random.below(2), fin, name);
}

/// ACKs from the attacker while the host answers.
void answer_acks(Draft& draft, std::string_view name) {
  std::vector<std::size_t> writes;
  for (std::size_t i = 0; i < draft.script.steps.size(); ++i) {
    if (draft.script.steps[i].kind == Step::Kind::host_writes) writes.push_back(i);
  }
  if (writes.empty()) return;
  Random& random = draft.random;
  const std::size_t position = writes[random.below(writes.size())];
  Packet ack = draft.data(draft.stream_size() + (random.percent(70) ? 0 : random.between(-2, 2)), 0);
  ack.flags = tcp::kAck;
  constexpr std::array<std::int64_t, 8> kShifts = {1, 100, 1000, 100'000, -1, -100, -100'000, 0x7fffffff};
  ack.ack_shift = random.pick(std::span<const std::int64_t>(kShifts));
  if (random.percent(30)) ack.flags = random.percent(50) ? tcp::kFin | tcp::kAck : tcp::kRst | tcp::kAck;
  switch (random.below(4)) {
    case 0: ack.dies = true; break;
    case 1: ack.wrong_checksum = true; break;
    case 2: ack.window = static_cast<std::uint16_t>(random.below(3)); break;
    default: break;
  }
  draft.insert(position + random.below(2), ack, name);
}

void idle(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  constexpr std::array<std::uint32_t, 5> kSeconds = {11, 61, 301, 601, 3601};
  draft.insert(*position, Step::Kind::pause, draft.random.pick(std::span<const std::uint32_t>(kSeconds)), name);
}

void short_pause(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  draft.insert(*position, Step::Kind::pause, static_cast<std::uint32_t>(draft.random.between(1, 9)), name);
}

void earlier_connection(Draft& draft, std::string_view name) {
  if (!draft.is_server()) return;
  const std::int64_t size = draft.random.between(0, 60);
  const std::uint8_t connection = draft.add_connection(Bytes(static_cast<std::size_t>(size), '-'));
  Connection& earlier = draft.script.connections[connection];
  // In TIME_WAIT, a host accepts a SYN with higher numbers.
  if (draft.random.percent(80)) {
    earlier.isn = draft.connection().isn - 100 - static_cast<std::uint32_t>(draft.random.below(200'000));
  }
  std::size_t at = draft.handshake();
  Packet syn = draft.script.steps[at].packet;
  syn.connection = connection;
  draft.insert(at++, syn, name);
  draft.insert(at++, segment(connection, 0, tcp::kAck), name);
  if (size > 0)
    draft.insert(at++, segment(connection, 0, tcp::kAck | tcp::kPsh, std::string(static_cast<std::size_t>(size), '-')),
                 name);
  draft.insert(at++, Step::Kind::host_reads, 0, name);
  end_earlier(draft, connection, size, at, name);
}

/// The connection appears to end and restart; the sensor sees this, but the host does not.
void false_restart(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  std::size_t at = *position;
  Packet end = segment(draft.attacked, target.at, draft.random.percent(60) ? tcp::kRst : tcp::kFin | tcp::kAck);
  draft.hide(end);
  draft.insert(at++, end, name);
  if (draft.random.percent(30)) draft.insert(at++, Step::Kind::pause, 61, name);
  Packet syn = draft.script.steps[draft.handshake()].packet;
  syn.connection = draft.add_connection();
  if (draft.random.percent(70)) draft.hide(syn);
  draft.insert(at++, syn, name);
  if (draft.random.percent(50)) {
    Packet ack = segment(syn.connection, 0, tcp::kAck, draft.random.percent(50) ? "####" : "");
    draft.hide(ack);
    draft.insert(at++, ack, name);
  }
}

constexpr Move kMoves[] = {
    {"fin_early", 5, For::tcp, &fin_early},
    {"host_speaks", 4, For::tcp, &host_speaks},
    {"host_shuts", 3, For::tcp, &host_shuts},
    {"answer_acks", 3, For::tcp, &answer_acks},
    {"idle", 0, For::tcp, &idle},
    {"short_pause", 2, For::tcp, &short_pause},
    {"earlier_connection", 5, For::tcp, &earlier_connection},
    {"false_restart", 4, For::tcp, &false_restart},
};

}  // namespace

std::span<const Move> course_moves() { return kMoves; }

}  // namespace penstock::evasion
