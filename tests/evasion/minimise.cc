// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/minimise.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::evasion {

namespace {

using Simplify = void (*)(Packet&);

constexpr Simplify kSimplifications[] = {
    [](Packet& p) { p.fragments.clear(); },
    [](Packet& p) { p.options.clear(); },
    [](Packet& p) { p.ip_options.clear(), p.first_extension = 0; },
    [](Packet& p) { p.trailer.clear(); },
    [](Packet& p) { p.urgent = 0, p.flags &= static_cast<std::uint8_t>(~tcp::kUrg); },
    [](Packet& p) { p.flags &= static_cast<std::uint8_t>(~(tcp::kEce | tcp::kCwr)), p.reserved = 0; },
    [](Packet& p) { p.flags &= static_cast<std::uint8_t>(~tcp::kPsh); },
    [](Packet& p) { p.timestamp = TimestampOption::as_agreed; },
    [](Packet& p) { p.timestamp_shift = 0, p.timestamp_zero = false; },
    [](Packet& p) { p.echo_shift = 0, p.echo_zero = false; },
    [](Packet& p) { p.ack_shift = 0; },
    [](Packet& p) { p.window = 65535; },
    [](Packet& p) { p.dies = false; },
    [](Packet& p) { p.wrong_checksum = false; },
    [](Packet& p) { p.wrong_ip_checksum = false; },
    [](Packet& p) { p.data_offset.reset(); },
    [](Packet& p) { p.udp_length.reset(); },
    [](Packet& p) { p.no_checksum = false; },
    [](Packet& p) { p.minus_zero = false; },
    [](Packet& p) { p.ip_length_shift = 0; },
};

/// Removes `count` bytes of a connection's stream from `begin` on, wherever they are sent.
void cut_stream(Script& script, std::size_t connection, std::int64_t begin, std::int64_t count) {
  const std::int64_t end = begin + count;
  const auto from = script.connections[connection].stream.begin() + begin;
  script.connections[connection].stream.erase(from, from + count);
  for (Step& step : script.steps) {
    Packet& packet = step.packet;
    if (step.kind != Step::Kind::packet || packet.protocol != 6 || packet.connection != connection) continue;
    const std::int64_t at = packet.at, until = at + static_cast<std::int64_t>(packet.payload.size());
    const std::int64_t left = std::clamp(begin, at, until), right = std::clamp(end, at, until);
    packet.payload.erase(packet.payload.begin() + (left - at), packet.payload.begin() + (right - at));
    packet.at -= at >= end ? count : std::max<std::int64_t>(0, at - begin);
  }
}

class Minimiser {
 public:
  Minimiser(Script script, const std::function<bool(const Script&)>& evades)
      : script_(std::move(script)), evades_(evades) {}

  Script run() {
    while (pass()) {
    }
    return std::move(script_);
  }

 private:
  bool try_this(Script candidate) {
    constexpr int kMostTries = 4000;
    if (++tries_ > kMostTries || !evades_(candidate)) return false;
    script_ = std::move(candidate);
    return true;
  }

  bool pass() {
    bool changed = false;
    changed |= plain_script();
    for (std::size_t span = 256; span > 0; span /= 2) changed |= leave_out_steps(span);
    changed |= shorten_streams();
    changed |= plain_packets();
    changed |= leave_out_fragments();
    return changed;
  }

