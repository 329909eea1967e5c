// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/alert/eve_stats.h"

#include <array>
#include <numeric>
#include <string_view>

#include "report/json_text.h"

namespace penstock::nids {

namespace {

/// Indexed by DropReason. Reasons that Suricata does not have get names of our own.
constexpr std::array<std::string_view, kDropReasons.size()> kSuricatasReasons{
    "rules", "stream_changed_bytes", "stream_error", "flow_memcap", "stream_memcap", "defrag_memcap", "decode_error"};

}  // namespace

void append_eve_stats(std::string& out, const EveStats& stats, report::TimeText& times) {
  const stack::TrackerCounters& tracker = stats.tracker;
  report::JsonText json(out);
  json.begin();
  json.member("timestamp", [&](std::string& to) { times.append_iso(to, stats.timestamp_ns); });
  json.member("event_type", std::string_view("stats"));
  json.open("stats");
  json.member("uptime", stats.uptime_s);
  json.open("decoder");
  json.member("pkts", tracker.packets);
  json.member("bytes", stats.bytes);
  json.member("undecodable", tracker.undecodable);  // not in Suricata
  json.close();
  json.open("defrag");
  json.member("fragments", tracker.fragments);
  json.member("reassembled", tracker.reassembled);
  json.member("timeouts", tracker.fragments_timed_out);
  json.member("memcap_drop", tracker.fragment_memory_refused);
  json.close();
  json.open("flow");
  json.member("total", tracker.flows);
  json.member("active", tracker.flows - tracker.flows_ended);
  json.member("memcap", tracker.flow_memory_refused);
  json.member("emerg_mode_over", tracker.flows_evicted);
  json.close();
  json.open("tcp");
  json.member("sessions", tracker.tcp_sessions);
  json.member("unknown_connection", tracker.tcp_unknown_connection);
  json.member("idle_timeouts", tracker.tcp_idle_timeouts);
  json.member("handshake_timeouts", tracker.handshake_timeouts);
  json.member("invalid_checksum", tracker.tcp_invalid_checksums);
  json.member("reassembly_gap", tracker.stream_gaps);
  json.member("segment_memcap_drop", tracker.stream_memory_refused);
  json.member("stream_depth_reached", tracker.stream_depth_reached);
  json.close();
  if (stats.dropped) {
    json.open("ips");
    json.member("blocked", std::accumulate(stats.dropped->begin(), stats.dropped->end(), std::uint64_t{0}));
    json.open("drop_reason");
    for (std::size_t i = 0; i < kSuricatasReasons.size(); ++i) json.member(kSuricatasReasons[i], (*stats.dropped)[i]);
    json.close();
    json.close();
  }
  json.open("detect");
  json.open_array("engines");
  json.out().append("{\"id\":0");
  json.member("rules_loaded", stats.rules_loaded);
  json.member("rules_failed", stats.rules_failed);
  json.close();
  json.close_array();
  json.member("alert", stats.alerts);
  json.member("alert_queue_overflow", stats.alerts_over_limit);
  json.member("alerts_suppressed", stats.alerts_suppressed);
  // These are not in Suricata.
  json.member("pcre_limits", stats.pcre_limits);
  json.member("step_limits", stats.step_limits);
  json.member("frames_over_budget", stats.frames_over_budget);
  json.member("evaluations_given_up", stats.evaluations_given_up);
  json.close();
  json.close();
  json.close();
}

}  // namespace penstock::nids
