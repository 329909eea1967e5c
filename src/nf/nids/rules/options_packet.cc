// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options about headers, the flow and the stack's findings.

#include <array>
#include <limits>
#include <optional>

#include "base/units.h"
#include "nf/nids/rules/options.h"

namespace penstock::nids {

namespace {

using Header = HeaderNumber::Header;

struct HeaderOption {
  std::string_view name;
  Header header;
  std::uint64_t most;
};
constexpr std::array<HeaderOption, 15> kHeaderOptions{{
    {"ack", Header::tcp_ack, 0xffffffff},
    {"tcp.ack", Header::tcp_ack, 0xffffffff},
    {"seq", Header::tcp_sequence, 0xffffffff},
    {"tcp.seq", Header::tcp_sequence, 0xffffffff},
    {"window", Header::tcp_window, 0xffff},
    {"tcp.window", Header::tcp_window, 0xffff},
    {"tcp.mss", Header::tcp_mss, 0xffff},
    {"id", Header::ip_id, 0xffff},
    {"itype", Header::icmp_type, 0xff},
    {"icmp.type", Header::icmp_type, 0xff},
    {"icode", Header::icmp_code, 0xff},
    {"icmp_id", Header::icmp_id, 0xffff},
    {"icmp_seq", Header::icmp_sequence, 0xffff},
    {"icmpv6.mtu", Header::icmpv6_mtu, 0xffffffff},
    {"ttl", Header::ttl, 0xff},
}};

struct NamedNumber {
  std::string_view name;
  std::uint8_t number;
};
constexpr std::array<NamedNumber, 26> kIpProtocols{
    {{"icmp", 1},  {"igmp", 2},  {"ggp", 3},    {"ipencap", 4}, {"ipip", 4},  {"st", 5},         {"tcp", 6},
     {"egp", 8},   {"igp", 9},   {"pup", 12},   {"udp", 17},    {"hmp", 20},  {"rdp", 27},       {"dccp", 33},
     {"ipv6", 41}, {"rsvp", 46}, {"gre", 47},   {"esp", 50},    {"ah", 51},   {"ipv6-icmp", 58}, {"eigrp", 88},
     {"ospf", 89}, {"pim", 103}, {"vrrp", 112}, {"l2tp", 115},  {"sctp", 132}}};
constexpr std::array<NamedNumber, 11> kIpOptions{{{"eol", 0},
                                                  {"nop", 1},
                                                  {"rr", 7},
                                                  {"ts", 68},
                                                  {"sec", 130},
                                                  {"lsrr", 131},
                                                  {"lsrre", 132},
                                                  {"esec", 133},
                                                  {"satid", 136},
                                                  {"ssrr", 137},
                                                  {"rtralt", 148}}};

template <std::size_t kCount>
std::optional<std::uint8_t> number_of(const std::array<NamedNumber, kCount>& all, std::string_view name) noexcept {
  for (const NamedNumber& one : all) {
    if (equals_ignoring_case(one.name, name)) return one.number;
  }
  return std::nullopt;
}

/// FIN 1, SYN 2, … as in the header; 1 and 2 are Snort's names for CWR and ECE.
std::optional<std::uint8_t> flag_of(char c) noexcept {
  switch (c) {
    case 'F':
    case 'f': return std::uint8_t{0x01};
    case 'S':
    case 's': return std::uint8_t{0x02};
    case 'R':
    case 'r': return std::uint8_t{0x04};
    case 'P':
    case 'p': return std::uint8_t{0x08};
    case 'A':
    case 'a': return std::uint8_t{0x10};
    case 'U':
    case 'u': return std::uint8_t{0x20};
    case '2':
    case 'E':
    case 'e': return std::uint8_t{0x40};
    case '1':
    case 'C':
    case 'c': return std::uint8_t{0x80};
    default: return std::nullopt;
  }
}

/// Reads the `+ * !` of flags and fragbits, which may come first or last.
template <typename How>
bool take_how(RuleDraft& draft, std::string_view here, How& how, bool& has_how) {
  if (has_how) return draft.fail_combination(here, "more than one of + * !");
  has_how = true;
  how = here == "+" ? How::all_of : here == "*" ? How::any_of : How::not_these;
  return true;
}

bool add(RuleDraft& draft, const PacketMatch& match) {
  draft.rule.packet_matches.push_back(match);
  return true;
}

bool set_flow(RuleDraft& draft, std::string_view word, bool& what) {
  if (what) return draft.fail_combination(word, "given twice");
  what = true;
  return true;
}

bool read_flow_word(RuleDraft& draft, std::string_view word) {
  FlowMatch& flow = draft.rule.flow;
  const std::string name = lower_case(word);
  if (name == "to_server" || name == "from_client") return set_flow(draft, word, flow.to_server);
  if (name == "to_client" || name == "from_server") return set_flow(draft, word, flow.to_client);
  if (name == "established") return set_flow(draft, word, flow.established);
  if (name == "not_established") return set_flow(draft, word, flow.not_established);
  if (name == "stateless") return set_flow(draft, word, flow.stateless);
  if (name == "only_stream") return set_flow(draft, word, flow.only_stream);
  if (name == "no_stream") return set_flow(draft, word, flow.no_stream);
  if (name == "only_frag") return set_flow(draft, word, flow.only_frag);
  if (name == "no_frag") return set_flow(draft, word, flow.no_frag);
  return draft.fail(word, "unknown flow keyword", in_quotes(word),
                    "to_server, to_client, from_server, from_client, established, not_established, stateless, "
                    "only_stream, no_stream, only_frag or no_frag");
}

}  // namespace

bool read_flow(RuleDraft& draft, const OptionValue& value) {
  if (draft.has_flow) return draft.fail_combination(value.name, "second flow");
  draft.has_flow = true;
  for (const std::string_view word : split_fields(value.text)) {
    if (!read_flow_word(draft, word)) return false;
  }
  const FlowMatch& flow = draft.rule.flow;
  if (flow.to_server && flow.to_client) return draft.fail_combination(value.text, "both directions");
  if (flow.established + flow.not_established + flow.stateless > 1) {
    return draft.fail_combination(value.text, "more than one of established, not_established and stateless");
  }
  if (flow.only_stream && flow.no_stream) return draft.fail_combination(value.text, "only_stream with no_stream");
  if (flow.only_frag && flow.no_frag) return draft.fail_combination(value.text, "only_frag with no_frag");
  return true;
}

bool read_dsize(RuleDraft& draft, const OptionValue& value) {
  for (const PacketMatch& match : draft.rule.packet_matches) {
    if (std::holds_alternative<Dsize>(match)) return draft.fail_combination(value.name, "second dsize");
  }
  Dsize match;
  if (!read_range(draft, value.text, 0xffff, "dsize", match.range)) return false;
  return add(draft, match);
}

/// `S`, `SA,12`, `+A`, `A+`, `!F`, `0`
bool read_flags(RuleDraft& draft, const OptionValue& value) {
  TcpFlags match;
  const std::vector<std::string_view> fields = split_fields(value.text);
  bool has_how = false;
  bool has_flag = false;
  for (std::size_t i = 0; i < fields[0].size(); ++i) {
    const std::string_view here = fields[0].substr(i, 1);
    if (here == "+" || here == "*" || here == "!") {
      if (!take_how(draft, here, match.how, has_how)) return false;
    } else if (here == "0") {
      has_flag = true;
    } else if (here != " ") {
      const auto flag = flag_of(here.front());
      if (!flag) return draft.fail(here, "unknown TCP flag", in_quotes(here), "F S R P A U C E 1 2 0");
      match.flags |= *flag;
      has_flag = true;
    }
  }
  if (!has_flag) return draft.fail(value.text, "no TCP flag", in_quotes(value.text), "F S R P A U C E 1 2 0");
  if (fields.size() > 2) return draft.fail(fields[2], "unexpected text after the flags", in_quotes(fields[2]), ";");
  if (fields.size() == 2) {
    for (std::size_t i = 0; i < fields[1].size(); ++i) {
      const std::string_view here = fields[1].substr(i, 1);
      // Snort writes a `!` before the flags to ignore.
      if (here == "!" || here == " ") continue;
      const auto flag = flag_of(here.front());
      if (!flag) return draft.fail(here, "unknown TCP flag", in_quotes(here), "F S R P A U C E 1 2");
      match.ignored |= *flag;
    }
  }
  return add(draft, match);
}

bool read_header_number(RuleDraft& draft, const OptionValue& value) {
  for (const HeaderOption& option : kHeaderOptions) {
    if (!equals_ignoring_case(option.name, value.name)) continue;
    HeaderNumber match{option.header, {}};
    if (!read_range(draft, value.text, option.most, "number", match.range)) return false;
    return add(draft, match);
  }
  return draft.fail_unsupported(value.name, value.name);
}

/// Suricata's forms, and Snort's `-5` (at most) and `5-` (at least).
bool read_ttl(RuleDraft& draft, const OptionValue& value) {
  HeaderNumber match{Header::ttl, {}};
  const bool at_most = value.text.starts_with('-');
  const bool at_least = value.text.ends_with('-');
  if (at_most == at_least) return read_header_number(draft, value);
  const std::string_view number = trimmed(at_most ? value.text.substr(1) : value.text.substr(0, value.text.size() - 1));
  if (!read_unsigned(draft, number, 0, 0xff, "ttl", match.range.first)) return false;
  match.range.operation = at_most ? NumberRange::Operator::less_equal : NumberRange::Operator::greater_equal;
  return add(draft, match);
}

/// `8`, `!8`, `x1F`
bool read_tos(RuleDraft& draft, const OptionValue& value) {
  HeaderNumber match{Header::tos, {}};
  std::string_view text = value.text;
  const bool negated = text.starts_with('!');
  if (negated) text = trimmed(text.substr(1));
  if (!text.starts_with('x') && !text.starts_with('X')) {
    return read_range(draft, value.text, 0xff, "tos", match.range) && add(draft, match);
  }
  const auto number = parse_integer("0" + std::string(text));
  if (!number || *number > 0xff)
    return draft.fail(text, "wrong tos", in_quotes(text), "0 to 255, or x0 to xff", "value");
  match.range = {negated ? NumberRange::Operator::not_equal : NumberRange::Operator::equal, *number, 0};
  return add(draft, match);
}

/// `6`, `tcp`, `!tcp`, `>100`
bool read_ip_proto(RuleDraft& draft, const OptionValue& value) {
  std::string_view name = value.text;
  auto operation = NumberRange::Operator::equal;
  if (name.starts_with('!')) {
    operation = NumberRange::Operator::not_equal;
    name = trimmed(name.substr(1));
  }
  HeaderNumber match{Header::ip_protocol, {}};
  if (const auto number = number_of(kIpProtocols, name)) {
    match.range = {operation, *number, 0};
  } else if (!read_range(draft, value.text, 0xff, "IP protocol", match.range)) {
    return false;
  }
  return add(draft, match);
}

bool read_ipopts(RuleDraft& draft, const OptionValue& value) {
  IpOption match;
  if (equals_ignoring_case(value.text, "any")) {
    match.any = true;
  } else if (const auto number = number_of(kIpOptions, value.text)) {
    match.option = *number;
  } else {
    return draft.fail(value.text, "unknown IP option", in_quotes(value.text),
                      "rr, eol, nop, ts, sec, esec, lsrr, lsrre, ssrr, satid, rtralt or any");
  }
  return add(draft, match);
}

/// `M`, `+MD`, `MD+`, `!R`
bool read_fragbits(RuleDraft& draft, const OptionValue& value) {
  FragmentBits match;
  bool has_how = false;
  for (std::size_t i = 0; i < value.text.size(); ++i) {
    const std::string_view here = value.text.substr(i, 1);
    if (here == "+" || here == "*" || here == "!") {
      if (!take_how(draft, here, match.how, has_how)) return false;
    } else if (here == "M") {
      match.more_fragments = true;
    } else if (here == "D") {
      match.dont_fragment = true;
    } else if (here == "R") {
      match.reserved = true;
    } else if (here != " ") {
      return draft.fail(here, "unknown fragment bit", in_quotes(here), "M, D or R");
    }
  }
  if (!match.more_fragments && !match.dont_fragment && !match.reserved) {
    return draft.fail(value.text, "no fragment bit", in_quotes(value.text), "M, D or R");
  }
  return add(draft, match);
}

bool read_fragoffset(RuleDraft& draft, const OptionValue& value) {
  FragmentOffset match;
  if (!read_range(draft, value.text, 0xffff, "fragment offset", match.range)) return false;
  return add(draft, match);
}

bool read_sameip(RuleDraft& draft, const OptionValue&) { return add(draft, SameIp{}); }

bool read_checksum(RuleDraft& draft, const OptionValue& value) {
  using Of = ChecksumMatch::Of;
  struct Name {
    std::string_view name;
    Of of;
  };
  static constexpr std::array<Name, 7> kNames{{{"ipv4-csum", Of::ipv4},
                                               {"tcpv4-csum", Of::tcpv4},
                                               {"tcpv6-csum", Of::tcpv6},
                                               {"udpv4-csum", Of::udpv4},
                                               {"udpv6-csum", Of::udpv6},
                                               {"icmpv4-csum", Of::icmpv4},
                                               {"icmpv6-csum", Of::icmpv6}}};
  const bool valid = equals_ignoring_case(value.text, "valid");
  if (!valid && !equals_ignoring_case(value.text, "invalid")) {
    return draft.fail(value.text, "wrong checksum state", in_quotes(value.text), "valid or invalid");
  }
  for (const Name& name : kNames) {
    if (equals_ignoring_case(name.name, value.name)) return add(draft, ChecksumMatch{name.of, valid});
  }
  return draft.fail_unsupported(value.name, value.name);
}

/// `server,<,6`
bool read_stream_size(RuleDraft& draft, const OptionValue& value) {
  using Side = StreamSize::Side;
  using Operator = NumberRange::Operator;
  const std::vector<std::string_view> fields = split_fields(value.text);
  if (fields.size() != 3)
    return draft.fail(value.text, "wrong stream_size", in_quotes(value.text), "SIDE, OPERATOR, BYTES");
  StreamSize match;
  if (equals_ignoring_case(fields[0], "server")) {
    match.side = Side::server;
  } else if (equals_ignoring_case(fields[0], "client")) {
    match.side = Side::client;
  } else if (equals_ignoring_case(fields[0], "both")) {
    match.side = Side::both;
  } else if (equals_ignoring_case(fields[0], "either")) {
    match.side = Side::either;
  } else {
    return draft.fail(fields[0], "unknown side", in_quotes(fields[0]), "server, client, both or either");
  }
  if (fields[1] == "<") {
    match.range.operation = Operator::less;
  } else if (fields[1] == "<=") {
    match.range.operation = Operator::less_equal;
  } else if (fields[1] == ">") {
    match.range.operation = Operator::greater;
  } else if (fields[1] == ">=") {
    match.range.operation = Operator::greater_equal;
  } else if (fields[1] == "=") {
    match.range.operation = Operator::equal;
  } else if (fields[1] == "!=" || fields[1] == "!") {
    match.range.operation = Operator::not_equal;
  } else {
    return draft.fail(fields[1], "unknown operator", in_quotes(fields[1]), "< <= > >= = or !=");
  }
  if (!read_unsigned(draft, fields[2], 0, 0xffffffff, "number of bytes", match.range.first)) return false;
  return add(draft, match);
}

bool read_stream_event(RuleDraft& draft, const OptionValue& value) {
  const auto event = stack::stream_event_of(value.text);
  if (!event) return draft.fail(value.text, "unknown stream event", in_quotes(value.text), "one of Suricata's names");
  return add(draft, StreamEventMatch{*event});
}

bool read_decode_event(RuleDraft& draft, const OptionValue& value) {
  const auto event = stack::decode_event_of(value.text);
  if (!event) return draft.fail(value.text, "unknown decode event", in_quotes(value.text), "one of Suricata's names");
  return add(draft, DecodeEventMatch{*event});
}

/// `decoder.ipv4.pkt_too_small`, `stream.est_packet_out_of_window`
bool read_engine_event(RuleDraft& draft, const OptionValue& value) {
  OptionValue event = value;
  for (const std::string_view prefix : {"stream.", "decoder."}) {
    if (!value.text.starts_with(prefix)) continue;
    event.text.remove_prefix(prefix.size());
    return prefix == "stream." ? read_stream_event(draft, event) : read_decode_event(draft, event);
  }
  return read_decode_event(draft, value);
}

}  // namespace penstock::nids
