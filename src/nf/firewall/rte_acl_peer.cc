// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/rte_acl_peer.h"

#include <rte_acl.h>
#include <rte_byteorder.h>

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace penstock::firewall {

namespace {

enum Field : unsigned { kProtocol, kSource, kDestination, kSourcePort, kDestinationPort, kFieldCount };

RTE_ACL_RULE_DEF(TupleRule, kFieldCount);

constexpr rte_acl_field_def definition(unsigned type, unsigned size, unsigned field, unsigned input,
                                       std::size_t offset) {
  return {static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(field),
          static_cast<std::uint8_t>(input), static_cast<std::uint32_t>(offset)};
}

rte_acl_config configuration() {
  using Tuple = RteAcl::Tuple;
  rte_acl_config config{};
  config.num_categories = 1;
  config.num_fields = kFieldCount;
  config.defs[0] = definition(RTE_ACL_FIELD_TYPE_BITMASK, 1, kProtocol, 0, offsetof(Tuple, protocol));
  config.defs[1] = definition(RTE_ACL_FIELD_TYPE_MASK, 4, kSource, 1, offsetof(Tuple, source));
  config.defs[2] = definition(RTE_ACL_FIELD_TYPE_MASK, 4, kDestination, 2, offsetof(Tuple, destination));
  config.defs[3] = definition(RTE_ACL_FIELD_TYPE_RANGE, 2, kSourcePort, 3, offsetof(Tuple, source_port));
  config.defs[4] = definition(RTE_ACL_FIELD_TYPE_RANGE, 2, kDestinationPort, 3, offsetof(Tuple, destination_port));
  return config;
}

void set_prefix(rte_acl_field& field, const classify::Condition& condition) {
  field.value.u32 = condition.low;
  field.mask_range.u32 = static_cast<std::uint32_t>(std::countl_zero(condition.low ^ condition.high));
}

TupleRule rule_of(const classify::Ruleset& rules, std::uint32_t index) {
  const classify::Entry& entry = rules.entries[index];
  TupleRule rule{};
  rule.data.category_mask = 1;
  rule.data.priority = static_cast<std::int32_t>(RTE_ACL_MAX_PRIORITY - index);  // the highest wins
  rule.data.userdata = index + 1;
  rule.field[kSourcePort].mask_range.u16 = rule.field[kDestinationPort].mask_range.u16 = 0xffff;
  for (std::uint32_t c = 0; c < entry.condition_count; ++c) {
    const classify::Condition& condition = rules.conditions[entry.first_condition + c];
    const auto set_ports = [&](rte_acl_field& field) {
      field.value.u16 = rules.port_ranges[condition.index].low;
      field.mask_range.u16 = rules.port_ranges[condition.index].high;
    };
    switch (condition.subject) {
      case classify::Subject::source4: set_prefix(rule.field[kSource], condition); break;
      case classify::Subject::destination4: set_prefix(rule.field[kDestination], condition); break;
      case classify::Subject::source_port: set_ports(rule.field[kSourcePort]); break;
      case classify::Subject::destination_port: set_ports(rule.field[kDestinationPort]); break;
      case classify::Subject::protocol:
        rule.field[kProtocol].value.u8 = static_cast<std::uint8_t>(condition.low);
        rule.field[kProtocol].mask_range.u8 = static_cast<std::uint8_t>(condition.high);
        break;
      default: break;  // flags
    }
  }
  return rule;
}

}  // namespace

void RteAclDelete::operator()(rte_acl_ctx* context) const noexcept { rte_acl_free(context); }

RteAcl::Tuple RteAcl::wire(const classify::Key& key) noexcept {
  return {static_cast<std::uint8_t>(key.protocol()),
          {},
          rte_cpu_to_be_32(static_cast<std::uint32_t>(key.source.low)),
          rte_cpu_to_be_32(static_cast<std::uint32_t>(key.destination.low)),
          rte_cpu_to_be_16(static_cast<std::uint16_t>(key.source_port)),
          rte_cpu_to_be_16(static_cast<std::uint16_t>(key.destination_port))};
}

RteAcl::RteAcl(const classify::Ruleset& rules) {
  static unsigned count = 0;  // DPDK identifies tables by name
  const std::string name = "peer" + std::to_string(count++);
  rte_acl_param parameters{};
  parameters.name = name.c_str();
  parameters.socket_id = -1;
  parameters.rule_size = RTE_ACL_RULE_SZ(kFieldCount);
  parameters.max_rule_num = static_cast<std::uint32_t>(rules.entries.size());
  context_.reset(rte_acl_create(&parameters));
  if (!context_) throw std::runtime_error("rte_acl_create failed");

  std::vector<TupleRule> converted;
  for (std::uint32_t i = 0; i < rules.entries.size(); ++i) converted.push_back(rule_of(rules, i));
  const auto* first = reinterpret_cast<const rte_acl_rule*>(converted.data());
  if (rte_acl_add_rules(context_.get(), first, parameters.max_rule_num) != 0) {
    throw std::runtime_error("rte_acl_add_rules failed");
  }
  const rte_acl_config config = configuration();
  if (rte_acl_build(context_.get(), &config) != 0) throw std::runtime_error("rte_acl_build failed");

  constexpr std::pair<enum rte_acl_classify_alg, const char*> kAlgorithms[] = {
      {RTE_ACL_CLASSIFY_AVX512X32, "avx512x32"},
      {RTE_ACL_CLASSIFY_AVX512X16, "avx512x16"},
      {RTE_ACL_CLASSIFY_AVX2, "avx2"},
      {RTE_ACL_CLASSIFY_SSE, "sse"},
      {RTE_ACL_CLASSIFY_SCALAR, "scalar"}};
  for (const auto& [algorithm, text] : kAlgorithms) {
    if (rte_acl_set_ctx_classify(context_.get(), algorithm) != 0) continue;
    algorithm_ = text;
    return;
  }
}

void RteAcl::classify(std::span<const std::uint8_t*> tuples, std::uint32_t* results) const noexcept {
  rte_acl_classify(context_.get(), tuples.data(), results, static_cast<std::uint32_t>(tuples.size()), 1);
}

}  // namespace penstock::firewall
