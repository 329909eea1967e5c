// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/draft.h"

#include <algorithm>
#include <utility>

namespace penstock::evasion {

Bytes filler(Random& random, std::size_t count) {
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>('a' + random.below(26));
  return bytes;
}

Bytes pieces_of(const std::string& signature, Random& random, std::size_t count) {
  Bytes bytes;
  while (bytes.size() < count) {
    const std::size_t from = random.percent(70) ? 0 : random.below(signature.size() - 1);
    const std::size_t most = std::min(signature.size() - from, signature.size() - 1);
    const auto begin = signature.begin() + static_cast<std::ptrdiff_t>(from);
    bytes.insert(bytes.end(), begin, begin + 1 + static_cast<std::ptrdiff_t>(random.below(most)));
    bytes.push_back('/');
  }
  bytes.resize(count);
  return bytes;
}

Packet segment(std::uint8_t connection, std::int64_t at, std::uint8_t flags, std::string_view text) {
  Packet packet;
  packet.connection = connection;
  packet.at = at;
  packet.flags = flags;
  packet.payload.assign(text.begin(), text.end());
  return packet;
}

Packet Draft::data(std::int64_t at, std::int64_t length) const {
  Packet packet;
  packet.connection = attacked;
  packet.at = at;
  for (std::int64_t i = at; i < at + length; ++i) {
    packet.payload.push_back(i >= 0 && i < stream_size() ? connection().stream[static_cast<std::size_t>(i)]
                                                         : std::uint8_t{'.'});
  }
  return packet;
}

Packet Draft::decoy(std::int64_t at, std::int64_t length) const {
  Packet packet = data(at, length);
  if (random.percent(85)) {
    std::fill(packet.payload.begin(), packet.payload.end(), std::uint8_t{'#'});
  } else if (random.percent(50)) {
    packet.payload = filler(random, packet.payload.size());
  } else {
    packet.payload = pieces_of(script.signature_text, random, packet.payload.size());
  }
  return packet;
}

std::vector<std::size_t> Draft::genuine() const {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    if (script.steps[i].genuine) positions.push_back(i);
  }
  return positions;
}

std::optional<std::size_t> Draft::any_genuine() const {
  const auto positions = genuine();
  if (positions.empty()) return {};
  return positions[random.below(positions.size())];
}

std::optional<std::size_t> Draft::signature_step() const {
  if (script.connections.empty() || random.percent(30)) return any_genuine();
  const Bytes& stream = connection().stream;
  const auto found =
      std::search(stream.begin(), stream.end(), script.signature_text.begin(), script.signature_text.end());
  const std::int64_t begin = found - stream.begin();
  const auto end = begin + static_cast<std::int64_t>(script.signature_text.size());
  std::vector<std::size_t> positions = genuine();
  std::erase_if(positions, [&](std::size_t i) {
    const Packet& packet = script.steps[i].packet;
    return packet.at >= end || packet.at + static_cast<std::int64_t>(packet.payload.size()) <= begin;
  });
  if (positions.empty()) return any_genuine();
  return positions[random.below(positions.size())];
}

std::size_t Draft::handshake() const {
  const auto found =
      std::find_if(script.steps.begin(), script.steps.end(), [](const Step& step) { return step.handshake; });
  return found == script.steps.end() ? 0 : static_cast<std::size_t>(found - script.steps.begin());
}

std::size_t Draft::established() const {
  const auto positions = genuine();
  const std::size_t from = handshake() + 1;
  return positions.empty() ? from : std::max(from, positions.front());
}

std::size_t Draft::resend() const {
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    if (script.steps[i].kind == Step::Kind::resend) return i;
  }
  return script.steps.size();
}

void Draft::insert(std::size_t position, Packet packet, std::string_view move) {
  Step step;
  step.packet = std::move(packet);
  if (step.packet.protocol == 6 && move.empty()) step.packet.connection = attacked;
  step.move = move;
  script.steps.insert(script.steps.begin() + static_cast<std::ptrdiff_t>(std::min(position, script.steps.size())),
                      std::move(step));
}

void Draft::insert(std::size_t position, Step::Kind kind, std::uint32_t number, std::string_view move) {
  Step step;
  step.kind = kind;
  step.number = number;
  step.move = move;
  script.steps.insert(script.steps.begin() + static_cast<std::ptrdiff_t>(std::min(position, script.steps.size())),
                      std::move(step));
}

void Draft::insert_write(std::size_t position, std::string text, std::string_view move) {
  insert(position, Step::Kind::host_writes, 0, move);
  script.steps[std::min(position, script.steps.size() - 1)].text = std::move(text);
}

void Draft::erase(std::size_t position) {
  script.steps.erase(script.steps.begin() + static_cast<std::ptrdiff_t>(position));
}

std::uint8_t Draft::add_connection(Bytes stream) {
  Connection other = connection();
  other.isn = random.word();
  other.stream = std::move(stream);
  if (random.percent(40)) other.timestamps = !other.timestamps;
  if (random.percent(20)) other.window_scale = !other.window_scale;
  script.connections.push_back(std::move(other));
  return static_cast<std::uint8_t>(script.connections.size() - 1);
}

void Draft::hide(Packet& packet) const {
  switch (random.below(script.v6 ? 2 : 3)) {
    case 0: packet.dies = true; break;
    case 1: packet.wrong_checksum = true; break;
    default: packet.wrong_ip_checksum = true; break;
  }
}

void Draft::lengthen_stream(std::int64_t at, const Bytes& bytes) {
  Connection& stretched = script.connections[attacked];
  at = std::clamp<std::int64_t>(at, 0, stream_size());
  stretched.stream.insert(stretched.stream.begin() + at, bytes.begin(), bytes.end());
  for (Step& step : script.steps) {
    Packet& packet = step.packet;
    if (step.kind != Step::Kind::packet || packet.connection != attacked || step.handshake) continue;
    if (packet.at >= at) {
      packet.at += static_cast<std::int64_t>(bytes.size());
    } else if (at < packet.at + static_cast<std::int64_t>(packet.payload.size())) {
      packet.payload.insert(packet.payload.begin() + (at - packet.at), bytes.begin(), bytes.end());
    }
  }
}

std::vector<const Move*> all_moves() {
  std::vector<const Move*> all;
  for (const auto moves :
       {segment_moves(), decoy_moves(), field_moves(), handshake_moves(), course_moves(), ip_moves()}) {
    for (const Move& move : moves) all.push_back(&move);
  }
  return all;
}

}  // namespace penstock::evasion
