// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options that describe a rule.

#include <algorithm>
#include <array>

#include "nf/nids/rules/options.h"

namespace penstock::nids {

namespace {

bool read_once(RuleDraft& draft, const OptionValue& value, std::uint64_t least, bool& has, std::uint32_t& out) {
  if (has) return draft.fail_combination(value.name, "given twice in a rule");
  has = true;
  std::uint64_t number = 0;
  if (!read_unsigned(draft, value.text, least, 0xffffffff, "number", number)) return false;
  out = static_cast<std::uint32_t>(number);
  return true;
}

}  // namespace

/// A backslash makes the next character literal.
bool read_msg(RuleDraft& draft, const OptionValue& value) {
  if (!draft.rule.message.empty()) return draft.fail_combination(value.name, "second msg");
  std::string& message = draft.rule.message;
  message.reserve(value.text.size());
  for (std::size_t i = 0; i < value.text.size(); ++i) {
    if (value.text[i] == '\\' && i + 1 < value.text.size()) ++i;
    message += value.text[i];
  }
  return true;
}

bool read_sid(RuleDraft& draft, const OptionValue& value) {
  return read_once(draft, value, 1, draft.has_sid, draft.rule.sid);
}
bool read_gid(RuleDraft& draft, const OptionValue& value) {
  return read_once(draft, value, 0, draft.has_gid, draft.rule.gid);
}
bool read_rev(RuleDraft& draft, const OptionValue& value) {
  return read_once(draft, value, 0, draft.has_rev, draft.rule.rev);
}

bool read_priority(RuleDraft& draft, const OptionValue& value) {
  std::uint64_t priority = 0;
  if (!read_unsigned(draft, value.text, 0, 255, "priority", priority)) return false;
  draft.has_priority = true;
  draft.rule.priority = static_cast<std::uint8_t>(priority);
  return true;
}

/// As in Suricata, a class that classification.config does not define is a warning; the rule gets the default priority.
bool read_classtype(RuleDraft& draft, const OptionValue& value) {
  Rule& rule = draft.rule;
  RuleClass found;
  if (const auto known = draft.names.classes->find(lower_case(value.text)); known != draft.names.classes->end()) {
    found = known->second;
  } else if (draft.unknown_class.empty()) {
    draft.unknown_class = value.text;
  }
  // Of several classes, the one with the highest priority is used.
  if (!rule.classtype.empty() && found.priority >= rule.priority) return true;
  rule.classtype = value.text;
  rule.class_description = found.description;
  if (!draft.has_priority) rule.priority = found.priority;
  return true;
}

/// `cve,2021-44228`
bool read_reference(RuleDraft& draft, const OptionValue& value) {
  const std::size_t comma = value.text.find(',');
  const std::string_view kind = trimmed(value.text.substr(0, comma));
  const std::string_view id = comma == value.text.npos ? std::string_view{} : trimmed(value.text.substr(comma + 1));
  if (kind.empty() || id.empty()) return draft.fail(value.text, "wrong reference", in_quotes(value.text), "KIND,ID");
  draft.rule.references.push_back({lower_case(kind), std::string(id)});
  return true;
}

/// `key value, key value`; a key alone has no value.
bool read_metadata(RuleDraft& draft, const OptionValue& value) {
  for (const std::string_view field : split_fields(value.text)) {
    if (field.empty()) continue;
    const std::size_t space = field.find_first_of(" \t");
    draft.rule.metadata.push_back({std::string(field.substr(0, space)),
                                   space == field.npos ? std::string{} : std::string(trimmed(field.substr(space)))});
  }
  return true;
}

bool read_target(RuleDraft& draft, const OptionValue& value) {
  if (value.text != "src_ip" && value.text != "dest_ip") {
    return draft.fail(value.text, "unknown target", in_quotes(value.text), "src_ip or dest_ip");
  }
  if (!draft.rule.target.empty()) return draft.fail_combination(value.name, "second target");
  draft.rule.target = value.text;
  return true;
}

/// Marks the condition before it as the one that selects the rule. After a content it means `fast_pattern`. Otherwise
/// it has no effect here, but rules that Suricata refuses because of it are refused.
bool read_prefilter(RuleDraft& draft, const OptionValue& value) {
  constexpr std::array<std::string_view, 13> kSelectNothing{
      "pcre",          "isdataat", "bsize", "byte_test", "byte_jump",        "byte_extract", "byte_math",
      "base64_decode", "flowint",  "xbits", "threshold", "detection_filter", "tag"};
  if (draft.last_condition.empty())
    return draft.fail_combination(value.name, "prefilter without an option before it", "an option before it");
  if (std::find(kSelectNothing.begin(), kSelectNothing.end(), draft.last_condition) != kSelectNothing.end()) {
    return draft.fail_combination(value.name, "prefilter after " + std::string(draft.last_condition),
                                  "after a content, flow, flowbits, or an option of headers");
  }
  if (draft.has_prefilter) return draft.fail_combination(value.name, "second prefilter");
  if (draft.last_condition != "content") {
    draft.has_prefilter = true;
    return true;
  }
  Content& content = *draft.last_content();
  if (content.negated && (content.offset || content.depth || content.distance || content.within)) {
    return draft.fail_combination(value.name, "prefilter for a negated content with a position",
                                  "one without a position");
  }
  content.fast_pattern = true;
  return true;
}

}  // namespace penstock::nids
