// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/link_types.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <array>

namespace penstock::port {

namespace {

struct Known {
  int dlt;
  LinkType type;
};

constexpr std::array kKnown{
    Known{DLT_EN10MB, LinkType::ethernet},
    Known{DLT_RAW, LinkType::raw_ip},
    Known{DLT_IPV4, LinkType::raw_ip},
    Known{DLT_IPV6, LinkType::raw_ip},
    Known{DLT_NULL, LinkType::null_host},
    Known{DLT_LOOP, LinkType::loop},
    Known{DLT_LINUX_SLL, LinkType::linux_sll},
    Known{DLT_LINUX_SLL2, LinkType::linux_sll2},
    Known{DLT_PPP, LinkType::ppp},
    Known{DLT_PPP_SERIAL, LinkType::ppp},
    Known{DLT_C_HDLC, LinkType::cisco_hdlc},
};

std::string dlt_name(int dlt) {
  const char* name = pcap_datalink_val_to_name(dlt);
  return name != nullptr ? name : "unknown";
}

}  // namespace

std::optional<LinkType> link_type_of_dlt(int dlt) noexcept {
  for (const Known& known : kKnown) {
    if (known.dlt == dlt) return known.type;
  }
  return std::nullopt;
}

std::optional<LinkType> link_type_in_file(std::uint16_t linktype) noexcept {
  // This is the only supported type whose value in files differs from that in the API.
  constexpr std::uint16_t kRaw = 101;
  return link_type_of_dlt(linktype == kRaw ? DLT_RAW : linktype);
}

std::uint16_t linktype_in_file(LinkType type) noexcept {
  switch (type) {
    case LinkType::ethernet: return 1;
    case LinkType::raw_ip: return 101;
    case LinkType::null_host: return 0;
    case LinkType::loop: return 108;
    case LinkType::linux_sll: return 113;
    case LinkType::linux_sll2: return 276;
    case LinkType::ppp: return 9;
    case LinkType::cisco_hdlc: return 104;
  }
  return 1;
}

std::string describe_dlt(int dlt) { return fmt::format("{} ({})", dlt_name(dlt), dlt); }

const char* name_of(LinkType type) noexcept {
  switch (type) {
    case LinkType::ethernet: return "Ethernet";
    case LinkType::raw_ip: return "raw IP";
    case LinkType::null_host: return "BSD loopback";
    case LinkType::loop: return "OpenBSD loopback";
    case LinkType::linux_sll: return "Linux cooked v1";
    case LinkType::linux_sll2: return "Linux cooked v2";
    case LinkType::ppp: return "PPP";
    case LinkType::cisco_hdlc: return "Cisco HDLC";
  }
  return "unknown";
}

std::string supported_dlts() {
  std::string list;
  for (const Known& known : kKnown) {
    list += list.empty() ? "" : &known == &kKnown.back() ? " or " : ", ";
    list += dlt_name(known.dlt);
  }
  return list;
}

}  // namespace penstock::port
