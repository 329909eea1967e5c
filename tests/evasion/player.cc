// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/player.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "evasion/random.h"

namespace penstock::evasion {

namespace {

constexpr std::uint8_t kTcp = 6;
constexpr std::uint64_t kMillisecond = 1'000'000;

std::int32_t distance(std::uint32_t to, std::uint32_t from) { return static_cast<std::int32_t>(to - from); }

/// The attacker's view of the host's side of the connection.
struct HostView {
  bool heard = false;  // a SYN or SYN/ACK has arrived
  std::uint32_t isn = 0;
  std::uint32_t next = 0;  // after the contiguous data that the host has sent
  bool acknowledged = false;
  std::uint32_t ack = 0;  // the highest acknowledgment number
  bool has_timestamp = false;
  std::uint32_t timestamp = 0;
  std::uint32_t window = 0;  // relative to `ack`
  std::uint8_t scale = 0;
};

}  // namespace

class Player::Conversation {
 public:
  Conversation(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
               SensorOnPath sensor)
      : script_(script),
        host_(host),
        sensor_(std::move(sensor)),
        begin_ns_(begin_ns),
        now_ns_(begin_ns),
        timing_(script.timing) {
    transcript_.attacker = attacker;
    here_ = {KernelHost::attacker(script.v6, attacker), script.attacker_port};
    there_ = {KernelHost::address(script.v6), script.host_port};
    timestamp_base_ = timing_.word() | 1;
  }

  bool go_on() {
    while (next_ < script_.steps.size()) {
      const Step& step = script_.steps[next_++];
      take(step);
      if (script_.reads_at_once) read_all();
      if (step.kind == Step::Kind::host_waits) return true;
    }
    return false;
  }

  Transcript finish() {
    read_all();
    end();
    judge();
    return std::move(transcript_);
  }

 private:
  struct Socket {
    Descriptor descriptor;
    std::string read;
    bool open = true;
  };

