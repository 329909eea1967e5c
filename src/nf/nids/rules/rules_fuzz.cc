// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary text as a rule file, and text after a line "--thresholds", "--classes" or "--references" as the file
// of that kind. Every rule must be loaded or left out with a reason, and loaded rules must have the properties that
// rule.h promises.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "nf/nids/rules/load_table.h"
#include "nf/nids/rules/rule_reader.h"
#include "nf/nids/rules/side_files.h"

using namespace penstock;
using namespace penstock::nids;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Range>
void require_sorted(const std::vector<Range>& ranges) {
  require(!ranges.empty());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    require(ranges[i].first <= ranges[i].last);
    if (i > 0) require(ranges[i - 1].last < ranges[i].first);
  }
}

void require_number(const Number& number, const Rule& rule) {
  require(number.variable >= -1 && number.variable < static_cast<int>(rule.variables));
}

void check(const Content& content, const Rule& rule) {
  require(!content.bytes.empty());
  require(!((content.offset || content.depth) && (content.distance || content.within)));
  for (const auto* number : {&content.offset, &content.depth, &content.distance, &content.within}) {
    if (*number) require_number(**number, rule);
  }
  const std::size_t chop = std::size_t{content.chop_offset.value_or(0)} + content.chop_length.value_or(1);
  require(chop <= content.bytes.size() && content.chop_offset.has_value() == content.chop_length.has_value());
  if (content.depth && content.depth->variable < 0) {
    require(content.depth->value >= static_cast<std::int64_t>(content.bytes.size()));
  }
}
void check(const ByteTest& test, const Rule& rule) {
  for (const Number* number : {&test.bytes, &test.value, &test.offset}) require_number(*number, rule);
}
void check(const ByteJump& jump, const Rule& rule) {
  for (const Number* number : {&jump.bytes, &jump.offset, &jump.post_offset}) require_number(*number, rule);
}
void check(const ByteExtract& extract, const Rule& rule) {
  require(extract.variable >= 0 && extract.variable < static_cast<int>(rule.variables) && extract.bytes > 0);
}
void check(const ByteMath& math, const Rule& rule) {
  require(math.variable >= 0 && math.variable < static_cast<int>(rule.variables));
  for (const Number* number : {&math.bytes, &math.value, &math.offset}) require_number(*number, rule);
}
void check(const IsDataAt& at, const Rule& rule) { require_number(at.position, rule); }
void check(const Pcre&, const Rule&) {}
void check(const Base64Decode&, const Rule&) {}
void check(const Bsize&, const Rule&) {}

void check(const Rule& rule, const RuleSet& set) {
  require(rule.sid != 0 && rule.line != 0 && !rule.text.empty());
  require(!rule.source.v4.empty() || !rule.source.v6.empty());
  require(!rule.destination.v4.empty() || !rule.destination.v6.empty());
  if (!rule.source.v4.empty()) require_sorted(rule.source.v4);
  if (!rule.source.v6.empty()) require_sorted(rule.source.v6);
  require_sorted(rule.source_ports.ranges);
  require_sorted(rule.destination_ports.ranges);
  for (std::size_t i = 0; i < rule.buffers.size(); ++i) {
    require(!rule.buffers[i].matches.empty() && (i == 0 || rule.buffers[i].buffer != Buffer::payload));
    for (const BufferMatch& match : rule.buffers[i].matches) {
      std::visit([&](const auto& one) { check(one, rule); }, match);
    }
  }
  for (const StateMatch& match : rule.state_matches) {
    if (const auto* bits = std::get_if<FlowbitsMatch>(&match)) {
      require(!bits->bits.empty());
      for (const std::uint32_t bit : bits->bits) require(bit < set.flowbits.size());
    }
  }
  if (rule.threshold) require(rule.threshold->count > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kThresholds = "\n--thresholds\n", kClasses = "\n--classes\n",
                             kReferences = "\n--references\n";
  const auto beside = [&](std::string_view separator) -> std::string_view {
    const std::size_t at = text.find(separator);
    return at == text.npos ? std::string_view{} : text.substr(at + separator.size());
  };
  const Variables variables = default_variables();
  VariableResolver resolver(variables);
  if (const auto lines = read_thresholds(beside(kThresholds), "threshold.config", resolver)) {
    RuleSet none;
    apply_thresholds(*lines, none);
  } else {
    require(!lines.error().empty());
  }
  if (const auto classes = read_classification(beside(kClasses), "classification.config"); !classes) {
    require(!to_string(classes.error()).empty());
  }
  if (const auto references = read_references(beside(kReferences), "reference.config"); !references) {
    require(!to_string(references.error()).empty());
  }

  const auto set = read_rules_text(text);
  require(set.has_value());
  for (const Rule& rule : set->rules) check(rule, *set);
  for (const RuleSet::Left& left : set->left_out) {
    require(!left.reason.empty() && !left.why.message.empty() && left.why.place.line != 0);
  }
  std::size_t counted = 0;
  const LoadTable table = load_table(*set);
  for (const LoadTable::Row& row : table.left_out) counted += row.rules;
  require(counted == set->left_out.size());
  static_cast<void>(to_string(table));
  return 0;
}
