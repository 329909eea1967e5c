// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "evasion/signatures.h"

namespace penstock::evasion {

namespace {

std::string printable(BytesView bytes, std::size_t most = 48) {
  std::string text;
  const auto append = [&](BytesView part) {
    for (const std::uint8_t byte : part) text.push_back(byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '?');
  };
  if (bytes.size() <= most) {
    append(bytes);
  } else {
    append(bytes.first(most / 2));
    text += "…";
    append(bytes.last(most / 2));
  }
  return text;
}

std::string flags_of(std::uint8_t flags) {
  constexpr std::string_view kLetters = "FSRPAUEC";
  std::string text;
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    if ((flags >> i & 1) != 0) text.push_back(kLetters[i]);
  }
  return text.empty() ? "-" : text;
}

class Drawing {
 public:
  explicit Drawing(const Script& script) : script_(script) {}

  std::string line(const WirePacket& packet, std::uint64_t begin_ns) {
    std::string text = fmt::format("{:10.3f} ms {} ", static_cast<double>(packet.time_ns - begin_ns) / 1e6,
                                   packet.from_host ? "            <-- host" : "attacker -->        ");
    text += body(packet);
    if (packet.fate == Fate::died) text += "   [dies before the host]";
    if (packet.fate == Fate::dropped_by_sensor) text += "   [dropped by the sensor]";
    if (packet.fate == Fate::held_by_sensor) text += "   [held by the sensor]";
    if (!packet.move.empty()) text += fmt::format("   ({})", packet.move);
    return text + '\n';
  }

 private:
  /// Relative to the nearest SYN.
  std::int64_t relative(std::uint32_t sequence, bool from_host) const {
    std::optional<std::int64_t> nearest;
    const auto consider = [&](std::uint32_t isn) {
      const auto distance = static_cast<std::int32_t>(sequence - isn);
      if (!nearest || std::abs(static_cast<std::int64_t>(distance)) < std::abs(*nearest)) nearest = distance;
    };
    if (from_host) {
      for (const std::uint32_t isn : host_isns_) consider(isn);
    } else {
      for (const Connection& connection : script_.connections) consider(connection.isn);
    }
    return nearest.value_or(sequence);
  }

  std::string connection_of(std::uint32_t sequence) const {
    if (script_.connections.size() < 2) return {};
    std::size_t best = 0;
    const auto far = [&](std::size_t i) {
      return std::abs(static_cast<std::int64_t>(static_cast<std::int32_t>(sequence - script_.connections[i].isn)));
    };
    for (std::size_t i = 1; i < script_.connections.size(); ++i) {
      if (far(i) < far(best)) best = i;
    }
    return fmt::format(" [connection {}]", best);
  }

  std::string body(const WirePacket& wire) {
    const BytesView bytes = wire.packet;
    const auto parsed = parse_packet(bytes);
    const std::string ip = ip_part(bytes);
    if (!parsed) return ip + not_transport(bytes);
    if (parsed->protocol == 17) {
      return ip + fmt::format("UDP len {} \"{}\"", parsed->payload.size(), printable(parsed->payload));
    }
    const TcpFields& tcp = parsed->tcp;
    if (wire.from_host && (tcp.flags & tcp::kSyn) != 0) host_isns_.push_back(tcp.sequence);
    std::string text = ip + fmt::format("{:<4} seq {} ", flags_of(tcp.flags), relative(tcp.sequence, wire.from_host));
    if ((tcp.flags & tcp::kAck) != 0 || tcp.acknowledgment != 0) {
      text += fmt::format("ack {} ", relative(tcp.acknowledgment, !wire.from_host));
    }
    text += fmt::format("win {} ", tcp.window);
    if ((tcp.flags & tcp::kUrg) != 0) text += fmt::format("urg {} ", tcp.urgent);
    if (parsed->has_timestamp) text += fmt::format("ts {}/{} ", parsed->timestamp, parsed->timestamp_echo);
    text += options_part(bytes);
    if (!parsed->payload.empty()) {
      text += fmt::format("len {} \"{}\"", parsed->payload.size(), printable(parsed->payload));
    }
    if (!right_checksum(bytes)) text += " WRONG CHECKSUM";
    if (!wire.from_host) text += connection_of(tcp.sequence);
    return text;
  }

  static std::size_t transport_at(BytesView bytes) { return bytes[0] >> 4 == 6 ? 40 : (bytes[0] & 15U) * 4; }

  static std::string options_part(BytesView bytes) {
    const std::size_t at = transport_at(bytes);
    std::string text;
    BytesView options = bytes.subspan(at + 20, (bytes[at + 12] >> 4) * 4U - 20);
    while (!options.empty() && options[0] != 0) {
      if (options[0] == 1) {
        options = options.subspan(1);
        continue;
      }
      if (options.size() < 2 || options[1] < 2 || options[1] > options.size()) return text + "opt:malformed ";
      switch (options[0]) {
        case 2: text += "mss "; break;
        case 3: text += fmt::format("wscale {} ", options.size() > 2 ? options[2] : 0); break;
        case 4: text += "sackOK "; break;
        case 5: text += "sack "; break;
        case 8: break;
        default: text += fmt::format("opt:{} ", options[0]); break;
      }
      options = options.subspan(options[1]);
    }
    return text;
  }

