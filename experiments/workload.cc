// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/workload.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <stdexcept>
#include <system_error>
#include <unordered_set>

#include "base/text_file.h"
#include "packet/ip.h"

namespace penstock::experiments {
namespace {

struct LengthShare {
  std::uint8_t length;
  std::uint32_t routes;
};
// Number of prefixes of each length in full tables of 2025.
constexpr LengthShare kShares[] = {{8, 16},     {9, 13},     {10, 40},     {11, 100},   {12, 300},   {13, 590},
                                   {14, 1200},  {15, 2100},  {16, 13500},  {17, 8200},  {18, 13800}, {19, 24900},
                                   {20, 42600}, {21, 50800}, {22, 108600}, {23, 96500}, {24, 537700}};
constexpr std::uint8_t kLongestBlock = 16;
constexpr std::size_t kMostRoutes = 4'000'000;

std::uint8_t draw_length(std::mt19937_64& random) {
  static const std::uint64_t kTotal = [] {
    std::uint64_t sum = 0;
    for (const LengthShare& share : kShares) sum += share.routes;
    return sum;
  }();
  std::uint64_t at = random() % kTotal;
  for (const LengthShare& share : kShares) {
    if (at < share.routes) return share.length;
    at -= share.routes;
  }
  return std::end(kShares)[-1].length;
}

/// For prefixes of at least 8 bits.
bool is_public(std::uint32_t address) {
  const std::uint32_t first = address >> 24;
  return first != 0 && first != 10 && first != 127 && first < 224;
}

/// A port range "LOW : HIGH".
std::string port_range(std::mt19937_64& random) {
  constexpr std::array<std::uint16_t, 15> kServices{22,  25,  53,   80,   110,  123,  143, 389,
                                                    443, 445, 3306, 5060, 5432, 6443, 8080};
  switch (random() % 10) {
    case 0: return "0 : 65535";
    case 1: return "1024 : 65535";
    case 2: {
      const std::uint64_t low = 1024 + random() % 60'000;
      return fmt::format("{} : {}", low, low + random() % 1024);
    }
    case 3: {
      const std::uint64_t port = 1 + random() % 65'535;
      return fmt::format("{} : {}", port, port);
    }
    default: {
      const std::uint16_t port = kServices[random() % kServices.size()];
      return fmt::format("{} : {}", port, port);
    }
  }
}

std::string source_prefix(std::mt19937_64& random) {
  constexpr std::array<std::uint8_t, 6> kLengths{8, 16, 20, 24, 28, 32};
  if (random() % 3 == 0) return "0.0.0.0/0";
  const std::uint8_t length = kLengths[random() % kLengths.size()];
  const std::uint32_t bits = static_cast<std::uint32_t>((11 + random() % 180) << 24 | (random() & 0xff'ffff));
  return to_string(Ipv4Prefix{{bits & ipv4_mask(length)}, length});
}

std::string destination_prefix(std::mt19937_64& random) {
  constexpr std::uint32_t kSite = 0xc612'0000;  // 198.18.0.0/15
  const std::uint8_t length = random() % 10 < 7 ? 32 : static_cast<std::uint8_t>(24 + random() % 8);
  const std::uint32_t bits = kSite | static_cast<std::uint32_t>(random() & 0x1'ffff);
  return to_string(Ipv4Prefix{{bits & ipv4_mask(length)}, length});
}

}  // namespace

Workplace::Workplace() {
  std::string pattern = (std::filesystem::temp_directory_path() / "penstock_experiment_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "cannot create a temporary folder");
  }
  folder_ = pattern;
}

Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Workplace::put(const std::string& name, const std::string& text) const {
  const auto written = write_text_file(path(name), text);
  if (!written) throw std::runtime_error(to_string(written.error()));
  return path(name);
}

std::vector<Ipv4Prefix> route_prefixes(std::size_t count) {
  assert(count <= kMostRoutes);
  std::mt19937_64 random(2);
  std::vector<Ipv4Prefix> prefixes{Ipv4Prefix{}};
  prefixes.reserve(count);
  std::vector<Ipv4Prefix> blocks;
  std::unordered_set<std::uint64_t> seen;
  seen.reserve(count);
  while (prefixes.size() < count) {
    const std::uint8_t length = draw_length(random);
    auto bits = static_cast<std::uint32_t>(random());
    if (length > kLongestBlock && !blocks.empty()) {
      const Ipv4Prefix& block = blocks[random() % blocks.size()];
      bits = block.address.bits | (bits & ~ipv4_mask(block.length));
    }
    bits &= ipv4_mask(length);
    if (!is_public(bits) || !seen.insert(std::uint64_t{bits} << 8 | length).second) continue;
    prefixes.push_back({{bits}, length});
    if (length <= kLongestBlock) blocks.push_back(prefixes.back());
  }
  prefixes.resize(count);
  return prefixes;
}

std::string routes_text(std::size_t count, const std::string& device) {
  std::string text;
  text.reserve(count * 40);
  std::size_t hop = 0;
  for (const Ipv4Prefix& prefix : route_prefixes(count)) {
    const std::string destination = prefix.length == 0 ? "default" : to_string(prefix);
    fmt::format_to(std::back_inserter(text), "{} via 192.0.2.{} dev {}\n", destination, 1 + hop++ % 250, device);
  }
  return text;
}

namespace {

struct SyntheticRule {
  std::string source, destination, source_ports, ports;  // as in ClassBench
  std::uint8_t protocol;
};

/// All but the last one, which accepts everything.
std::vector<SyntheticRule> synthetic_rules(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<SyntheticRule> rules;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::uint64_t share = random() % 100;
    const std::uint8_t protocol = share < 75   ? ip_protocol::kTcp
                                  : share < 89 ? ip_protocol::kUdp
                                  : share < 93 ? ip_protocol::kIcmp
                                  : share < 99 ? ip_protocol::kEsp
                                               : ip_protocol::kSctp;
    const bool has_ports = begins_with_ports(protocol);
    const std::string source = source_prefix(random);
    const std::string destination = destination_prefix(random);
    const std::string source_ports = has_ports && random() % 4 == 0 ? "1024 : 65535" : "0 : 65535";
    const std::string ports = has_ports ? port_range(random) : "0 : 65535";
    rules.push_back({source, destination, source_ports, ports, protocol});
  }
  return rules;
}

}  // namespace

std::string rules_text(std::size_t count) {
  std::string text;
  for (const auto& [source, destination, source_ports, ports, protocol] : synthetic_rules(count)) {
    fmt::format_to(std::back_inserter(text), "@{} {} {} {} 0x{:02x}/0xFF 0x0000/0x0000\n", source, destination,
                   source_ports, ports, protocol);
  }
  if (count > 0) text += "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n";
  return text;
}

std::string stateful_rules_text(std::size_t count) {
  std::string text =
      "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate INVALID -j DROP\n"
      "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n";
  // "1024 : 65535" → "1024:65535"
  const auto range = [](std::string ports) {
    std::erase(ports, ' ');
    return ports;
  };
  for (const SyntheticRule& rule : synthetic_rules(count)) {
    fmt::format_to(std::back_inserter(text), "-A FORWARD -s {} -d {} -p {}", rule.source, rule.destination,
                   unsigned{rule.protocol});
    if (begins_with_ports(rule.protocol)) {
      const std::string_view name = rule.protocol == ip_protocol::kTcp   ? "tcp"
                                    : rule.protocol == ip_protocol::kUdp ? "udp"
                                                                         : "sctp";
      fmt::format_to(std::back_inserter(text), " -m {} --sport {} --dport {}", name, range(rule.source_ports),
                     range(rule.ports));
    }
    text += " -j ACCEPT\n";
  }
  if (count > 0) text += "-A FORWARD -j ACCEPT\n";
  return text + "COMMIT\n";
}

std::string translations_text() {
  return "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
         "-A POSTROUTING -s 10.0.0.0/8 -j NETMAP --to 100.0.0.0/8\nCOMMIT\n";
}

std::string detection_rules_text(std::size_t count, bool of_packets) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=&%";
  std::mt19937_64 random(4);
  const auto append_content = [&](std::string& to, std::size_t bytes) {
    const bool text = random() % 100 < 60;
    to += "content:\"";
    for (std::size_t i = 0; i < bytes; ++i) {
      if (text) {
        to += kLetters[random() % kLetters.size()];
      } else {
        fmt::format_to(std::back_inserter(to), "|{:02x}|", random() & 0xff);
      }
    }
    to += "\"; ";
    if (text && random() % 2 == 0) to += "nocase; ";
  };
  std::string rules;
  for (std::size_t i = 0; i < count; ++i) {
    const char* const protocol = random() % 4 == 0 ? "udp" : of_packets ? "tcp-pkt" : "tcp";
    fmt::format_to(std::back_inserter(rules), "alert {} any any -> any any (msg:\"rule {}\"; ", protocol, i + 1);
    append_content(rules, 4 + random() % 17);
    if (random() % 4 == 0) {
      append_content(rules, 2 + random() % 7);
      rules += "distance:0; ";
    }
    fmt::format_to(std::back_inserter(rules), "sid:{}; rev:1;)\n", i + 1);
  }
  return rules;
}

}  // namespace penstock::experiments
