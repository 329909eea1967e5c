// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/host_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "base/ip_address.h"

namespace penstock::control {

namespace {

/// They join primitives, and change nothing about the kind of the names that follow: `port http or https`.
constexpr auto kJoining = std::to_array<std::string_view>({"and", "not", "or"});

/// They are followed by names that libpcap knows itself, or looks up in files: of ports, protocols, frame types,
/// interfaces, rules and so on.
constexpr auto kBeforeOtherNames = std::to_array<std::string_view>({
    "action",
    "dir",
    "direction",
    "ifname",
    "on",
    "port",
    "portrange",
    "proto",
    "protochain",
    "reason",
    "rset",
    "ruleset",
    "subtype",
    "type",
});

/// The other words of libpcap's grammar (1.10, scanner.l), sorted.
constexpr auto kWords = std::to_array<std::string_view>({
    "aarp",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "address1",
    "address2",
    "address3",
    "address4",
    "ah",
    "arp",
    "atalk",
    "bcc",
    "broadcast",
    "byte",
    "carp",
    "clnp",
    "connectmsg",
    "csnp",
    "decnet",
    "dpc",
    "dst",
    "es-is",
    "esis",
    "esp",
    "ether",
    "fddi",
    "fisu",
    "gateway",
    "geneve",
    "greater",
    "hdpc",
    "hfisu",
    "hlssu",
    "hmsu",
    "hopc",
    "host",
    "hsio",
    "hsls",
    "icmp",
    "icmp-echo",
    "icmp-echoreply",
    "icmp-ireq",
    "icmp-ireqreply",
    "icmp-maskreply",
    "icmp-maskreq",
    "icmp-paramprob",
    "icmp-redirect",
    "icmp-routeradvert",
    "icmp-routersolicit",
    "icmp-sourcequench",
    "icmp-timxceed",
    "icmp-tstamp",
    "icmp-tstampreply",
    "icmp-unreach",
    "icmp6",
    "icmp6-destinationunreach",
    "icmp6-echo",
    "icmp6-echoreply",
    "icmp6-homeagentdiscoveryreply",
    "icmp6-homeagentdiscoveryrequest",
    "icmp6-inversendiscoveryadvert",
    "icmp6-inversendiscoverysolicit",
    "icmp6-mobileprefixadvert",
    "icmp6-mobileprefixsolicit",
    "icmp6-multicastlistenerdone",
    "icmp6-multicastlistenerquery",
    "icmp6-multicastlistenerreportv1",
    "icmp6-multicastlistenerreportv2",
    "icmp6-multicastrouteradvert",
    "icmp6-multicastrouterterm",
    "icmp6-multicastroutersolicit",
    "icmp6-neighboradvert",
    "icmp6-neighborsolicit",
    "icmp6-nodeinformationquery",
    "icmp6-nodeinformationresponse",
    "icmp6-packettoobig",
    "icmp6-parameterproblem",
    "icmp6-redirect",
    "icmp6-routeradvert",
    "icmp6-routerrenum",
    "icmp6-routersolicit",
    "icmp6-timeexceeded",
    "icmp6code",
    "icmp6type",
    "icmpcode",
    "icmptype",
    "ifindex",
    "igmp",
    "igrp",
    "iih",
    "ilmic",
    "inbound",
    "ip",
    "ip6",
    "ipx",
    "is-is",
    "isis",
    "iso",
    "l1",
    "l2",
    "lane",
    "lat",
    "len",
    "length",
    "less",
    "link",
    "llc",
    "lsp",
    "lssu",
    "lsu",
    "mask",
    "metac",
    "metaconnect",
    "mopdl",
    "moprc",
    "mpls",
    "msu",
    "multicast",
    "net",
    "netbeui",
    "oam",
    "oamf4",
    "oamf4ec",
    "oamf4sc",
    "opc",
    "outbound",
    "pim",
    "ppp",
    "pppoed",
    "pppoes",
    "psnp",
    "ra",
    "radio",
    "rarp",
    "rnr",
    "rulenum",
    "sc",
    "sca",
    "sctp",
    "sio",
    "slip",
    "sls",
    "snp",
    "src",
    "srnr",
    "stp",
    "subrulenum",
    "ta",
    "tcp",
    "tcp-ack",
    "tcp-cwr",
    "tcp-ece",
    "tcp-fin",
    "tcp-push",
    "tcp-rst",
    "tcp-syn",
    "tcp-urg",
    "tcpflags",
    "tr",
    "udp",
    "vci",
    "vlan",
    "vpi",
    "vrrp",
    "wlan",
});

bool contains(const auto& words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == ':';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A number, an IPv4 address or network, a MAC address or an IPv6 address. What has the form of a name, such as
/// `de.ad`, is none.
bool is_value(std::string_view word) {
  const auto only = [&](std::string_view part, std::string_view more) {
    return std::ranges::all_of(part, [&](char c) {
      return std::isxdigit(static_cast<unsigned char>(c)) != 0 || more.find(c) != std::string_view::npos;
    });
  };
  if (std::ranges::all_of(word, [](char c) { return is_digit(c) || c == '.'; })) return true;
  if (word.starts_with("0x") || word.starts_with("0X")) return only(word.substr(2), "");
  // MAC addresses: aa-bb-cc-dd-ee-ff, aa.bb.cc.dd.ee.ff, aabb.ccdd.eeff, aabbccddeeff
  const auto groups = [&](char between, std::size_t count, std::size_t least, std::size_t most) {
    std::size_t found = 0;
    for (std::string_view left = word;; ++found) {
      const std::size_t end = std::min(left.find(between), left.size());
      if (end < least || end > most || !only(left.substr(0, end), "")) return false;
      if (end == left.size()) return found + 1 == count;
      left.remove_prefix(end + 1);
    }
  };
  if (word.find(':') != std::string_view::npos) return parse_ipv6(word).has_value() || groups(':', 6, 1, 2);
  return groups('-', 6, 1, 2) || groups('.', 6, 1, 2) || groups('.', 3, 4, 4) || groups('-', 1, 12, 12);
}

}  // namespace

std::string host_name_in(std::string_view expression) {
  bool other_names = false;
  for (std::size_t at = 0; at < expression.size();) {
    if (!is_word_character(expression[at])) {
      ++at;
      continue;
    }
    const bool escaped = at > 0 && expression[at - 1] == '\\';  // a name in any case
    std::size_t end = at;
    while (end < expression.size() && is_word_character(expression[end])) ++end;
    std::string_view word = expression.substr(at, end - at);
    if (!escaped && !is_value(word)) {
      // No name and no number has a colon: it stands between others, as in `tcp[tcpflags:1]` or `ip[0:2]`.
      word = word.substr(0, word.find(':'));
    }
    at += std::max<std::size_t>(word.size(), 1);
    if (word.empty() || (!escaped && is_value(word))) continue;
    if (!escaped) {
      if (contains(kJoining, word)) continue;
      if (contains(kBeforeOtherNames, word)) {
        other_names = true;
        continue;
      }
      if (contains(kWords, word)) {
        other_names = false;
        continue;
      }
    }
    if (!other_names) return std::string(word);
  }
  return "";
}

}  // namespace penstock::control
