// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/generator.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "evasion/draft.h"
#include "evasion/kernel_host.h"
#include "evasion/signatures.h"

namespace penstock::evasion {

namespace {

Bytes filler_around(const std::string& signature, Random& random, std::size_t count) {
  return random.percent(15) ? pieces_of(signature, random, count) : filler(random, count);
}

/// Mostly short; sometimes longer than what is inspected at once.
std::size_t filler_size(Random& random) {
  const std::uint64_t kind = random.below(10);
  return static_cast<std::size_t>(kind < 4   ? random.below(8)
                                  : kind < 8 ? random.below(120)
                                  : kind < 9 ? random.below(1200)
                                             : random.below(4000));
}

Bytes stream_with(const std::string& signature, Random& random) {
  Bytes stream = filler_around(signature, random, filler_size(random));
  stream.insert(stream.end(), signature.begin(), signature.end());
  const Bytes rest = filler_around(signature, random, filler_size(random));
  stream.insert(stream.end(), rest.begin(), rest.end());
  return stream;
}

Connection connection_with(Bytes stream, Random& random) {
  Connection connection;
  connection.stream = std::move(stream);
  connection.isn = random.percent(25) ? static_cast<std::uint32_t>(-1 - random.between(0, 3000)) : random.word();
  connection.timestamps = random.percent(60);
  connection.sack = random.percent(70);
  connection.window_scale = random.percent(70);
  connection.scale = static_cast<std::uint8_t>(random.below(15));
  return connection;
}

std::int64_t segment_size(Random& random) {
  const std::uint64_t kind = random.below(10);
  return kind < 2 ? random.between(1, 4) : kind < 7 ? random.between(2, 40) : random.between(100, 1400);
}

void add_handshake(Draft& draft) {
  Packet first;
  first.at = -1;
  first.flags = tcp::kSyn;
  first.acknowledges = Acknowledges::zero;
  first.handshake_options = true;
  if (draft.script.role == HostRole::client) {
    draft.insert(draft.script.steps.size(), Step::Kind::host_connects, 0, {});
    first.flags = tcp::kSyn | tcp::kAck;
    first.acknowledges = Acknowledges::latest;
    draft.insert(draft.script.steps.size(), first, {});
    draft.script.steps.back().handshake = true;
    return;
  }
  draft.insert(draft.script.steps.size(), first, {});
  draft.script.steps.back().handshake = true;
  Packet ack;
  ack.flags = tcp::kAck;
  draft.insert(draft.script.steps.size(), ack, {});
}

void add_data(Draft& draft) {
  Random& random = draft.random;
  for (std::int64_t at = 0; at < draft.stream_size();) {
    const std::int64_t length = std::min(segment_size(random), draft.stream_size() - at);
    draft.insert(draft.script.steps.size(), draft.data(at, length), {});
    draft.script.steps.back().genuine = true;
    if (random.percent(15)) draft.insert(draft.script.steps.size(), Step::Kind::host_reads, 0, {});
    at += length;
  }
  draft.insert(draft.script.steps.size(), Step::Kind::resend, draft.attacked, {});
}

/// The host's server answers with the signature; the attacker acknowledges it piece by piece.
void add_answer(Draft& draft) {
  Random& random = draft.random;
  const auto text = [&](std::size_t size) {
    const Bytes bytes = filler(random, size);
    return std::string(bytes.begin(), bytes.end());
  };
  const std::string answer = text(filler_size(random)) + draft.script.signature_text + text(filler_size(random));
  Packet ack = draft.data(draft.stream_size(), 0);
  ack.flags = tcp::kAck;
  for (std::size_t at = 0; at < answer.size();) {
    const auto size = static_cast<std::size_t>(random.percent(50) ? random.between(1, 20) : random.between(20, 3000));
    draft.insert_write(draft.script.steps.size(), answer.substr(at, size), {});
    if (random.percent(60)) draft.insert(draft.script.steps.size(), ack, {});
    at += size;
  }
  draft.insert(draft.script.steps.size(), ack, {});
}

void add_close(Draft& draft) {
  if (draft.random.percent(40)) return;
  Packet fin;
  fin.at = draft.stream_size();
  fin.flags = tcp::kFin | tcp::kAck;
  draft.insert(draft.script.steps.size(), fin, {});
  draft.insert(draft.script.steps.size(), Step::Kind::host_closes, 0, {});
  fin.at += 1;
  fin.flags = tcp::kAck;
  draft.insert(draft.script.steps.size(), fin, {});
}

void write_tcp(Draft& draft) {
  Random& random = draft.random;
  Script& script = draft.script;
  if (script.signature == SignatureKind::to_client) {
    script.role = HostRole::client;
  } else if (script.signature != SignatureKind::established && script.signature != SignatureKind::from_host &&
             random.percent(30)) {
    script.role = HostRole::client;
  }
  if (script.role == HostRole::client) {
    script.host_port = random.percent(50) ? std::uint16_t{0} : static_cast<std::uint16_t>(random.between(1024, 65535));
  } else {
    script.host_port = random.percent(90)   ? std::uint16_t{80}
                       : random.percent(50) ? std::uint16_t{81}
                                            : std::uint16_t{82};
  }
  script.reads_at_once = random.percent(40);
  const bool answered = script.signature == SignatureKind::from_host;
  Bytes stream = answered ? filler(random, 1 + random.below(40)) : stream_with(script.signature_text, random);
  script.connections.push_back(connection_with(std::move(stream), random));
  add_handshake(draft);
  add_data(draft);
  if (answered) add_answer(draft);
  add_close(draft);
}

void write_udp(Draft& draft) {
  Random& random = draft.random;
  Script& script = draft.script;
  script.host_port = random.percent(70) ? KernelHost::kUdpPorts[0] : random.pick(KernelHost::kUdpPorts);
  Packet packet;
  packet.protocol = 17;
  packet.payload = filler(random, random.percent(2) ? random.below(40'000) : filler_size(random) / 3);
  packet.payload.insert(packet.payload.end(), script.signature_text.begin(), script.signature_text.end());
  const Bytes rest = filler(random, filler_size(random) / 3);
  packet.payload.insert(packet.payload.end(), rest.begin(), rest.end());
  draft.insert(0, packet, {});
  script.steps.back().genuine = true;
}

std::vector<const Move*> moves_for(const GeneratorOptions& options, bool udp) {
  std::vector<const Move*> chosen;
  const auto named = [](const std::vector<std::string>& names, std::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& one) { return name.starts_with(one); });
  };
  for (const Move* move : all_moves()) {
    if (udp ? move->protocol == Move::For::tcp : move->protocol == Move::For::udp) continue;
    if (options.only.empty() ? move->weight == 0 : !named(options.only, move->name)) continue;
    if (named(options.except, move->name)) continue;
    chosen.push_back(move);
  }
  return chosen;
}

const Move& pick_move(const std::vector<const Move*>& moves, Random& random) {
  const auto weight = [](const Move* move) { return std::max(1U, move->weight); };
  std::uint64_t sum = 0;
  for (const Move* move : moves) sum += weight(move);
  std::uint64_t at = random.below(sum);
  for (const Move* move : moves) {
    if (at < weight(move)) return *move;
    at -= weight(move);
  }
  return *moves.front();
}

/// Whether the host, and the sensor too, certainly takes it as the end of the handshake.
bool establishes(const Step& step, std::uint8_t attacked) {
  const Packet& packet = step.packet;
  return step.kind == Step::Kind::packet && packet.connection == attacked && packet.at == 0 &&
         (packet.flags & ~tcp::kPsh) == tcp::kAck && packet.acknowledges == Acknowledges::latest &&
         packet.ack_shift == 0 && packet.timestamp == TimestampOption::as_agreed && packet.timestamp_shift == 0 &&
         !packet.timestamp_zero && !packet.dies && !packet.spoofed && !packet.wrong_checksum &&
         !packet.wrong_ip_checksum && packet.ip_length_shift == 0 && !packet.data_offset && packet.fragments.empty();
}

/// By default, a handshake that takes a minute times out (`tcp_new_timeout`).
void shorten_pauses_of_handshakes(Script& script, std::uint8_t attacked) {
  constexpr std::uint32_t kLong = 60, kShort = 31;
  // With these moves, the first ACK may not end the handshake.
  constexpr std::array<std::string_view, 4> kOdd = {"syn_shifted", "split_handshake", "without_handshake_ack",
                                                    "early_data"};
  const bool is_odd = std::any_of(script.moves.begin(), script.moves.end(), [&](std::string_view move) {
    return std::find(kOdd.begin(), kOdd.end(), move) != kOdd.end();
  });
  bool established = false;
  for (Step& step : script.steps) {
    established = established || (!is_odd && establishes(step, attacked));
    if (step.kind == Step::Kind::pause && step.number >= kLong && !established) step.number = kShort;
  }
}

}  // namespace

Script generate(std::uint64_t seed, std::uint64_t index, const GeneratorOptions& options) {
  Random random(seed, index);
  Draft draft{.random = random};
  Script& script = draft.script;
  script.signature = random.percent(12)  ? SignatureKind::udp
                     : random.percent(8) ? SignatureKind::from_host
                                         : static_cast<SignatureKind>(random.below(5));
  script.v6 = options.ipv6 && random.percent(30);
  script.signature_text = signature_text(script.signature, random);
  if (options.innocent) script.signature_text = "harmless" + std::string(script.signature_text.size() - 8, '=');
  script.timing = random.next();
  script.in_pages = random.percent(40);
  const std::uint64_t kind_of_port = random.below(50);
  script.attacker_port = static_cast<std::uint16_t>(kind_of_port == 0   ? 80
                                                    : kind_of_port == 1 ? random.between(1, 1023)
                                                                        : random.between(1024, 65535));
  script.ttl = random.percent(50) ? std::uint8_t{64} : static_cast<std::uint8_t>(random.between(3, 255));
  script.ttl_dying = static_cast<std::uint8_t>(random.percent(50) ? script.ttl - 1 : random.between(1, script.ttl - 1));
  const bool udp = script.signature == SignatureKind::udp;
  if (udp) {
    write_udp(draft);
  } else {
    write_tcp(draft);
  }
  const std::vector<const Move*> moves = moves_for(options, udp);
  const std::uint64_t count = random.percent(3) || moves.empty() ? 0 : 1 + random.below(options.most_moves);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Move& move = pick_move(moves, random);
    script.moves.push_back(move.name);
    move.apply(draft, move.name);
  }
  if (options.only.empty()) shorten_pauses_of_handshakes(script, draft.attacked);
  return std::move(script);
}

}  // namespace penstock::evasion