  static bool right_checksum(BytesView bytes) {
    const std::size_t at = transport_at(bytes);
    std::uint64_t sum = 6 + (bytes.size() - at);
    const std::size_t addresses = bytes[0] >> 4 == 6 ? 8 : 12;
    const std::size_t addresses_end = bytes[0] >> 4 == 6 ? 40 : 20;
    const auto add = [&](BytesView part) {
      for (std::size_t i = 0; i < part.size(); ++i) sum += i % 2 == 0 ? part[i] * 256U : part[i];
    };
    add(bytes.subspan(addresses, addresses_end - addresses));
    const std::size_t length = bytes[0] >> 4 == 6 ? get16(bytes, 4) : get16(bytes, 2) - at;
    if (at + length < bytes.size()) {  // it has a trailer
      sum -= bytes.size() - at - length;
      bytes = bytes.first(at + length);
    }
    add(bytes.subspan(at));
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
  }

  static std::string ip_part(BytesView bytes) {
    if (bytes.size() < 20) return "cut short ";
    std::string text;
    if (bytes[0] >> 4 == 6) {
      text = "IPv6 ";
      if (bytes[6] != 6 && bytes[6] != 17) text += fmt::format("next header {} ", bytes[6]);
      if (get16(bytes, 4) + 40U != bytes.size())
        text += fmt::format("length {} of {} ", get16(bytes, 4) + 40, bytes.size());
      return text;
    }
    text = "IP ";
    if ((bytes[0] & 15) > 5) text += fmt::format("options {:02x} ", bytes[20]);
    if (get16(bytes, 2) != bytes.size()) text += fmt::format("length {} of {} ", get16(bytes, 2), bytes.size());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < std::size_t{bytes[0] & 15U} * 4 && i + 1 < bytes.size(); i += 2) sum += get16(bytes, i);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    if (sum != 0xffff) text += "WRONG IP CHECKSUM ";
    return text;
  }

  static std::string not_transport(BytesView bytes) {
    if (bytes.size() < 20) return {};
    if (bytes[0] >> 4 == 4 && (get16(bytes, 6) & 0x3fff) != 0) {
      const std::size_t header = (bytes[0] & 15U) * 4;
      return fmt::format("fragment of {}: id {} [{}, {}){} \"{}\"", bytes[9], get16(bytes, 4),
                         (get16(bytes, 6) & 0x1fff) * 8, (get16(bytes, 6) & 0x1fff) * 8 + bytes.size() - header,
                         (get16(bytes, 6) & 0x2000) != 0 ? " more" : "", printable(bytes.subspan(header)));
    }
    if (bytes[0] >> 4 == 6 && bytes.size() >= 48 && bytes[6] == 44) {
      const unsigned field = get16(bytes, 42);
      return fmt::format("fragment of {}: id {} [{}, {}){} \"{}\"", bytes[40], get32(bytes, 44), field & 0xfff8,
                         (field & 0xfff8) + bytes.size() - 48, (field & 1) != 0 ? " more" : "",
                         printable(bytes.subspan(48)));
    }
    return fmt::format("protocol {} \"{}\"", bytes[0] >> 4 == 6 ? bytes[6] : bytes[9], printable(bytes.subspan(20)));
  }

  const Script& script_;
  std::vector<std::uint32_t> host_isns_;
};

}  // namespace

std::string drawing_of(const Transcript& transcript, const Script& script) {
  std::string text = fmt::format("signature \"{}\" (rule {}), the host is a {}{}, moves:", script.signature_text,
                                 name_of(script.signature), script.role == HostRole::server ? "server" : "client",
                                 script.reads_at_once ? " and reads at once" : "");
  for (const std::string_view move : script.moves) text += fmt::format(" {}", move);
  text += '\n';
  Drawing drawing(script);
  const std::uint64_t begin = transcript.packets.empty() ? 0 : transcript.packets.front().time_ns;
  for (const WirePacket& packet : transcript.packets) text += drawing.line(packet, begin);
  for (const std::string& stream : transcript.streams) {
    text += fmt::format("the application read {} bytes: \"{}\"\n", stream.size(),
                        printable({reinterpret_cast<const std::uint8_t*>(stream.data()), stream.size()}, 160));
  }
  for (const std::string& datagram : transcript.datagrams) {
    text += fmt::format("the application read a datagram of {} bytes: \"{}\"\n", datagram.size(),
                        printable({reinterpret_cast<const std::uint8_t*>(datagram.data()), datagram.size()}, 160));
  }
  text += transcript.read_signature ? "it read the signature\n" : "it did not read the signature\n";
  return text;
}

}  // namespace penstock::evasion
