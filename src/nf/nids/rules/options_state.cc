// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options about state that outlives a packet: bits, numbers, thresholds, tags.

#include <algorithm>
#include <array>
#include <optional>

#include "nf/nids/rules/options.h"
#include "nf/nids/rules/threshold_words.h"

namespace penstock::nids {

namespace {

bool check_name(RuleDraft& draft, std::string_view name) {
  if (!name.empty() && name.find_first_of(" \t") == name.npos) return true;
  return draft.fail(name, "wrong name", in_quotes(name), "a name without spaces");
}

/// The `key value` pairs of threshold and detection_filter, in any order, each at most once.
struct CountFields {
  std::string_view type, track, count, seconds, multiplier;

  bool read(RuleDraft& draft, const OptionValue& value) {
    struct Key {
      std::string_view name;
      std::string_view* text;
    };
    const std::array<Key, 5> keys{
        {{"type", &type}, {"track", &track}, {"count", &count}, {"seconds", &seconds}, {"multiplier", &multiplier}}};
    for (const std::string_view field : split_fields(value.text)) {
      const std::vector<std::string_view> words = split_spaces(field);
      const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) {
        return words.size() == 2 && equals_ignoring_case(words[0], k.name);
      });
      if (key == keys.end()) {
        return draft.fail(field, "wrong word", in_quotes(field), "type …, track …, count N, seconds N");
      }
      if (!key->text->empty()) return draft.fail_combination(field, "given twice");
      *key->text = words[1];
    }
    return true;
  }
};

bool read_count(RuleDraft& draft, std::string_view text, const char* what, std::uint64_t least, std::uint32_t& out) {
  std::uint64_t number = 0;
  if (!read_unsigned(draft, text, least, 0xffffffff, what, number)) return false;
  out = static_cast<std::uint32_t>(number);
  return true;
}

bool set_threshold(RuleDraft& draft, const OptionValue& value, const Threshold& threshold) {
  if (draft.rule.threshold) {
    return draft.fail_combination(value.name, "threshold and detection_filter together, or one of them twice");
  }
  draft.rule.threshold = threshold;
  return true;
}

bool read_bits(RuleDraft& draft, std::string_view text, char separator, std::vector<std::uint32_t>& bits) {
  for (const std::string_view part : split(text, separator)) {
    const std::string_view name = trimmed(part);
    if (!check_name(draft, name)) return false;
    bits.push_back(draft.names.flowbits.number(name));
  }
  return true;
}

}  // namespace

/// `set,name`, `isset,a|b`, `noalert`; in Snort's `a&b` both bits are meant.
bool read_flowbits(RuleDraft& draft, const OptionValue& value) {
  const std::size_t comma = value.text.find(',');
  const std::string_view command = trimmed(value.text.substr(0, comma));
  if (command == "noalert") {
    if (comma != value.text.npos)
      return draft.fail(value.text, "unexpected text after noalert", in_quotes(value.text), ";");
    draft.rule.alerts = false;
    return true;
  }
  const std::string_view names = comma == value.text.npos ? std::string_view{} : trimmed(value.text.substr(comma + 1));
  const bool is_test = command == "isset" || command == "isnotset";
  const bool is_set = command == "set" || command == "unset" || command == "toggle";
  if (!is_test && !is_set) {
    return draft.fail(command, "unknown flowbits command", in_quotes(command),
                      "set, unset, toggle, isset, isnotset or noalert");
  }
  if (names.empty()) return draft.fail(value.text, "flowbits without a name", in_quotes(value.text), "NAME");
  if (is_test && names.find('|') != names.npos) {
    FlowbitsMatch match;
    match.negated = command == "isnotset";
    if (!read_bits(draft, names, '|', match.bits)) return false;
    draft.rule.state_matches.emplace_back(std::move(match));
    return true;
  }
  if (names.find('|') != names.npos) {
    return draft.fail(names, "several names to set", in_quotes(names), "one name; `|` is for isset and isnotset");
  }
  std::vector<std::uint32_t> bits;
  if (!read_bits(draft, names, '&', bits)) return false;
  for (const std::uint32_t bit : bits) {
    if (is_test) {
      draft.rule.state_matches.emplace_back(FlowbitsMatch{{bit}, command == "isnotset"});
    } else {
      using How = FlowbitsChange::How;
      draft.rule.state_changes.emplace_back(FlowbitsChange{command == "set"     ? How::set
                                                           : command == "unset" ? How::unset
                                                                                : How::toggle,
                                                           bit});
    }
  }
  return true;
}

