// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/minimise.h"

#include <algorithm>
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
    [](Packet& p) { p.ip_length_shift = 0; },
};

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
    if (!evades_(candidate)) return false;
    script_ = std::move(candidate);
    return true;
  }

  bool pass() {
    bool changed = false;
    changed |= plain_script();
    for (std::size_t span : {8U, 4U, 2U, 1U}) changed |= leave_out_steps(span);
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
    for (std::size_t i = script_.steps.size(); i-- > 0;) {
      if (i + span > script_.steps.size()) continue;
      Script candidate = script_;
      const auto from = candidate.steps.begin() + static_cast<std::ptrdiff_t>(i);
      candidate.steps.erase(from, from + static_cast<std::ptrdiff_t>(span));
      changed |= try_this(std::move(candidate));
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
                      p.wrong_ip_checksum, p.data_offset, p.udp_length, p.no_checksum, p.ip_length_shift);
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
};

}  // namespace

Script minimised(Script script, const std::function<bool(const Script&)>& evades) {
  return Minimiser(std::move(script), evades).run();
}

}  // namespace penstock::evasion
