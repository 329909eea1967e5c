// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The log of packets that rules ask for (`log` of nftables, LOG of iptables): a line for each, with the fields that
// Linux's nf_log_syslog writes, which log analysers read.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "packet/packet.h"
#include "report/event_log.h"
#include "report/time_text.h"

namespace penstock::firewall {

/// Appends "PREFIXIN=lan OUT=wan MAC=… SRC=192.168.1.7 DST=… LEN=60 …" about a packet with a parsed layout.
void append_packet(PacketView packet, std::string_view prefix, const std::vector<std::string>& port_names,
                   std::string& to);

/// Of one worker.
class PacketLog {
 public:
  /// Borrows both.
  PacketLog(report::EventLog& log, const std::vector<std::string>& port_names) : writer_(log), names_(port_names) {}
  /// "2026-11-27T05:40:00.123456+0100 penstock: …", with the time of the packet.
  void add(PacketView packet, std::string_view prefix) noexcept;
  void flush_if_due() noexcept { writer_.flush_if_due(report::EventLog::Clock::now()); }

 private:
  report::EventLog::Writer writer_;
  const std::vector<std::string>& names_;
  report::TimeText times_;
};

}  // namespace penstock::firewall
