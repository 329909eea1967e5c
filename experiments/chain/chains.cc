// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/ip_address.h"
#include "base/text_file.h"
#include "experiments/conversations.h"
#include "nf/nids/rules/rule_reader.h"

namespace penstock::experiments {
namespace {

constexpr std::string_view kByPackets = "packets";    // each packet on its own
constexpr std::string_view kWithState = "automaton";  // streams, with state that crosses to the GPU

/// The entry of a list with this name.
template <typename List>
const auto& named(const List& list, std::string_view name) {
  const auto there = std::ranges::find_if(list, [&](const auto& item) { return item.name == name; });
  assert(there != std::end(list));
  return *there;
}

/// All packets with data have this frame size, which includes the FCS.
ConversationPlan connections_of(const std::string& size) {
  constexpr std::size_t kFrameCheckBytes = 4;
  return {.responses = 16, .frame_bytes = std::stoul(size) - kFrameCheckBytes};
}

/// The path of a file that the user names. Standard input is saved to a file, because it is needed several times.
Result<std::string> path_of(const std::string& given, const Workplace& workplace, const char* name) {
  if (given != "-") return std::filesystem::absolute(given).string();
  const auto text = read_stdin();
  if (!text) return tl::unexpected(text.error());
  return workplace.put(name, *text);
}

/// Whether they are Suricata or Snort rules. If the file cannot be read, the firewall's reader reports that.
bool are_for_detection(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return false;
  const auto read = nids::read_rules_text(*text, path);
  return read && !read->rules.empty();
}

}  // namespace

XfrmTexts tunnels_text(std::size_t count) {
  assert(count > 0 && count <= 0x1'0000);
  constexpr std::uint32_t kSources = 0x0a00'0000;  // 10.0.0.0/8
  const auto more_bits = static_cast<unsigned>(std::bit_width(count - 1));
  XfrmTexts texts;
  for (std::size_t i = 0; i < count; ++i) {
    fmt::format_to(
        std::back_inserter(texts.state),
        "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi 0x{:08x} reqid {} mode tunnel\n\treplay-window 32 \n"
        "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f{:08x} 96\n"
        "\tenc rfc3686(ctr(aes)) 0x202122232425262728292a2b{:08x}{:08x}\n",
        0x100 + i, i + 1, 0x1011'1213 + i, 0x2c2d'2e2f + i, 0x3031'3233 + i);
    const bool last = i + 1 == count;
    const Ipv4Prefix sources = last ? Ipv4Prefix{}
                                    : Ipv4Prefix{{kSources | static_cast<std::uint32_t>(i) << (24 - more_bits)},
                                                 static_cast<std::uint8_t>(8 + more_bits)};
    fmt::format_to(std::back_inserter(texts.policy),
                   "src {} dst 0.0.0.0/0 \n\tdir out priority {} ptype main \n"
                   "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid {} mode tunnel\n",
                   to_string(sources), i + 1, i + 1);
  }
  return texts;
}

Result<void> Chains::take(const Setting& setting) {
  if (!setting.rules.empty()) {
    auto path = path_of(setting.rules, workplace_, "stdin-rules.txt");
    if (!path) return tl::unexpected(std::move(path.error()));
    (are_for_detection(*path) ? own_detection_rules_ : own_firewall_rules_) = std::move(*path);
  }
  if (!setting.routes.empty()) {
    auto path = path_of(setting.routes, workplace_, "stdin-routes.txt");
    if (!path) return tl::unexpected(std::move(path.error()));
    own_routes_ = std::move(*path);
  }
  return {};
}

MeasuredChain Chains::chain(std::string_view name, std::string_view tables) {
  const std::string_view letters = named(kChains, name).functions;
  const TableSizes& sizes = named(kTables, tables);
  MeasuredChain chain;
  chain.functions = functions_text(letters, sizes, kByPackets);
  chain.to_dmz = letters.find('B') != std::string_view::npos;
  chain.destinations = chain.to_dmz ? routes_to_both(sizes) : routes(sizes);
  if (tables.empty()) return chain;
  chain.tcp = true;
  chain.payloads = file("pages.pcap", [] { return conversations_capture({.connections = 500, .responses = 16}); });
  undo_encryption(chain, letters, sizes, kByPackets);
  return chain;
}

MeasuredChain Chains::with_connections(std::string_view name, std::string_view tables, std::string_view tracking,
                                       const std::string& size, std::size_t count) {
  constexpr std::size_t kChecked = 640;  // some 20,000 packets
  const std::string_view letters = named(kChains, name).functions;
  const TableSizes& sizes = named(kTables, tables);
  MeasuredChain chain;
  chain.functions = functions_text(letters, sizes, tracking);
  chain.capture = connections(sizes, size, count);
  chain.checked_capture = connections(sizes, size, std::min(count, kChecked));
  chain.size = size;
  undo_encryption(chain, letters, sizes, tracking);
  return chain;
}

double Chains::stream_bytes_per_packet(const std::string& size) {
  return experiments::stream_bytes_per_packet(connections_of(size));
}

/// The servers' addresses are in the routes' prefixes, and their packets match the last firewall rule.
const std::string& Chains::connections(const TableSizes& sizes, const std::string& size, std::size_t count) {
  return file(fmt::format("connections{}-{}.pcap", count, size), [&] {
    constexpr std::size_t kServers = 4096;
    constexpr Ipv4Prefix kOfRules{{0xc612'0000}, 15};
    ConversationPlan plan = connections_of(size);
    plan.connections = count;
    // Connections still open when a run ends have not been seen completely, so they must be few.
    plan.at_once = std::max<std::size_t>(1, count / 8);
    for (const Ipv4Prefix& prefix : route_prefixes(std::min(sizes.routes, 2 * kServers))) {
      const std::uint32_t host = prefix.address.bits | 1;
      const bool is_of_rules = (host & ipv4_mask(kOfRules.length)) == kOfRules.address.bits;
      if (prefix.length > 0 && !is_of_rules && plan.servers.size() < kServers) plan.servers.push_back(host);
    }
    return conversations_capture(plan);
  });
}

/// Outputs of two runs differ, because the IVs do.
void Chains::undo_encryption(MeasuredChain& chain, std::string_view letters, const TableSizes& sizes,
                             std::string_view tracking) {
  if (!letters.ends_with('I')) return;
  const std::string& state = file(fmt::format("state{}.txt", sizes.sas), [&] { return tunnels_text(sizes.sas).state; });
  chain.undone_by = fmt::format("[ipsec: {{state: {}, direction: in, state_dir: none}}]", yaml_text(state));
  chain.undone = functions_text(letters.substr(0, letters.size() - 1), sizes, tracking);
}

std::string Chains::functions_text(std::string_view letters, const TableSizes& sizes, std::string_view tracking) {
  std::string text;
  while (!letters.empty()) {
    if (!text.empty()) text += ", ";
    if (letters.front() != '(') {
      text += function_text(letters.front(), sizes, tracking);
      letters.remove_prefix(1);
      continue;
    }
    const std::size_t middle = letters.find('|');
    const std::size_t end = letters.find(')');
    assert(middle < end && end != std::string_view::npos);
    text += fmt::format("fork: [{{when: {{out_port: dmz}}, chain: {}}}, {{chain: {}}}]",
                        functions_text(letters.substr(1, middle - 1), sizes, tracking),
                        functions_text(letters.substr(middle + 1, end - middle - 1), sizes, tracking));
    letters.remove_prefix(end + 1);
  }
  return '[' + text + ']';
}

std::string Chains::function_text(char letter, const TableSizes& sizes, std::string_view tracking) {
  switch (letter) {
    case 'F': {
      const std::string& rules = own_firewall_rules_.empty() ? file(fmt::format("rules{}.txt", sizes.firewall_rules),
                                                                    [&] { return rules_text(sizes.firewall_rules); })
                                                             : own_firewall_rules_;
      return fmt::format("firewall: {{rules: {}}}", yaml_text(rules));
    }
    case 'S':
    case 's': {
      const std::string& rules = file(fmt::format("stateful{}.txt", sizes.firewall_rules),
                                      [&] { return stateful_rules_text(sizes.firewall_rules); });
      return fmt::format("firewall: {{rules: {}, checksum: {}}}", yaml_text(rules), letter == 'S');
    }
    case 'P':
    case 'p':
    case 'O':
    case 'o': {
      const std::string& rules = file("translations.txt", translations_text);
      const bool before_router = letter == 'P' || letter == 'p';
      return fmt::format("firewall: {{rules: {}, hook: {}, checksum: {}}}", yaml_text(rules),
                         before_router ? "prerouting" : "postrouting", letter == 'P' || letter == 'O');
    }
    case 'N': {
      const bool own = sizes.name == "heavy" && !own_detection_rules_.empty();
      const std::string& rules =
          own ? own_detection_rules_ : file(fmt::format("nids{}-{}.rules", sizes.detection_rules, tracking), [&] {
            return detection_rules_text(sizes.detection_rules, tracking == kByPackets);
          });
      return fmt::format("nids: {{rules: [{}], tracking: {}}}", yaml_text(rules),
                         tracking == kWithState ? "streams, flow_state: automaton" : tracking);
    }
    case 'R': return fmt::format("router: {{routes: {}}}", yaml_text(routes(sizes)));
    case 'B': return fmt::format("router: {{routes: {}}}", yaml_text(routes_to_both(sizes)));
    case 'I': {
      const std::string& state =
          file(fmt::format("state{}.txt", sizes.sas), [&] { return tunnels_text(sizes.sas).state; });
      const std::string& policy =
          file(fmt::format("policy{}.txt", sizes.sas), [&] { return tunnels_text(sizes.sas).policy; });
      return fmt::format("ipsec: {{state: {}, policy: {}, state_dir: none}}", yaml_text(state), yaml_text(policy));
    }
    default: break;
  }
  assert(false);
  return {};
}

const std::string& Chains::routes(const TableSizes& sizes) {
  if (!own_routes_.empty()) return own_routes_;
  return file(fmt::format("routes{}.txt", sizes.routes), [&] { return routes_text(sizes.routes); });
}

/// Synthetic ones.
const std::string& Chains::routes_to_both(const TableSizes& sizes) {
  return file(fmt::format("routes{}-both.txt", sizes.routes), [&] {
    constexpr std::string_view kWan = "dev wan";
    std::string text = routes_text(sizes.routes);
    bool is_second = false;
    for (std::size_t at = 0; (at = text.find(kWan, at)) != std::string::npos; at += kWan.size()) {
      if (std::exchange(is_second, !is_second)) text.replace(at, kWan.size(), "dev dmz");
    }
    return text;
  });
}

template <typename Make>
const std::string& Chains::file(const std::string& name, Make make) {
  std::string& path = files_[name];
  if (path.empty()) path = workplace_.put(name, make());
  return path;
}

}  // namespace penstock::experiments