  void take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::packet: send(step.packet, step.move); break;
      case Step::Kind::resend: resend(step.number, step.move); break;
      case Step::Kind::pause:
      case Step::Kind::host_waits: now_ns_ += step.number * 1'000 * kMillisecond; break;
      case Step::Kind::clock: timestamp_base_ += step.number; break;
      case Step::Kind::host_connects: connect(); break;
      case Step::Kind::host_reads: read_all(); break;
      case Step::Kind::host_writes:
        read_all();
        if (!sockets_.empty()) write_bytes(sockets_.back().descriptor, step.text);
        take_answers();
        break;
      case Step::Kind::host_shuts:
        read_all();
        if (!sockets_.empty()) send_fin(sockets_.back().descriptor);
        take_answers();
        break;
      case Step::Kind::host_closes:
        read_all();
        if (!sockets_.empty()) sockets_.back().descriptor = Descriptor();
        take_answers();
        break;
    }
  }

  // ---- The attacker

  const Connection& connection(const Packet& packet) const { return script_.connections[packet.connection]; }

  void append_timestamps(const Packet& packet, bool agreed, Bytes& options) {
    const bool wanted =
        packet.timestamp == TimestampOption::present || (packet.timestamp == TimestampOption::as_agreed && agreed);
    if (!wanted) return;
    const std::uint32_t clock = timestamp_base_ + static_cast<std::uint32_t>((now_ns_ - begin_ns_) / kMillisecond);
    const auto value = packet.timestamp_zero ? 0 : clock + static_cast<std::uint32_t>(packet.timestamp_shift);
    const auto echo = packet.echo_zero || (packet.flags & tcp::kAck) == 0
                          ? 0
                          : view_.timestamp + static_cast<std::uint32_t>(packet.echo_shift);
    options.insert(options.end(), {1, 1, 8, 10});
    append32(options, value);
    append32(options, echo);
  }

  Bytes tcp_options(const Packet& packet) {
    const Connection& of = connection(packet);
    Bytes options = packet.options;
    if (packet.handshake_options) {
      options.insert(options.end(), {2, 4, 5, 180});  // MSS 1460
      if (of.sack) options.insert(options.end(), {1, 1, 4, 2});
      if (of.window_scale) options.insert(options.end(), {1, 3, 3, of.scale});
    }
    // An answer offers the same options as the request.
    const bool agreed = of.timestamps && (packet.handshake_options || !view_.heard || view_.has_timestamp);
    append_timestamps(packet, agreed, options);
    return options;
  }

  Bytes tcp_of(const Packet& packet) {
    TcpFields fields;
    fields.sequence = connection(packet).isn + 1 + static_cast<std::uint32_t>(packet.at);
    if (packet.acknowledges != Acknowledges::zero) {
      fields.acknowledgment = (packet.acknowledges == Acknowledges::first ? view_.isn + 1 : view_.next) +
                              static_cast<std::uint32_t>(packet.ack_shift);
    }
    fields.flags = packet.flags;
    fields.reserved = packet.reserved;
    fields.window = packet.window;
    fields.urgent = packet.urgent;
    fields.options = tcp_options(packet);
    fields.data_offset = packet.data_offset;
    if (!packet.spoofed) return tcp_segment(here_, there_, fields, packet.payload);
    std::swap(fields.sequence, fields.acknowledgment);
    return tcp_segment(there_, here_, fields, packet.payload);
  }

  Bytes udp_of(const Packet& packet) const {
    return udp_datagram(here_, there_, packet.payload, packet.udp_length,
                        packet.no_checksum ? std::optional<std::uint16_t>(0) : std::nullopt);
  }

  void send(const Packet& packet, std::string_view move) {
    Bytes transport = packet.protocol == kTcp ? tcp_of(packet) : udp_of(packet);
    if (packet.minus_zero && packet.protocol == kTcp && (packet.flags & tcp::kUrg) == 0) {
      make_checksum_minus_zero(transport);
    }
    if (packet.wrong_checksum) spoil_checksum(packet.protocol, transport);
    IpFields ip;
    ip.protocol = packet.protocol;
    ip.ttl = packet.dies ? script_.ttl_dying : script_.ttl;
    ip.minus_zero = packet.minus_zero && packet.fragments.empty();
    ip.tos = packet.tos;
    ip.id = static_cast<std::uint16_t>(++ip_id_);
    ip.dont_fragment = packet.dont_fragment;
    ip.options = packet.ip_options;
    ip.first_extension = packet.first_extension;
    ip.wrong_checksum = packet.wrong_ip_checksum;
    ip.length_shift = packet.ip_length_shift;
    if (packet.fragments.empty()) {
      const bool spoofed = packet.spoofed;
      Bytes bytes = ip_packet((spoofed ? there_ : here_).address, (spoofed ? here_ : there_).address, ip, transport);
      bytes.insert(bytes.end(), packet.trailer.begin(), packet.trailer.end());
      put_on_wire(std::move(bytes), packet.dies || spoofed, move);
      return;
    }
    const std::size_t header = packet.protocol == kTcp ? 20 : 8;
    for (const Fragment& fragment : packet.fragments) {
      IpFields own = ip;
      if (fragment.dies) own.ttl = script_.ttl_dying;
      own.wrong_checksum |= fragment.wrong_checksum;
      own.dont_fragment |= fragment.dont_fragment;
      own.tos |= fragment.tos;
      Bytes data;
      const std::size_t end = fragment.end == Fragment::kToEnd ? transport.size() : fragment.end;
      for (std::size_t at = fragment.begin; at < end; ++at) {
        const bool decoy = fragment.decoy && (at >= header || fragment.spoiled_header);
        data.push_back(decoy || at >= transport.size() ? std::uint8_t{'#'} : transport[at]);
      }
      put_on_wire(
          ip_fragment(here_.address, there_.address, own,
                      {.id = ip_id_ + fragment.id_shift, .offset = fragment.begin, .more = fragment.more}, data),
          packet.dies || fragment.dies, move);
    }
  }

  /// Sends the data that the host has not acknowledged, within its window, until all is acknowledged or the host
  /// accepts no more.
  void resend(std::size_t number, std::string_view move) {
    constexpr std::size_t kMostBytes = 1200;
    constexpr int kMostRounds = 24;
    if (number >= script_.connections.size()) return;
    const Connection& of = script_.connections[number];
    int in_vain = 0;
    for (int round = 0; round < kMostRounds && in_vain < 3 && view_.acknowledged; ++round) {
      const std::int32_t offset = distance(view_.ack, of.isn + 1);
      if (offset < 0 || static_cast<std::size_t>(offset) >= of.stream.size()) return;
      Packet packet;
      packet.connection = static_cast<std::uint8_t>(number);
      packet.at = offset;
      const auto from = of.stream.begin() + offset;
      const auto most = static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(view_.window, 1, kMostBytes));
      packet.payload.assign(from, from + std::min(most, of.stream.end() - from));
      const std::uint32_t before = view_.ack;
      send(packet, move);
      read_all();
      take_answers();
      in_vain = view_.ack == before ? in_vain + 1 : 0;
    }
  }

  void put_on_wire(Bytes bytes, bool dies, std::string_view move) {
    now_ns_ += 20'000 + timing_.below(200'000);
    transcript_.packets.push_back({now_ns_, std::move(bytes), false, dies ? Fate::died : Fate::delivered, move});
    if (pass_sensor()) take_answers();
  }

  /// Handles the last packet and those that waited in the sensor for it. Returns whether the host got a packet.
  bool pass_sensor() {
    const std::size_t last = transcript_.packets.size() - 1;
    if (!sensor_) return arrive(last);
    static std::atomic<std::uint64_t> next_number{0};
    const std::uint64_t number = next_number++;
    WirePacket& offered = transcript_.packets[last];
    waiting_.emplace(number, Waiting{last, offered.fate});
    offered.fate = Fate::held_by_sensor;
    bool given = false;
    for (const Decision& decision : sensor_(offered.packet, number, now_ns_)) {
      const auto found = waiting_.find(decision.packet);
      if (found == waiting_.end()) continue;  // from an earlier conversation
      const Waiting was = found->second;
      waiting_.erase(found);
      transcript_.packets[was.place].fate = decision.passes ? was.fate : Fate::dropped_by_sensor;
      given |= arrive(was.place);
    }
    return given;
  }

  bool arrive(std::size_t place) {
    const WirePacket& one = transcript_.packets[place];
    if (one.fate != Fate::delivered) return false;
    if (one.from_host) {
      const auto parsed = parse_packet(one.packet);
      if (parsed && parsed->protocol == kTcp) learn(*parsed);
      return false;
    }
    host_.deliver(one.packet, script_.in_pages);
    return true;
  }

  void take_answers() {
    for (;;) {
      const BytesView packet = host_.sent();
      if (packet.empty()) return;
      const auto parsed = parse_packet(packet);
      if (parsed ? parsed->destination.address != here_.address : !is_to_here(packet)) continue;  // from an earlier one
      now_ns_ += 5'000 + timing_.below(30'000);
      if (parsed && parsed->protocol == kTcp && parsed->source.port != there_.port) there_.port = parsed->source.port;
      transcript_.packets.push_back({now_ns_, Bytes(packet.begin(), packet.end()), true, Fate::delivered, {}});
      pass_sensor();
    }
  }

  bool is_to_here(BytesView packet) const {
    const std::size_t at = script_.v6 ? 24 : 16, size = script_.v6 ? 16 : 4;
    return packet.size() >= at + size && packet[0] >> 4 == (script_.v6 ? 6 : 4) &&
           std::equal(packet.begin() + at, packet.begin() + at + size, here_.address.bytes.begin());
  }

  void learn(const ParsedPacket& packet) {
    const TcpFields& fields = packet.tcp;
    if ((fields.flags & tcp::kRst) != 0) return;
    if ((fields.flags & tcp::kSyn) != 0) {
      if (!view_.heard || view_.isn != fields.sequence)
        view_ = {.heard = true, .isn = fields.sequence, .next = fields.sequence + 1};
      view_.has_timestamp = packet.has_timestamp;
      if (packet.has_timestamp) view_.timestamp = packet.timestamp;
      view_.scale = packet.has_window_scale ? packet.window_scale : std::uint8_t{0};
    } else {
      auto length = static_cast<std::uint32_t>(packet.payload.size());
      if ((fields.flags & tcp::kFin) != 0) ++length;
      const std::uint32_t end = fields.sequence + length;
      if (distance(fields.sequence, view_.next) <= 0 && distance(end, view_.next) > 0) {
        const auto known = static_cast<std::size_t>(distance(view_.next, fields.sequence));
        if (known < packet.payload.size())
          received_.append(packet.payload.begin() + static_cast<std::ptrdiff_t>(known), packet.payload.end());
        view_.next = end;
      }
      if (packet.has_timestamp) view_.timestamp = packet.timestamp;
    }
    if ((fields.flags & tcp::kAck) == 0) return;
    if (!view_.acknowledged || distance(fields.acknowledgment, view_.ack) > 0) view_.ack = fields.acknowledgment;
    view_.acknowledged = true;
    if (fields.acknowledgment != view_.ack) return;
    const bool scaled = (fields.flags & tcp::kSyn) == 0;
    view_.window = std::uint32_t{fields.window} << (scaled ? view_.scale : 0);
  }

  // ---- The application

  void connect() {
    there_.port = script_.host_port;
    // First closes the previous socket, which may have the same port.
    for (Socket& socket : sockets_) socket.descriptor = Descriptor();
    const std::size_t before = transcript_.packets.size();
    sockets_.push_back({host_.connect(here_, script_.host_port), {}, true});
    take_answers();
    // A busy kernel may be slow, and occasionally loses a SYN: to every observer, this host is then a server.
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries && transcript_.packets.size() == before; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      take_answers();
    }
    lost_syn_ = lost_syn_ || transcript_.packets.size() == before;
  }

  void read_all() {
    if (script_.signature == SignatureKind::udp) {
      while (auto datagram = host_.read_datagram(script_.host_port, script_.v6)) {
        if (datagram->from.address == here_.address) transcript_.datagrams.push_back(std::move(datagram->text));
      }
      return;
    }
    if (script_.role == HostRole::server) {
      while (auto accepted = host_.accept(script_.host_port, script_.v6)) {
        if (accepted->peer.address == here_.address) {
          sockets_.push_back({std::move(accepted->socket), {}, true});
        } else {
          abort_on_close(accepted->socket);
        }
      }
    }
    bool read = false;
    for (Socket& socket : sockets_) {
      if (!socket.open || !socket.descriptor) continue;
      const std::size_t before = socket.read.size();
      socket.open = host_.read(socket.descriptor, socket.read);
      read |= socket.read.size() != before;
    }
    if (read) take_answers();  // the window may have opened
  }

  void end() {
    for (Socket& socket : sockets_) {
      if (!socket.descriptor) continue;
      abort_on_close(socket.descriptor);
      socket.descriptor = Descriptor();
    }
    take_answers();
  }

  void judge() {
    const auto holds = [&](const std::string& text) { return text.find(script_.signature_text) != std::string::npos; };
    for (Socket& socket : sockets_) transcript_.streams.push_back(std::move(socket.read));
    if (script_.signature == SignatureKind::from_host) {  // the attacker reads the signature
      transcript_.streams.assign(1, received_);
    }
    const bool read = std::any_of(transcript_.streams.begin(), transcript_.streams.end(), holds) ||
                      std::any_of(transcript_.datagrams.begin(), transcript_.datagrams.end(), holds);
    transcript_.read_signature = read && !lost_syn_;
  }

  const Script& script_;
  KernelHost& host_;
  struct Waiting {
    std::size_t place;  // index in the transcript
    Fate fate;          // if it passes
  };
  const SensorOnPath sensor_;
  std::map<std::uint64_t, Waiting> waiting_;  // packets in the sensor, by number
  const std::uint64_t begin_ns_;
  std::uint64_t now_ns_;
  Random timing_;
  Endpoint here_, there_;
  HostView view_;
  std::uint32_t timestamp_base_ = 0;
  std::uint32_t ip_id_ = 0;
  std::vector<Socket> sockets_;
  std::string received_;  // data that the host has sent, in order
  Transcript transcript_;
  bool lost_syn_ = false;
  std::size_t next_ = 0;  // index of the next step
};

Player::Player(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
               SensorOnPath sensor)
    : conversation_(std::make_unique<Conversation>(script, host, attacker, begin_ns, std::move(sensor))) {}
Player::~Player() = default;
Player::Player(Player&&) noexcept = default;

bool Player::go_on() { return conversation_->go_on(); }
Transcript Player::finish() { return conversation_->finish(); }

Transcript play(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
                SensorOnPath sensor) {
  Player player(script, host, attacker, begin_ns, std::move(sensor));
  while (player.go_on()) std::this_thread::sleep_for(Player::kHostWaits);
  return player.finish();
}

}  // namespace penstock::evasion