/// `name, +, 1`, `name, >, other`, `name, isset`
bool read_flowint(RuleDraft& draft, const OptionValue& value) {
  const std::vector<std::string_view> fields = split_fields(value.text);
  constexpr const char* kForm = "NAME, OPERATOR, NUMBER or NAME, isset";
  if (fields.size() < 2 || fields.size() > 3) {
    return draft.fail(value.text, "wrong flowint", in_quotes(value.text), kForm);
  }
  if (!check_name(draft, fields[0])) return false;
  const std::uint32_t name = draft.names.flowints.number(fields[0]);
  const std::string_view oper = fields[1];
  using Operator = FlowintMatch::Operator;
  if (oper == "isset" || oper == "notset" || oper == "isnotset") {
    if (fields.size() != 2)
      return draft.fail(fields[2], "unexpected text after the operator", in_quotes(fields[2]), ";");
    draft.rule.state_matches.emplace_back(
        FlowintMatch{oper == "isset" ? Operator::is_set : Operator::is_not_set, name, 0, std::nullopt});
    return true;
  }
  if (fields.size() != 3) return draft.fail(value.text, "wrong flowint", in_quotes(value.text), kForm);
  std::uint32_t number = 0;
  std::optional<std::uint32_t> other;
  const char first = fields[2].empty() ? '\0' : fields[2].front();
  if ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_') {
    if (!check_name(draft, fields[2])) return false;
    other = draft.names.flowints.number(fields[2]);
  } else if (!read_count(draft, fields[2], "number", 0, number)) {
    return false;
  }
  using How = FlowintChange::How;
  const auto change = [&](How how) {
    draft.rule.state_changes.emplace_back(FlowintChange{how, name, number, other});
    return true;
  };
  const auto match = [&](Operator operation) {
    draft.rule.state_matches.emplace_back(FlowintMatch{operation, name, number, other});
    return true;
  };
  if (oper == "=") return change(How::set);
  if (oper == "+") return change(How::add);
  if (oper == "-") return change(How::subtract);
  if (oper == "<") return match(Operator::less);
  if (oper == "<=") return match(Operator::less_equal);
  if (oper == "==") return match(Operator::equal);
  if (oper == "!=") return match(Operator::not_equal);
  if (oper == ">=") return match(Operator::greater_equal);
  if (oper == ">") return match(Operator::greater);
  return draft.fail(oper, "unknown operator", in_quotes(oper), "= + - < <= == != >= > isset or notset");
}

/// `set,name,track ip_src,expire 60`
bool read_xbits(RuleDraft& draft, const OptionValue& value) {
  const std::vector<std::string_view> fields = split_fields(value.text);
  if (fields[0] == "noalert" && fields.size() == 1) {
    draft.rule.alerts = false;
    return true;
  }
  if (fields.size() < 3) return draft.fail(value.text, "wrong xbits", in_quotes(value.text), "COMMAND, NAME, track …");
  if (!check_name(draft, fields[1])) return false;
  const std::uint32_t bit = draft.names.xbits.number(fields[1]);
  std::optional<TrackBy> track;
  std::uint32_t expire_s = 30;
  for (std::size_t i = 2; i < fields.size(); ++i) {
    const std::vector<std::string_view> words = split_spaces(fields[i]);
    if (words.size() == 2 && words[0] == "track" && !track) {
      if (words[1] == "ip_src") {
        track = TrackBy::source;
      } else if (words[1] == "ip_dst") {
        track = TrackBy::destination;
      } else if (words[1] == "ip_pair") {
        track = TrackBy::ip_pair;
      } else if (words[1] == "tx") {
        return draft.fail_unsupported(words[1], "xbits of a transaction");
      } else {
        return draft.fail(words[1], "unknown track", in_quotes(words[1]), "ip_src, ip_dst or ip_pair");
      }
    } else if (words.size() == 2 && words[0] == "expire") {
      if (!read_count(draft, words[1], "expire", 1, expire_s)) return false;
    } else {
      return draft.fail(fields[i], "wrong word", in_quotes(fields[i]), "track ip_src|ip_dst|ip_pair, expire SECONDS");
    }
  }
  if (!track)
    return draft.fail(value.text, "xbits without track", in_quotes(value.text), "track ip_src|ip_dst|ip_pair");
  using How = XbitsChange::How;
  const std::string_view command = fields[0];
  if (command == "isset" || command == "isnotset") {
    draft.rule.state_matches.emplace_back(XbitsMatch{bit, *track, command == "isnotset"});
  } else if (command == "set" || command == "unset" || command == "toggle") {
    draft.rule.state_changes.emplace_back(XbitsChange{command == "set"     ? How::set
                                                      : command == "unset" ? How::unset
                                                                           : How::toggle,
                                                      bit, *track, expire_s});
  } else {
    return draft.fail(command, "unknown xbits command", in_quotes(command),
                      "set, unset, toggle, isset, isnotset or noalert");
  }
  return true;
}

