// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `ipset save` (ipset(8)), which rules of iptables refer to by `-m set` and `-j SET`.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "classify/interval.h"
#include "packet/layout.h"

namespace penstock::firewall {

struct Ipset {
  enum class Part : std::uint8_t { address, port, mac };  // `port`: with its protocol
  struct Element {
    std::vector<classify::Interval> values;  // one for each part
    std::uint8_t protocol = 0;               // of the part `port`
    std::uint64_t timeout_ns = 0;            // 0: it stays
  };

  std::string type;                          // "hash:ip,port"
  NetworkLayer family = NetworkLayer::ipv4;  // none: of a set without addresses
  std::vector<Part> parts;
  std::vector<Element> elements;
  std::vector<std::string> members;  // of list:set
  bool has_ranges = false;           // an element, in one of its parts
  bool has_timeouts = false;
  std::uint64_t timeout_ns = 0;  // of elements without their own
  std::uint32_t size = 65536;    // most elements
  bool any_protocol = false;     // bitmap:port has ports of any protocol
  std::string unsupported{};     // why rules that use it are unsupported; empty: they are not
};

using Ipsets = std::map<std::string, Ipset, std::less<>>;

/// `text` is the content of `file`. Fails if it has mistakes, or more than `most` lines. Types that are not supported
/// are no mistakes.
[[nodiscard]] Result<Ipsets> read_ipsets(std::string_view text, const std::string& file, std::size_t most);

}  // namespace penstock::firewall
