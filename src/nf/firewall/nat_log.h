// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The log of port blocks, `nat_log`: which host had which ports of a public address, and when. A line for each block
// that a host gets and gives back; what the host sent to whom is not in it (RFC 6888, REQ-12).

#pragma once

#include <string>

#include "conntrack/port_blocks.h"
#include "report/event_log.h"
#include "report/time_text.h"

namespace penstock::firewall {

class NatLog final : public conntrack::BlockObserver {
 public:
  /// Borrows the log.
  explicit NatLog(report::EventLog& log) : writer_(log) {}
  /// "2026-11-27T05:40:00.123456+0100 penstock: allocated HOST=10.0.0.7 ADDRESS=203.0.113.5 PORTS=1024-1535"
  void tell(const conntrack::BlockEvent& event) noexcept override;
  [[nodiscard]] bool flush_if_due() noexcept override;

 private:
  report::EventLog::Writer writer_;
  report::TimeText times_;
  report::EventLog::Clock::time_point oldest_{};  // line that may not be written yet
  bool is_waiting_ = false;
};

}  // namespace penstock::firewall