/// `type limit, track by_src, count 1, seconds 60`; backoff has `multiplier 10` instead of seconds.
bool read_threshold(RuleDraft& draft, const OptionValue& value) {
  CountFields fields;
  if (!fields.read(draft, value)) return false;
  Threshold threshold;
  using Type = Threshold::Type;
  const auto type = threshold_type_of(fields.type);
  if (!type) {
    return draft.fail(fields.type.empty() ? value.text : fields.type, "unknown threshold type", in_quotes(fields.type),
                      "type limit, threshold, both or backoff");
  }
  threshold.type = *type;
  const bool is_backoff = threshold.type == Type::backoff;
  const auto track = track_of(fields.track);
  if (!track) {
    return draft.fail(fields.track.empty() ? value.text : fields.track, "unknown track", in_quotes(fields.track),
                      "track by_src, by_dst, by_both, by_rule or by_flow");
  }
  threshold.track = *track;
  if (is_backoff && threshold.track != TrackBy::flow) {
    return draft.fail_combination(fields.track, "backoff needs track by_flow", "track by_flow");
  }
  if (fields.count.empty() || (is_backoff ? fields.multiplier : fields.seconds).empty() ||
      (!is_backoff && !fields.multiplier.empty())) {
    return draft.fail(value.text, "wrong threshold", in_quotes(value.text),
                      is_backoff ? "count N, multiplier N" : "count N, seconds N");
  }
  if (!read_count(draft, fields.count, "count", 1, threshold.count)) return false;
  if (is_backoff) {
    if (!read_count(draft, fields.multiplier, "multiplier", 1, threshold.multiplier)) return false;
  } else if (!read_count(draft, fields.seconds, "seconds", 0, threshold.seconds)) {
    return false;
  }
  return set_threshold(draft, value, threshold);
}

/// `track by_src, count 10, seconds 60`
bool read_detection_filter(RuleDraft& draft, const OptionValue& value) {
  CountFields fields;
  if (!fields.read(draft, value)) return false;
  Threshold threshold;
  threshold.type = Threshold::Type::detection_filter;
  const auto track = track_of(fields.track);
  if (!track) {
    return draft.fail(fields.track.empty() ? value.text : fields.track, "unknown track", in_quotes(fields.track),
                      "track by_src, by_dst, by_both, by_rule or by_flow");
  }
  threshold.track = *track;
  if (fields.count.empty() || fields.seconds.empty() || !fields.type.empty() || !fields.multiplier.empty()) {
    return draft.fail(value.text, "wrong detection_filter", in_quotes(value.text), "track …, count N, seconds N");
  }
  if (!read_count(draft, fields.count, "count", 1, threshold.count) ||
      !read_count(draft, fields.seconds, "seconds", 1, threshold.seconds)) {
    return false;
  }
  return set_threshold(draft, value, threshold);
}

/// `session`, `session,10,packets`, `host,100,packets,src`. Snort's `host,src` and `session,exclusive` are not
/// supported.
bool read_tag(RuleDraft& draft, const OptionValue& value) {
  const std::vector<std::string_view> fields = split_fields(value.text);
  Tag tag;
  if (equals_ignoring_case(fields[0], "session")) {
    tag.of = Tag::Of::session;
  } else if (equals_ignoring_case(fields[0], "host")) {
    tag.of = Tag::Of::host;
  } else {
    return draft.fail(fields[0], "unknown tag type", in_quotes(fields[0]), "session or host");
  }
  if (fields.size() == 2 || fields.size() > 4) {
    return draft.fail(value.text, "wrong tag", in_quotes(value.text), "session|host, COUNT, UNIT [, src|dst]");
  }
  if (fields.size() >= 3) {
    if (!read_count(draft, fields[1], "count", 1, tag.count)) return false;
    if (equals_ignoring_case(fields[2], "packets")) {
      tag.unit = Tag::Unit::packets;
      tag.count = std::min<std::uint32_t>(tag.count, Tag{}.count);
    } else if (equals_ignoring_case(fields[2], "seconds")) {
      tag.unit = Tag::Unit::seconds;
    } else if (equals_ignoring_case(fields[2], "bytes")) {
      tag.unit = Tag::Unit::bytes;
    } else {
      return draft.fail(fields[2], "unknown unit", in_quotes(fields[2]), "packets, seconds or bytes");
    }
  }
  if (fields.size() == 4) {
    if (fields[3] != "src" && fields[3] != "dst") {
      return draft.fail(fields[3], "unknown direction", in_quotes(fields[3]), "src or dst");
    }
    tag.by_source = fields[3] == "src";
  }
  draft.rule.tags.push_back(tag);
  return true;
}

bool read_noalert(RuleDraft& draft, const OptionValue&) {
  draft.rule.alerts = false;
  return true;
}

bool read_alert(RuleDraft& draft, const OptionValue&) {
  draft.rule.alerts = true;
  return true;
}

}  // namespace penstock::nids
