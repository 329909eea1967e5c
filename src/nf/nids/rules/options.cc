// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/options.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace penstock::nids {

namespace {

using Value = OptionKind::Value;
using Quotes = OptionKind::Quotes;

/// README.md describes what each means here.
constexpr std::array kOptions{
    // Description.
    OptionKind{"msg", read_msg, Value::required, Quotes::required},
    OptionKind{"sid", read_sid, Value::required, Quotes::optional},
    OptionKind{"gid", read_gid, Value::required, Quotes::optional},
    OptionKind{"rev", read_rev, Value::required, Quotes::optional},
    OptionKind{"priority", read_priority, Value::required, Quotes::optional},
    OptionKind{"classtype", read_classtype, Value::required, Quotes::optional},
    OptionKind{"reference", read_reference, Value::required, Quotes::optional},
    OptionKind{"metadata", read_metadata},
    OptionKind{"target", read_target},
    OptionKind{"prefilter", read_prefilter, Value::none},
    OptionKind{"noalert", read_noalert, Value::none},
    OptionKind{"alert", read_alert, Value::none},
    // Bytes.
    OptionKind{"content", read_content, Value::required, Quotes::required, true},
    OptionKind{"nocase", read_nocase, Value::none},
    OptionKind{"rawbytes", read_rawbytes, Value::none},
    OptionKind{"offset", read_offset, Value::required, Quotes::optional},
    OptionKind{"depth", read_depth, Value::required, Quotes::optional},
    OptionKind{"distance", read_distance, Value::required, Quotes::optional},
    OptionKind{"within", read_within, Value::required, Quotes::optional},
    OptionKind{"startswith", read_startswith, Value::none},
    OptionKind{"endswith", read_endswith, Value::none},
    OptionKind{"fast_pattern", read_fast_pattern, Value::optional},
    OptionKind{"pcre", read_pcre, Value::required, Quotes::optional, true},
    OptionKind{"isdataat", read_isdataat, Value::required, Quotes::optional, true},
    OptionKind{"bsize", read_bsize},
    OptionKind{"byte_test", read_byte_test},
    OptionKind{"byte_jump", read_byte_jump},
    OptionKind{"byte_extract", read_byte_extract},
    OptionKind{"byte_math", read_byte_math},
    OptionKind{"base64_decode", read_base64_decode, Value::optional},
    // Buffers.
    OptionKind{"pkt_data", read_buffer, Value::none},
    OptionKind{"base64_data", read_buffer, Value::none},
    OptionKind{"ipv4.hdr", read_buffer, Value::none},
    OptionKind{"ipv6.hdr", read_buffer, Value::none},
    OptionKind{"tcp.hdr", read_buffer, Value::none},
    OptionKind{"udp.hdr", read_buffer, Value::none},
    OptionKind{"icmpv4.hdr", read_buffer, Value::none},
    OptionKind{"icmpv6.hdr", read_buffer, Value::none},
    // Headers.
    OptionKind{"dsize", read_dsize, Value::required, Quotes::optional},
    OptionKind{"flags", read_flags, Value::required, Quotes::optional},
    OptionKind{"tcp.flags", read_flags, Value::required, Quotes::optional},
    OptionKind{"ack", read_header_number, Value::required, Quotes::optional},
    OptionKind{"tcp.ack", read_header_number, Value::required, Quotes::optional},
    OptionKind{"seq", read_header_number, Value::required, Quotes::optional},
    OptionKind{"tcp.seq", read_header_number, Value::required, Quotes::optional},
    OptionKind{"window", read_header_number, Value::required, Quotes::optional},
    OptionKind{"tcp.window", read_header_number, Value::required, Quotes::optional},
    OptionKind{"tcp.mss", read_header_number, Value::required, Quotes::optional},
    OptionKind{"id", read_header_number, Value::required, Quotes::optional},
    OptionKind{"itype", read_header_number, Value::required, Quotes::optional},
    OptionKind{"icode", read_header_number, Value::required, Quotes::optional},
    OptionKind{"icmp_id", read_header_number, Value::required, Quotes::optional},
    OptionKind{"icmp_seq", read_header_number, Value::required, Quotes::optional},
    OptionKind{"icmpv6.mtu", read_header_number, Value::required, Quotes::optional},
    OptionKind{"ttl", read_ttl, Value::required, Quotes::optional},
    OptionKind{"tos", read_tos, Value::required, Quotes::optional},
    OptionKind{"ip_proto", read_ip_proto, Value::required, Quotes::optional},
    OptionKind{"ipopts", read_ipopts, Value::required, Quotes::optional},
    OptionKind{"fragbits", read_fragbits, Value::required, Quotes::optional},
    OptionKind{"fragoffset", read_fragoffset, Value::required, Quotes::optional},
    OptionKind{"sameip", read_sameip, Value::none},
    OptionKind{"ipv4-csum", read_checksum, Value::required, Quotes::optional},
    OptionKind{"tcpv4-csum", read_checksum, Value::required, Quotes::optional},
    OptionKind{"tcpv6-csum", read_checksum, Value::required, Quotes::optional},
    OptionKind{"udpv4-csum", read_checksum, Value::required, Quotes::optional},
    OptionKind{"udpv6-csum", read_checksum, Value::required, Quotes::optional},
    OptionKind{"icmpv4-csum", read_checksum, Value::required, Quotes::optional},
    OptionKind{"icmpv6-csum", read_checksum, Value::required, Quotes::optional},
    // The flow and the stack's findings.
    OptionKind{"flow", read_flow, Value::required, Quotes::optional},
    OptionKind{"stream_size", read_stream_size},
    OptionKind{"stream-event", read_stream_event},
    OptionKind{"decode-event", read_decode_event},
    OptionKind{"engine-event", read_engine_event},
    // State that outlives the packet.
    OptionKind{"flowbits", read_flowbits, Value::required, Quotes::optional},
    OptionKind{"flowint", read_flowint},
    OptionKind{"xbits", read_xbits},
    OptionKind{"threshold", read_threshold},
    OptionKind{"detection_filter", read_detection_filter},
    OptionKind{"tag", read_tag},
};

// Prefixes of options about application protocols, files and the like.
constexpr std::array kFamilies{
    "http.",       "http_",      "http1.",      "http2.",  "dns.",       "dns_",
    "tls.",        "tls_",       "ssl_",        "ssh.",    "ssh_",       "smb.",
    "smb_",        "file.",      "file_",       "ja3",     "ja4",        "ftp.",
    "ftp_",        "ftpdata",    "smtp.",       "email.",  "mime.",      "krb5.",
    "krb5_",       "sip.",       "sip_",        "mqtt.",   "quic.",      "snmp.",
    "rfb.",        "ike.",       "nfs.",        "nfs_",    "dcerpc.",    "dce_",
    "rdp.",        "websocket.", "ldap.",       "mdns.",   "dhcp.",      "pop3.",
    "enip_",       "enip.",      "cip_",        "modbus_", "dnp3_",      "gtp_",
    "s7commplus_", "app-layer",  "frame",       "ndpi",    "cert_",      "stream_reassemble",
    "nfq_",        "igmp.",      "vlan.",       "ether.",  "arp.",       "requires_",
    "transform",   "to_",        "from_base64", "strip_",  "url_decode", "gunzip",
    "zlib_",       "iprep",      "lua",         "pgsql.",  "bittorrent", "tftp.",
    "tcp.",        "udp.",       "ipv4.",       "ipv6.",   "icmpv4.",    "icmpv6.",
    "flow.",       "hash_",
};
constexpr std::array kOthers{
    "activated_by", "activates",
    "appids",       "asn1",
    "bypass",       "compress_whitespace",
    "config",       "count",
    "cvs",          "dataset",
    "datarep",      "detection",
    "dnp3",         "dotprefix",
    "entropy",      "filemagic",
    "filename",     "fileext",
    "filemd5",      "filesha1",
    "filesha256",   "filesize",
    "filestore",    "flowvar",
    "ftpbounce",    "geoip",
    "hostbits",     "hash",
    "hosts",        "icmpv4",
    "isnotset",     "l3_proto",
    "logto",        "luaxform",
    "md5",          "modbus",
    "nfs",          "pcrexform",
    "pktvar",       "protected_content",
    "react",        "replace",
    "requires",     "resp",
    "rpc",          "sd_pattern",
    "session",      "sha1",
    "sha256",       "sha512",
    "soid",         "streamLoc",
    "urilen",       "uricontent",
    "xor",          "stickybuffer",
    "absent",       "length",
    "reject",       "service",
    "rem",          "gtp",
    "unicode",      "header_lowercase",
    "urldecode",    "decompress_whitespace",
    "dsa",          "tx_bits",
    "txbits",       "domain",
    "tld",          "ipproto",
};

// Application and other protocols that headers may name in Suricata and Snort.
constexpr std::array kProtocols{
    "http",    "http1", "http2",     "tls",    "ssl",  "ssh",  "ftp",    "ftp-data", "smtp",          "imap",
    "pop3",    "dns",   "doh2",      "mdns",   "smb",  "nfs",  "dcerpc", "ntp",      "dhcp",          "krb5",
    "ike",     "ikev2", "quic",      "sip",    "rfb",  "mqtt", "rdp",    "snmp",     "tftp",          "telnet",
    "pgsql",   "ldap",  "websocket", "modbus", "dnp3", "enip", "msn",    "irc",      "jabber",        "bittorrent-dht",
    "file",    "ether", "arp",       "igmp",   "gre",  "esp",  "ah",     "template", "template-rust", "bacnet",
    "netbios", "user",
};

const std::unordered_map<std::string_view, const OptionKind*>& options_by_name() {
  static const auto kTable = [] {
    std::unordered_map<std::string_view, const OptionKind*> names;
    for (const OptionKind& option : kOptions) names.emplace(option.name, &option);
    return names;
  }();
  return kTable;
}

/// For suggestions; includes known options that are not supported.
std::vector<std::string_view> option_names() {
  std::vector<std::string_view> names(kOthers.begin(), kOthers.end());
  for (const OptionKind& option : kOptions) names.push_back(option.name);
  return names;
}

/// A name in lower case, without allocation; no option's name is longer.
struct LowerName {
  std::array<char, 40> bytes{};
  std::string_view text;

