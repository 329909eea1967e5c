// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/firewall.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "gpu/devices.h"
#include "nf/firewall/firewall_stage.h"

namespace penstock::firewall {

namespace {

FieldSet fields_of(const classify::Condition& condition) {
  switch (condition.subject) {
    case classify::Subject::source4: return {Field::ipv4_src};
    case classify::Subject::destination4: return {Field::ipv4_dst};
    case classify::Subject::source6: return {Field::ipv6_src};
    case classify::Subject::destination6: return {Field::ipv6_dst};
    case classify::Subject::source_port: return {Field::l4_src_port};
    case classify::Subject::destination_port: return {Field::l4_dst_port};
    case classify::Subject::detail:
      return condition.index == ip_protocol::kTcp ? FieldSet{Field::tcp_flags} : FieldSet{Field::icmp_type_code};
    case classify::Subject::in_port: return {Field::in_port};
    case classify::Subject::protocol:
    case classify::Subject::transport:
    case classify::Subject::later_fragment:
    case classify::Subject::out_port: break;  // parsed fields, or part of the verdict
  }
  return {};
}

}  // namespace

Access access_of(const classify::Ruleset& rules) {
  // Packets that pass keep their verdict, so the verdict is also read.
  Access access{kParsedFields | FieldSet{Field::verdict}, {Field::verdict}};
  for (const classify::Condition& condition : rules.conditions) access.reads |= fields_of(condition);
  return access;
}

Firewall::Firewall(classify::Ruleset rules) : rules_(std::move(rules)) {
  const Access access = access_of(rules_);
  traits_.name = firewall_kind().name;
  traits_.summary = firewall_kind().summary;
  traits_.cpu = access;
  traits_.gpu = access;
  traits_.finish = Access{{Field::frame_shape}, {}};  // for counting bytes
  traits_.findings_bytes = sizeof(JudgeCore<classify::LinearView>::Finding);
  traits_.drop_reasons = kDropReasons;
}

Result<std::unique_ptr<Firewall>> Firewall::build(classify::Ruleset rules, classify::Engine engine) {
  std::unique_ptr<Firewall> firewall(new Firewall(std::move(rules)));
  Result<std::unique_ptr<classify::Classifier>> classifier = classify::make_classifier(engine, firewall->rules_);
  if (!classifier) return tl::unexpected(std::move(classifier.error()));
  firewall->classifier_ = std::move(*classifier);
  return firewall;
}

RuleCounters& Firewall::add_counters() {
  const std::lock_guard lock(mutex_);
  counters_.push_back(std::make_unique<RuleCounters>(rules_.rules.size()));
  return *counters_.back();
}

std::unique_ptr<function::CpuStage> Firewall::make_cpu_stage() {
  return std::make_unique<FirewallStage>(rules_, *classifier_, add_counters());
}

std::unique_ptr<gpu::GpuStage> Firewall::make_gpu_stage(const gpu::StageUse&) {
  return make_firewall_gpu_stage(
      on_devices_.of_current([&] { return std::make_unique<const classify::DeviceTables>(rules_, *classifier_); }));
}

std::unique_ptr<function::FinishStage> Firewall::make_finish_stage(function::CpuStage& /*twin*/) {
  return std::make_unique<FirewallFinishStage>(add_counters());
}

std::string Firewall::description() const {
  const auto left_out =
      std::count_if(rules_.rules.begin(), rules_.rules.end(), [](const classify::Rule& r) { return r.left_out; });
  std::string text = format_count(rules_.rules.size(), "rule");
  if (left_out > 0) text += fmt::format(" ({} left out)", format_count(static_cast<std::uint64_t>(left_out)));
  text += fmt::format(", {}, {}; policy {}", classifier_->name(), format_size(classifier_->memory_bytes()),
                      name(rules_.ipv4_policy));
  if (rules_.ipv6_policy != rules_.ipv4_policy) text += fmt::format(", for IPv6 {}", name(rules_.ipv6_policy));
  return text;
}

std::vector<RuleCounters::Count> Firewall::counts() const {
  std::vector<RuleCounters::Count> sums(RuleCounters::cells_for(rules_.rules.size()));
  const std::lock_guard lock(mutex_);
  for (const auto& counters : counters_) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const RuleCounters::Count count = (*counters)[i];
      sums[i].packets += count.packets;
      sums[i].bytes += count.bytes;
    }
  }
  return sums;
}

void Firewall::report(nlohmann::json& into) const {
  nlohmann::json& matched = into["rules"] = nlohmann::json::array();
  const std::vector<RuleCounters::Count> sums = counts();
  for (std::size_t i = 0; i < rules_.rules.size(); ++i) {
    if (sums[i].packets == 0) continue;
    const classify::Rule& rule = rules_.rules[i];
    matched.push_back({{"index", i},
                       {"line", rule.line},
                       {"target", name(rule.target)},
                       {"packets", sums[i].packets},
                       {"bytes", sums[i].bytes},
                       {"text", rule.text}});
  }
  for (const NetworkLayer family : {NetworkLayer::ipv4, NetworkLayer::ipv6}) {
    const RuleCounters::Count& rest = sums[RuleCounters::of_policy(rules_.rules.size(), family)];
    into["policy"][family == NetworkLayer::ipv4 ? "ipv4" : "ipv6"] = {
        {"target", name(rules_.policy(family))}, {"packets", rest.packets}, {"bytes", rest.bytes}};
  }
}

}  // namespace penstock::firewall
