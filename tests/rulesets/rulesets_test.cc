// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the rule sets of this folder at every hook. What a set has that is not supported is listed, with counts, in a
// file NAME.refused beside it, so that a construct that is supported from now on, or no longer, changes that file. With
// PENSTOCK_WRITE_REFUSED=1 in the environment, the test writes these files.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAtLeast = 22;  // rule sets in this folder

std::string content_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> rule_sets() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(PENSTOCK_SOURCE_DIR "/tests/rulesets")) {
    const std::string extension = entry.path().extension();
    if (extension == ".iptables" || extension == ".ip6tables" || extension == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// The sets of ipset that belong to the rules, if there are any.
std::shared_ptr<const Ipsets> sets_of(const fs::path& file) {
  const fs::path path = fs::path(file).replace_extension(".ipset");
  if (!fs::exists(path)) return nullptr;
  auto sets = read_ipsets(content_of(path), path, 100'000);
  EXPECT_TRUE(sets) << to_string(sets.error());
  return sets ? std::make_shared<const Ipsets>(std::move(*sets)) : nullptr;
}

/// What is wrong, without where it is, and without what follows for packets, which depends on the rule's verdict.
std::string construct(const Error& error) {
  std::string text = error.message;
  if (text.starts_with("nftables[")) {
    const auto where = text.find("): ");
    text.erase(0, where == std::string::npos ? 0 : where + 3);
  }
  text.erase(std::min(text.find(": without this rule"), text.size()));
  if (!error.found.empty()) text += ": found " + error.found;
  return text;
}

/// A place of the chain, and what a firewall there reads.
struct Part {
  Hook hook;
  bool translates;
};
constexpr Part kParts[]{{Hook::prerouting, false},  {Hook::prerouting, true},  {Hook::forward, false},
                        {Hook::postrouting, false}, {Hook::postrouting, true}, {Hook::input, false},
                        {Hook::input, true},        {Hook::output, false},     {Hook::output, true}};

/// One line for each construct that is not supported and each mistake, or "accepted".
std::string refused(const fs::path& file) {
  std::string lines;
  for (const auto& [hook, translates] : kParts) {
    ReadOptions options;
    options.interfaces.ports = {"lan", "wan", "dmz"};
    options.interfaces.aliases = {{"br-lan", "lan"}, {"br-guest", "dmz"}, {"docker0", "lan"}, {"shop0", "dmz"},
                                  {"apart0", "dmz"}, {"db0", "dmz"},      {"podman1", "dmz"}};
    options.interfaces.unknown_is_none = true;
    options.interfaces.out_known = hook != Hook::prerouting && hook != Hook::output;
    options.host_has_port = is_of_host(hook);
    function::PortAddresses wan;
    wan.ipv4 = Ipv4Address{0xcb007105};  // 203.0.113.5
    wan.ipv4_bits = std::uint8_t{24};
    options.host = make_host_addresses({wan});
    options.logs = true;
    options.ipsets = sets_of(file);
    options.hook = hook;
    options.translates = translates;
    const std::string place = fmt::format("{}{}", name_of(hook), translates ? " NAT" : "");
    const auto read = read_rules(content_of(file), file, options);
    std::map<std::string, std::size_t> constructs;
    for (const Error& error : read ? read->unsupported : read.error()) {
      constructs[(read ? "" : "ERROR: ") + construct(error)] += error.count;
    }
    if (constructs.empty()) lines += place + ": accepted\n";
    for (const auto& [what, count] : constructs) lines += fmt::format("{}: {} x {}\n", place, count, what);
  }
  return lines;
}

TEST(RuleSets, RefuseWhatTheirListsName) {
  const bool writes = std::getenv("PENSTOCK_WRITE_REFUSED") != nullptr;
  const auto files = rule_sets();
  EXPECT_GE(files.size(), kAtLeast) << "rule sets are missing";
  for (const fs::path& file : files) {
    const fs::path list = file.string() + ".refused";
    const std::string now = refused(file);
    if (writes) std::ofstream(list) << now;
    EXPECT_EQ(content_of(list), now) << list << " differs; PENSTOCK_WRITE_REFUSED=1 writes it again";
  }
}

}  // namespace
}  // namespace penstock::firewall