  explicit LowerName(std::string_view name) noexcept {
    if (name.size() > bytes.size()) return;
    std::transform(name.begin(), name.end(), bytes.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    text = {bytes.data(), name.size()};
  }
  [[nodiscard]] bool is_name() const noexcept {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    });
  }
};

/// Where the quoted text ends; npos if it does not.
std::size_t closing_quote(std::string_view text) noexcept {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i;
    }
  }
  return text.npos;
}

/// Removes `!` and the quotes. For pcre, the last quote ends the text, since the expression may contain quotes.
bool take_quotes(RuleDraft& draft, const OptionKind& kind, OptionValue& value) {
  if (kind.negatable && value.text.starts_with('!')) {
    value.negated = true;
    value.text = trimmed(value.text.substr(1));
  }
  if (!value.text.starts_with('"')) {
    if (kind.quotes != Quotes::required) return true;
    return draft.fail(value.text, "missing quotes", in_quotes(value.text), "\"…\"");
  }
  if (kind.quotes == Quotes::none) return draft.fail(value.text, "unexpected quotes", in_quotes(value.text), "none");
  const bool has_rest = kind.read == read_content;
  const std::size_t end = has_rest ? closing_quote(value.text) : value.text.size() - 1;
  if (end == value.text.npos || end == 0 || value.text[end] != '"') {
    return draft.fail(value.text, "unclosed quotes", in_quotes(value.text),
                      "a closing \" (write `;` in quotes as `\\;`)");
  }
  value.quoted = true;
  value.rest = value.text.substr(end + 1);
  value.text = value.text.substr(1, end - 1);
  if (kind.quotes == Quotes::optional && kind.read != read_pcre) value.text = trimmed(value.text);
  return true;
}

}  // namespace

