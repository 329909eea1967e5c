// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/fork_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/parameter.h"
#include "base/units.h"
#include "plan/fork.h"

namespace penstock::config {

namespace {

/// Continues after mistakes, to report all of them.
class ForkReader {
 public:
  ForkReader(const YamlFile& file, ChainDescription& chain, const std::function<void(const YAML::Node&)>& read_function)
      : file_(file), chain_(chain), read_function_(read_function) {}

  void read(const YAML::Node& key, const YAML::Node& node) {
    ForkDescription fork;
    fork.place = file_.place(key);
    fork.first = chain_.functions.size();
    const std::size_t mistakes = chain_.errors.size();
    if (!node.IsSequence() || node.size() == 0) {
      mistake(node.IsNull() ? key : node, "fork: wrong value", node.IsSequence() ? "an empty list" : shape_of(node),
              "a list of arms, such as [{when: {in_port: lan}, chain: [nids: {rules: [a.rules]}]}, {chain: []}]");
    } else if (node.size() > plan::Fork::kMostArms) {
      mistake(node, "fork: too many arms", format_count(node.size()),
              fmt::format("{} or fewer", plan::Fork::kMostArms));
    } else {
      for (const auto& item : node) fork.arms.push_back(read_arm(item));
      if (chain_.functions.size() == fork.first && chain_.errors.size() == mistakes)
        mistake(key, "fork: no arm has a function", "", "functions in at least one arm");
    }
    fork.last = chain_.functions.size();
    fork.complete = chain_.errors.size() == mistakes;
    chain_.forks.push_back(std::move(fork));
  }

 private:
  void mistake(const YAML::Node& node, std::string message, std::string found = "", std::string expected = "") {
    chain_.errors.push_back({file_.place(node), std::move(message), std::move(found), std::move(expected)});
  }

  ArmDescription read_arm(const YAML::Node& item) {
    static constexpr std::array<std::string_view, 2> kKeys{"when", "chain"};
    ArmDescription arm;
    arm.place = file_.place(item);
    arm.first = arm.last = chain_.functions.size();
    if (!item.IsMap()) {
      mistake(item, "fork: wrong arm", shape_of(item),
              "a mapping with `chain`, and `when` unless it takes all packets");
      return arm;
    }
    const std::size_t mistakes = chain_.errors.size();
    std::set<std::string> seen;
    for (const auto& member : item) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::ranges::find(kKeys, key) == kKeys.end()) {
        mistake(member.first, "fork: unknown key in an arm", shape_of(member.first), expected_name(key, kKeys));
      } else if (!seen.insert(key).second) {
        mistake(member.first, key + ": given twice");
      }
    }
    if (const YAML::Node when = item["when"]; when.IsDefined()) read_when(when, arm.when);
    arm.complete = chain_.errors.size() == mistakes;
    const YAML::Node functions = item["chain"];
    if (!functions.IsDefined() || !functions.IsSequence()) {
      const bool given = functions.IsDefined();
      mistake(given ? functions : item, "fork: an arm without a list of functions",
              given ? shape_of(functions) : "no `chain`", "a list; with `chain: []`, packets skip the fork");
      arm.complete = false;
      return arm;
    }
    for (const auto& function : functions) {
      if (is_fork(function)) {
        mistake(function.begin()->first, "fork: forks cannot be nested", "a fork in an arm", "network functions");
      } else {
        read_function_(function);
      }
    }
    arm.last = chain_.functions.size();
    return arm;
  }

  /// A condition, or a list of conditions of which one must hold.
  void read_when(const YAML::Node& when, std::vector<ConditionDescription>& conditions) {
    if (!when.IsSequence()) return conditions.push_back(read_condition(when));
    if (when.size() == 0) mistake(when, "when: wrong value", "an empty list", "conditions, of which one must hold");
    for (const auto& item : when) conditions.push_back(read_condition(item));
  }

  ConditionDescription read_condition(const YAML::Node& node) {
    static constexpr std::array<std::string_view, 2> kParts{"in_port", "out_port"};
    ConditionDescription condition;
    if (!node.IsMap() || node.size() == 0) {
      mistake(node, "when: wrong value", node.IsMap() ? "an empty mapping" : shape_of(node),
              "a condition such as {in_port: lan}; an arm without `when` takes all packets that are left");
      return condition;
    }
    for (const auto& member : node) {
      const std::string part = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::ranges::find(kParts, part) == kParts.end()) {
        mistake(member.first, "when: unknown condition", shape_of(member.first), expected_name(part, kParts));
        continue;
      }
      std::optional<ConditionDescription::Ports>& ports = part == "in_port" ? condition.in_port : condition.out_port;
      if (ports) mistake(member.first, part + ": given twice");
      ports = read_ports(part, member.first, member.second);
    }
    return condition;
  }

  /// A port, or a list of ports.
  ConditionDescription::Ports read_ports(const std::string& part, const YAML::Node& key, const YAML::Node& node) {
    ConditionDescription::Ports ports{file_.place(key), {}};
    if (!node.IsSequence()) {
      ports.names.push_back(read_port_name(file_, node));
      return ports;
    }
    if (node.size() == 0) mistake(node, part + ": wrong value", "an empty list", "a port");
    for (const auto& item : node) ports.names.push_back(read_port_name(file_, item));
    return ports;
  }

  const YamlFile& file_;
  ChainDescription& chain_;
  const std::function<void(const YAML::Node&)>& read_function_;
};

std::size_t functions_of_arms(const YAML::Node& arms) {
  std::size_t count = 0;
  if (!arms.IsSequence()) return count;
  for (const auto& arm : arms) {
    const YAML::Node functions = arm.IsMap() ? arm["chain"] : YAML::Node();
    if (functions.IsDefined() && functions.IsSequence()) count += functions.size();
  }
  return count;
}

}  // namespace

bool is_fork(const YAML::Node& item) {
  return item.IsMap() && item.size() == 1 && item.begin()->first.IsScalar() && item.begin()->first.Scalar() == "fork";
}

std::size_t count_functions(const YAML::Node& chain) {
  std::size_t count = 0;
  for (const auto& item : chain) {
    count += is_fork(item) ? std::max<std::size_t>(1, functions_of_arms(item.begin()->second)) : 1;
  }
  return count;
}

void read_fork(const YamlFile& file, const YAML::Node& item, ChainDescription& chain,
               const std::function<void(const YAML::Node&)>& read_function) {
  ForkReader(file, chain, read_function).read(item.begin()->first, item.begin()->second);
}

}  // namespace penstock::config
