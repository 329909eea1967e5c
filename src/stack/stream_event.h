// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors and anomalies in a TCP session, by Suricata's names (stream-events.rules).

#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::stack {

/// Index into the list of names in stream_event.cc.
struct StreamEvent {
  std::uint16_t index = 0;
};
inline constexpr std::size_t kMostStreamEvents = 128;
using StreamEvents = std::bitset<kMostStreamEvents>;

/// The event with this name, such as "3whs_synack_with_wrong_ack"; nullopt if Suricata has none of that name.
[[nodiscard]] std::optional<StreamEvent> stream_event_of(std::string_view name) noexcept;
/// The event's name. The index must be valid.
[[nodiscard]] std::string_view name_of(StreamEvent event) noexcept;

/// The events that the tracker sets, in the order of the names in stream_event.cc (h3, h4: 3-way, 4-way handshake).
enum class TcpEvent : std::uint16_t {
  h3_ack_in_wrong_direction,
  h3_async_wrong_sequence,
  h3_right_sequence_wrong_ack,
  h3_synack_in_wrong_direction,
  h3_synack_resend_with_different_ack,
  h3_synack_resend_with_different_sequence,
  h3_synack_to_server_on_syn_received,
  h3_synack_with_wrong_ack,
  h3_synack_flood,
  h3_synack_ignores_fast_open_data,
  h3_syn_resend_with_different_sequence,
  h3_syn_to_client_on_syn_received,
  h3_syn_flood,
  h3_wrong_sequence_wrong_ack,
  h3_data_injected,
  h4_synack_with_wrong_ack,
  h4_synack_with_wrong_syn,
  h4_wrong_sequence,
  h4_invalid_ack,
  close_wait_ack_out_of_window,
  close_wait_fin_out_of_window,
  close_wait_packet_before_last_ack,
  close_wait_invalid_ack,
  closing_ack_wrong_sequence,
  closing_invalid_ack,
  established_packet_out_of_window,
  established_packet_before_last_ack,
  established_synack_resend,
  established_synack_resend_with_different_ack,
  established_synack_resend_with_different_sequence,
  established_synack_to_server,
  established_syn_resend,
  established_syn_resend_with_different_sequence,
  established_syn_to_client,
  established_invalid_ack,
  fin_invalid_ack,
  fin1_ack_wrong_sequence,
  fin1_fin_wrong_sequence,
  fin1_invalid_ack,
  fin2_ack_wrong_sequence,
  fin2_fin_wrong_sequence,
  fin2_invalid_ack,
  fin_without_session,
  fin_out_of_window,
  fin_with_syn,
  last_ack_ack_wrong_sequence,
  last_ack_invalid_ack,
  rst_without_session,
  time_wait_ack_wrong_sequence,
  time_wait_invalid_ack,
  shutdown_syn_resend,
  invalid_timestamp,
  invalid_ack,
  broken_ack,
  rst_invalid_ack,
  retransmission,
  spurious_retransmission,
  bad_window_update,
  suspected_rst_injection,
  wrong_thread,
  segment_before_base,
  no_segment,
  sequence_gap,
  overlap_with_different_data,
  depth_reached,
  memory_limit,
  insert_limit,
  insert_invalid,
  urgent_limit_reached,
  end,
};
static_assert(static_cast<std::size_t>(TcpEvent::end) <= kMostStreamEvents);

}  // namespace penstock::stack