  bool plain_script() {
    bool changed = false;
    const auto with = [&](auto&& change) {
      Script candidate = script_;
      change(candidate);
      changed |= try_this(std::move(candidate));
    };
    if (script_.v6) with([](Script& s) { s.v6 = false; });
    if (script_.reads_at_once) with([](Script& s) { s.reads_at_once = false; });
    if (script_.in_pages) with([](Script& s) { s.in_pages = false; });
    if (script_.ttl != 64 || script_.ttl_dying != 2) with([](Script& s) { s.ttl = 64, s.ttl_dying = 2; });
    if (script_.host_port == 81 || script_.host_port == 82) with([](Script& s) { s.host_port = 80; });
    for (std::size_t i = 0; i < script_.connections.size(); ++i) {
      if (script_.connections[i].timestamps) with([i](Script& s) { s.connections[i].timestamps = false; });
      if (script_.connections[i].sack) with([i](Script& s) { s.connections[i].sack = false; });
      if (script_.connections[i].window_scale) with([i](Script& s) { s.connections[i].window_scale = false; });
      if (script_.connections[i].isn != 1'000'000'000 * (i + 1))
        with([i](Script& s) { s.connections[i].isn = static_cast<std::uint32_t>(1'000'000'000 * (i + 1)); });
    }
    return changed;
  }

  bool leave_out_steps(std::size_t span) {
    bool changed = false;
    const std::size_t stride = std::max<std::size_t>(1, span / 2);
    for (std::size_t end = script_.steps.size(); end >= span && end > 0; end -= std::min(end, stride)) {
      if (end > script_.steps.size()) continue;
      const std::size_t i = end - span;
      Script candidate = script_;
      const auto from = candidate.steps.begin() + static_cast<std::ptrdiff_t>(i);
      candidate.steps.erase(from, from + static_cast<std::ptrdiff_t>(span));
      changed |= try_this(std::move(candidate));
    }
    return changed;
  }

  /// Halves the data before and after the signature.
  bool shorten_streams() {
    bool changed = false;
    for (std::size_t i = 0; i < script_.connections.size(); ++i) {
      for (const bool ahead : {false, true}) {
        for (std::int64_t count = 4096; count > 0; count /= 2) {
          const Bytes& stream = script_.connections[i].stream;
          const auto size = static_cast<std::int64_t>(stream.size());
          const auto found =
              std::search(stream.begin(), stream.end(), script_.signature_text.begin(), script_.signature_text.end()) -
              stream.begin();
          const auto end = std::min(size, found + static_cast<std::int64_t>(script_.signature_text.size()));
          const std::int64_t room = ahead ? found : size - end;
          if (room < count) continue;
          Script candidate = script_;
          cut_stream(candidate, i, ahead ? 0 : size - count, count);
          changed |= try_this(std::move(candidate));
        }
      }
    }
    return changed;
  }

  bool plain_packets() {
    bool changed = false;
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      if (script_.steps[i].kind != Step::Kind::packet) continue;
      for (const Simplify simplify : kSimplifications) {
        Script candidate = script_;
        simplify(candidate.steps[i].packet);
        if (same(candidate.steps[i].packet, script_.steps[i].packet)) continue;
        changed |= try_this(std::move(candidate));
      }
    }
    return changed;
  }

  static bool same(const Packet& a, const Packet& b) {
    const auto key = [](const Packet& p) {
      return std::tie(p.options, p.ip_options, p.trailer, p.urgent, p.flags, p.reserved, p.timestamp, p.timestamp_shift,
                      p.timestamp_zero, p.echo_shift, p.echo_zero, p.ack_shift, p.window, p.dies, p.wrong_checksum,
                      p.wrong_ip_checksum, p.data_offset, p.udp_length, p.no_checksum, p.minus_zero, p.ip_length_shift);
    };
    return key(a) == key(b) && a.fragments.size() == b.fragments.size();
  }

  bool leave_out_fragments() {
    bool changed = false;
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      for (std::size_t j = script_.steps[i].packet.fragments.size(); j-- > 0;) {
        Script candidate = script_;
        auto& fragments = candidate.steps[i].packet.fragments;
        fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(j));
        if (!fragments.empty()) changed |= try_this(std::move(candidate));
      }
    }
    return changed;
  }

  Script script_;
  const std::function<bool(const Script&)>& evades_;
  int tries_ = 0;
};

std::string defects_of(const Packet& p) {
  std::string text;
  const auto note = [&](bool has, std::string_view name) {
    if (has) text += std::string(" ") + std::string(name);
  };
  note(p.dies, "dies");
  note(p.wrong_checksum, "checksum");
  note(p.wrong_ip_checksum, "ip_checksum");
  note(p.acknowledges == Acknowledges::zero && (p.flags & tcp::kAck) != 0, "ack=0");
  note(p.ack_shift > 0, "ack+");
  note(p.ack_shift < 0, "ack-");
  note(p.timestamp_shift < 0, "ts-");
  note(p.timestamp_shift > 0, "ts+");
  note(p.timestamp_zero, "ts=0");
  note(p.timestamp == TimestampOption::absent, "no_ts");
  note(p.echo_zero || p.echo_shift != 0, "echo");
  note(!p.options.empty(), "options");
  note(!p.ip_options.empty(), "ip_options");
  note(p.data_offset.has_value(), "data_offset");
  note(p.ip_length_shift != 0, "ip_length");
  note(p.udp_length.has_value(), "udp_length");
  note(p.no_checksum, "no_checksum");
  note(p.minus_zero, "minus_zero");
  note(p.window < 1000, "window");
  note(!p.trailer.empty(), "trailer");
  const auto any = [&](auto&& has) { return std::any_of(p.fragments.begin(), p.fragments.end(), has); };
  note(!p.fragments.empty(), "fragments");
  note(any([](const Fragment& f) { return f.dies; }), "f:dies");
  note(any([](const Fragment& f) { return f.wrong_checksum; }), "f:ip_checksum");
  note(any([](const Fragment& f) { return f.id_shift != 0; }), "f:id");
  return text;
}

std::string text_of(const Step& step) {
  constexpr std::string_view kLetters = "FSRPAU";
  if (step.kind != Step::Kind::packet) {
    constexpr std::string_view kNames[] = {"",        "resend", "pause", "wait", "clock",
                                           "connect", "read",   "write", "shut", "close"};
    return std::string(kNames[static_cast<std::size_t>(step.kind)]);
  }
  const Packet& p = step.packet;
  std::string text;
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    if (kLetters[i] != 'P' && (p.flags >> i & 1) != 0) text.push_back(kLetters[i]);
  }
  if (p.protocol == 17) text = "UDP";
  if (!p.payload.empty()) text += step.genuine ? "+data" : "+decoy";
  if (p.connection != 0) text += "@other";
  text += defects_of(p);
  if (!step.move.empty()) text += " (" + std::string(step.move) + ")";
  return text;
}

}  // namespace

std::string outline_of(const Script& script) {
  std::string text = script.role == HostRole::server ? "to a server:" : "to a client:";
  std::string last;
  for (const Step& step : script.steps) {
    const std::string one = text_of(step);
    // Steps that every conversation has are omitted.
    if (one == "S" || one == "SA" || one == "A" || one == "A+data" || one == "resend" || one == "connect") continue;
    if (one != last) text += (last.empty() ? " " : "; ") + one;
    last = one;
  }
  return text;
}

Script minimised(Script script, const std::function<bool(const Script&)>& evades) {
  return Minimiser(std::move(script), evades).run();
}

}  // namespace penstock::evasion