const OptionKind* option_of(std::string_view name) noexcept {
  const LowerName lower(name);
  const auto at = options_by_name().find(lower.text);
  return at == options_by_name().end() ? nullptr : at->second;
}

std::span<const OptionKind> all_options() noexcept { return kOptions; }

bool is_known_option(std::string_view name) {
  const LowerName lower(name);
  if (!lower.is_name()) return false;
  const std::string_view text = lower.text;
  return std::any_of(kFamilies.begin(), kFamilies.end(),
                     [&](const char* family) { return text.starts_with(family); }) ||
         std::find(kOthers.begin(), kOthers.end(), text) != kOthers.end();
}

bool is_known_protocol(std::string_view name) {
  return std::find(kProtocols.begin(), kProtocols.end(), name) != kProtocols.end();
}

bool read_option(RuleDraft& draft, const OptionText& option) {
  const OptionKind* kind = option_of(option.name);
  if (kind == nullptr) {
    if (is_known_option(option.name)) return draft.fail_unsupported(option.name, lower_case(option.name));
    return draft.fail(option.name, with_suggestion("unknown option", lower_case(option.name), option_names()),
                      in_quotes(option.name), "", "unknown option");
  }
  if (option.value.empty() && kind->value == Value::required) {
    return draft.fail(option.name, "option without a value", in_quotes(option.name), ": and a value");
  }
  if (!option.value.empty() && kind->value == Value::none) {
    return draft.fail(option.value, "option does not take a value", in_quotes(option.value), ";");
  }
  OptionValue value;
  value.name = option.name;
  value.text = option.value;
  if (!take_quotes(draft, *kind, value)) return false;
  if (value.text.empty() && kind->value == Value::required) {
    return draft.fail(option.value, "option without a value", in_quotes(option.value), "a value");
  }
  const std::size_t conditions = draft.conditions();
  if (!kind->read(draft, value)) return false;
  if (draft.conditions() != conditions) draft.last_condition = kind->name;
  return true;
}

}  // namespace penstock::nids
