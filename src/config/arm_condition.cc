// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/arm_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parameter.h"
#include "base/units.h"

namespace penstock::config {

namespace {

constexpr std::array<std::string_view, 3> kParts{"in_port", "out_port", "mark"};

/// Reads the parts of one condition; goes on after mistakes.
class ConditionReader {
 public:
  ConditionReader(const YamlFile& file, const ForkContext& context, Errors& errors)
      : file_(file), context_(context), errors_(errors) {}

  plan::ArmCondition read(const YAML::Node& when) {
    if (!when.IsMap() || when.size() == 0) {
      mistake(when, "when: wrong value", when.IsMap() ? "an empty mapping" : shape_of(when),
              "a condition such as {in_port: lan}; an arm without `when` takes all other packets");
      return {};
    }
    std::vector<std::string> seen;
    for (const auto& member : when) {
      const std::string part = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::ranges::find(seen, part) != seen.end()) {
        mistake(member.first, part + ": given twice");
        continue;
      }
      seen.push_back(part);
      if (part == "in_port") {
        read_ports(part, member.second, condition_.in_ports, context_.ports_read, "this port does not read");
      } else if (part == "out_port") {
        if (!context_.out_port_known)
          mistake(member.first, "out_port: not every packet has such a port here", "",
                  "a function before the fork that chooses it, such as a router");
        read_ports(part, member.second, condition_.out_ports, context_.ports_write, "this port does not write");
      } else if (part == "mark") {
        read_mark(member.first, member.second);
      } else {
        mistake(member.first, "when: unknown condition", shape_of(member.first), expected_name(part, kParts));
      }
    }
    return std::move(condition_);
  }

 private:
  void mistake(const YAML::Node& node, std::string message, std::string found = "", std::string expected = "") {
    errors_.push_back({file_.place(node), std::move(message), std::move(found), std::move(expected)});
  }

  /// A port, or a list of them.
  void read_ports(const std::string& part, const YAML::Node& node, std::vector<PortIndex>& ports,
                  const std::vector<bool>& will_do, const char* why_not) {
    if (node.IsSequence() && node.size() == 0) mistake(node, part + ": wrong value", "an empty list", "a port");
    if (!node.IsSequence()) return read_port(part, node, ports, will_do, why_not);
    for (const auto& item : node) read_port(part, item, ports, will_do, why_not);
  }

  void read_port(const std::string& part, const YAML::Node& node, std::vector<PortIndex>& ports,
                 const std::vector<bool>& will_do, const char* why_not) {
    const std::string name = node.IsScalar() ? node.Scalar() : "";
    const auto found = std::ranges::find(context_.ports, name);
    if (found == context_.ports.end()) {
      const std::vector<std::string_view> known(context_.ports.begin(), context_.ports.end());
      return mistake(node, part + ": no such port", shape_of(node), expected_name(name, known));
    }
    const auto port = static_cast<std::size_t>(found - context_.ports.begin());
    if (!will_do[port]) mistake(node, fmt::format("{}: {}", part, why_not), in_quotes(name));
    ports.push_back(static_cast<PortIndex>(port));
  }

  /// VALUE or VALUE/MASK.
  void read_mark(const YAML::Node& key, const YAML::Node& node) {
    constexpr const char* kExpected = "a number up to 0xffffffff, or VALUE/MASK";
    const std::string text = node.IsScalar() ? node.Scalar() : "";
    const std::size_t slash = text.find('/');
    const auto number = [](const std::string& digits) -> std::optional<std::uint32_t> {
      const auto value = parse_integer(digits);
      if (!value || *value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
      return static_cast<std::uint32_t>(*value);
    };
    const auto value = number(text.substr(0, slash));
    const auto mask = slash == std::string::npos ? 0xffffffff : number(text.substr(slash + 1));
    if (!value || !mask || *mask == 0) return mistake(node, "mark: wrong value", shape_of(node), kExpected);
    if ((*value & ~*mask) != 0)
      return mistake(node, "mark: no packet has this mark", in_quotes(text), "a value inside its mask");
    if (!context_.marks_set)
      mistake(key, "mark: no function before the fork sets marks", "", "a function that does, or another condition");
    condition_.mark = {*value, *mask};
  }

  const YamlFile& file_;
  const ForkContext& context_;
  Errors& errors_;
  plan::ArmCondition condition_;
};

}  // namespace

std::vector<plan::ArmCondition> read_arm_conditions(const YamlFile& file, const YAML::Node& when,
                                                    const ForkContext& context, Errors& errors) {
  std::vector<plan::ArmCondition> conditions;
  const std::size_t mistakes = errors.size();
  if (when.IsSequence() && when.size() == 0)
    errors.push_back({file.place(when), "when: wrong value", "an empty list", "conditions, of which one must hold"});
  if (!when.IsSequence()) conditions.push_back(ConditionReader(file, context, errors).read(when));
  if (when.IsSequence()) {
    for (const auto& item : when) conditions.push_back(ConditionReader(file, context, errors).read(item));
  }
  if (errors.size() > mistakes) conditions.clear();
  return conditions;
}

std::string describe(std::span<const plan::ArmCondition> conditions, std::span<const std::string> ports) {
  if (conditions.empty()) return "otherwise";
  const auto names = [&](const std::vector<PortIndex>& indices) {
    std::string all;
    for (const PortIndex port : indices) all += (all.empty() ? "" : "|") + ports[port];
    return all;
  };
  std::string text;
  for (const plan::ArmCondition& condition : conditions) {
    std::vector<std::string> parts;
    if (!condition.in_ports.empty()) parts.push_back("in_port " + names(condition.in_ports));
    if (!condition.out_ports.empty()) parts.push_back("out_port " + names(condition.out_ports));
    if (condition.mark && condition.mark->mask == 0xffffffff) {
      parts.push_back(fmt::format("mark {:#x}", condition.mark->value));
    } else if (condition.mark) {
      parts.push_back(fmt::format("mark {:#x}/{:#x}", condition.mark->value, condition.mark->mask));
    }
    text += fmt::format("{}{}", text.empty() ? "" : " or ", fmt::join(parts, " and "));
  }
  return text;
}

}  // namespace penstock::config
