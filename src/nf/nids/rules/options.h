// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of all rule options: the reader of each, which form its value has, and the known options that are not
// supported.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "nf/nids/rules/rule_draft.h"

namespace penstock::nids {

struct OptionKind {
  enum class Value : std::uint8_t { none, optional, required };
  enum class Quotes : std::uint8_t { none, optional, required };

  std::string_view name;
  OptionReader read;
  Value value = Value::required;
  Quotes quotes = Quotes::none;
  bool negatable = false;  // `!` may precede the value, outside the quotes
};

/// Looks an option up, ignoring case. Null if it is not supported.
[[nodiscard]] const OptionKind* option_of(std::string_view name) noexcept;
[[nodiscard]] std::span<const OptionKind> all_options() noexcept;
/// Whether Suricata or Snort have this option, although it is not supported here.
[[nodiscard]] bool is_known_option(std::string_view name);
/// Whether a header may name this protocol in Suricata or Snort: application protocols such as `http` and `dns`, and
/// others.
[[nodiscard]] bool is_known_protocol(std::string_view name);

/// Reads one option into the draft, after removing its quotes and `!`. False on error: the draft's complaint has the
/// reason.
bool read_option(RuleDraft& draft, const OptionText& option);

// options_content.cc
bool read_content(RuleDraft& draft, const OptionValue& value);
bool read_nocase(RuleDraft& draft, const OptionValue& value);
bool read_rawbytes(RuleDraft& draft, const OptionValue& value);
bool read_offset(RuleDraft& draft, const OptionValue& value);
bool read_depth(RuleDraft& draft, const OptionValue& value);
bool read_distance(RuleDraft& draft, const OptionValue& value);
bool read_within(RuleDraft& draft, const OptionValue& value);
bool read_startswith(RuleDraft& draft, const OptionValue& value);
bool read_endswith(RuleDraft& draft, const OptionValue& value);
bool read_fast_pattern(RuleDraft& draft, const OptionValue& value);
bool read_pcre(RuleDraft& draft, const OptionValue& value);

// options_bytes.cc
bool read_isdataat(RuleDraft& draft, const OptionValue& value);
bool read_bsize(RuleDraft& draft, const OptionValue& value);
bool read_byte_test(RuleDraft& draft, const OptionValue& value);
bool read_byte_jump(RuleDraft& draft, const OptionValue& value);
bool read_byte_extract(RuleDraft& draft, const OptionValue& value);
bool read_byte_math(RuleDraft& draft, const OptionValue& value);
bool read_base64_decode(RuleDraft& draft, const OptionValue& value);
bool read_buffer(RuleDraft& draft, const OptionValue& value);

// options_packet.cc
bool read_flow(RuleDraft& draft, const OptionValue& value);
bool read_dsize(RuleDraft& draft, const OptionValue& value);
bool read_flags(RuleDraft& draft, const OptionValue& value);
bool read_header_number(RuleDraft& draft, const OptionValue& value);
bool read_tos(RuleDraft& draft, const OptionValue& value);
bool read_ttl(RuleDraft& draft, const OptionValue& value);
bool read_ip_proto(RuleDraft& draft, const OptionValue& value);
bool read_ipopts(RuleDraft& draft, const OptionValue& value);
bool read_fragbits(RuleDraft& draft, const OptionValue& value);
bool read_fragoffset(RuleDraft& draft, const OptionValue& value);
bool read_sameip(RuleDraft& draft, const OptionValue& value);
bool read_checksum(RuleDraft& draft, const OptionValue& value);
bool read_stream_size(RuleDraft& draft, const OptionValue& value);
bool read_stream_event(RuleDraft& draft, const OptionValue& value);
bool read_decode_event(RuleDraft& draft, const OptionValue& value);
bool read_engine_event(RuleDraft& draft, const OptionValue& value);

// options_state.cc
bool read_flowbits(RuleDraft& draft, const OptionValue& value);
bool read_flowint(RuleDraft& draft, const OptionValue& value);
bool read_xbits(RuleDraft& draft, const OptionValue& value);
bool read_threshold(RuleDraft& draft, const OptionValue& value);
bool read_detection_filter(RuleDraft& draft, const OptionValue& value);
bool read_tag(RuleDraft& draft, const OptionValue& value);
bool read_noalert(RuleDraft& draft, const OptionValue& value);
bool read_alert(RuleDraft& draft, const OptionValue& value);

// options_about.cc
bool read_msg(RuleDraft& draft, const OptionValue& value);
bool read_sid(RuleDraft& draft, const OptionValue& value);
bool read_gid(RuleDraft& draft, const OptionValue& value);
bool read_rev(RuleDraft& draft, const OptionValue& value);
bool read_priority(RuleDraft& draft, const OptionValue& value);
bool read_classtype(RuleDraft& draft, const OptionValue& value);
bool read_reference(RuleDraft& draft, const OptionValue& value);
bool read_metadata(RuleDraft& draft, const OptionValue& value);
bool read_target(RuleDraft& draft, const OptionValue& value);
bool read_prefilter(RuleDraft& draft, const OptionValue& value);

}  // namespace penstock::nids
