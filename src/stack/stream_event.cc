// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/stream_event.h"

#include <algorithm>
#include <array>

namespace penstock::stack {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(TcpEvent::end)> kNames = {
    "3whs_ack_in_wrong_dir",
    "3whs_async_wrong_seq",
    "3whs_right_seq_wrong_ack_evasion",
    "3whs_synack_in_wrong_direction",
    "3whs_synack_resend_with_different_ack",
    "3whs_synack_resend_with_diff_seq",
    "3whs_synack_toserver_on_syn_recv",
    "3whs_synack_with_wrong_ack",
    "3whs_synack_flood",
    "3whs_synack_tfo_data_ignored",
    "3whs_syn_resend_diff_seq_on_syn_recv",
    "3whs_syn_toclient_on_syn_recv",
    "3whs_syn_flood",
    "3whs_wrong_seq_wrong_ack",
    "3whs_ack_data_inject",
    "4whs_synack_with_wrong_ack",
    "4whs_synack_with_wrong_syn",
    "4whs_wrong_seq",
    "4whs_invalid_ack",
    "closewait_ack_out_of_window",
    "closewait_fin_out_of_window",
    "closewait_pkt_before_last_ack",
    "closewait_invalid_ack",
    "closing_ack_wrong_seq",
    "closing_invalid_ack",
    "est_packet_out_of_window",
    "est_pkt_before_last_ack",
    "est_synack_resend",
    "est_synack_resend_with_different_ack",
    "est_synack_resend_with_diff_seq",
    "est_synack_toserver",
    "est_syn_resend",
    "est_syn_resend_diff_seq",
    "est_syn_toclient",
    "est_invalid_ack",
    "fin_invalid_ack",
    "fin1_ack_wrong_seq",
    "fin1_fin_wrong_seq",
    "fin1_invalid_ack",
    "fin2_ack_wrong_seq",
    "fin2_fin_wrong_seq",
    "fin2_invalid_ack",
    "fin_but_no_session",
    "fin_out_of_window",
    "fin_syn",
    "lastack_ack_wrong_seq",
    "lastack_invalid_ack",
    "rst_but_no_session",
    "timewait_ack_wrong_seq",
    "timewait_invalid_ack",
    "shutdown_syn_resend",
    "pkt_invalid_timestamp",
    "pkt_invalid_ack",
    "pkt_broken_ack",
    "rst_invalid_ack",
    "pkt_retransmission",
    "pkt_spurious_retransmission",
    "pkt_bad_window_update",
    "suspected_rst_inject",
    "wrong_thread",
    "reassembly_segment_before_base_seq",
    "reassembly_no_segment",
    "reassembly_seq_gap",
    "reassembly_overlap_different_data",
    "reassembly_depth_reached",
    "reassembly_insert_memcap",
    "reassembly_insert_limit",
    "reassembly_insert_invalid",
    "reassembly_urgent_oob_limit_reached",
};

}  // namespace

std::optional<StreamEvent> stream_event_of(std::string_view name) noexcept {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return StreamEvent{static_cast<std::uint16_t>(found - kNames.begin())};
}

std::string_view name_of(StreamEvent event) noexcept { return kNames.at(event.index); }

}  // namespace penstock::stack
