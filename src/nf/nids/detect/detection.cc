// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "nf/nids/detect/detection_parts.h"
#include "nf/nids/detect/fast_pattern.h"
#include "nf/nids/detect/rule_order.h"

namespace penstock::nids {

namespace {

constexpr std::uint32_t kNoLiteral = ~std::uint32_t{0};

/// The literal that selects each rule, in the table of its buffer.
struct Selection {
  Buffer buffer = Buffer::payload;
  std::uint32_t literal = kNoLiteral;
};

class LiteralTableBuilder {
 public:
  std::uint32_t add(const Literal& literal, std::uint32_t rule) {
    std::string key(literal.bytes.begin(), literal.bytes.end());
    key.push_back(literal.nocase ? 1 : 0);
    const auto [place, is_new] = numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(rules_.size()));
    if (is_new) {
      table_.literals.push_back(literal);
      rules_.emplace_back();
    }
    rules_[place->second].push_back(rule);
    return place->second;
  }

  LiteralTable build() && {
    table_.starts.push_back(0);
    for (const std::vector<std::uint32_t>& rules : rules_) {
      table_.rules.insert(table_.rules.end(), rules.begin(), rules.end());
      table_.starts.push_back(static_cast<std::uint32_t>(table_.rules.size()));
    }
    return std::move(table_);
  }

 private:
  LiteralTable table_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::vector<std::uint32_t>> rules_;
};

/// Creates each matcher once; groups share them.
class Matchers {
 public:
  Matchers(MatcherKind kind, std::vector<Matcher>& matchers) : kind_(kind), matchers_(matchers) {}

  Result<std::uint32_t> number_of(bool of_headers, const LiteralTable& table, std::vector<std::uint32_t> literals) {
    if (literals.empty()) return kNoMatcher;
    std::sort(literals.begin(), literals.end());
    literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
    const auto [place, is_new] =
        known_.try_emplace({of_headers, std::move(literals)}, static_cast<std::uint32_t>(matchers_.size()));
    if (!is_new) return place->second;
    Matcher made;
    made.literals = place->first.second;
    std::vector<Literal> texts;
    texts.reserve(made.literals.size());
    for (const std::uint32_t literal : made.literals) {
      texts.push_back(table.literals[literal]);
      made.longest = std::max(made.longest, texts.back().bytes.size());
    }
    auto matcher = make_pattern_matcher(kind_, texts);
    if (!matcher) return tl::unexpected(std::move(matcher.error()));
    made.matcher = std::move(*matcher);
    matchers_.push_back(std::move(made));
    return place->second;
  }

 private:
  MatcherKind kind_;
  std::vector<Matcher>& matchers_;
  std::map<std::pair<bool, std::vector<std::uint32_t>>, std::uint32_t> known_;
};

/// Plans a group. `is_tcp`: its packets may be in streams.
Result<GroupPlan> plan(const Detection::Parts& parts, std::span<const std::uint32_t> group,
                       std::span<const Selection> selections, bool is_tcp, Matchers& matchers) {
  GroupPlan made;
  std::vector<std::uint32_t> in_packets, in_streams;
  std::map<Buffer, std::vector<std::uint32_t>> in_headers;
  for (const std::uint32_t place : group) {
    const CompiledRule& rule = parts.rules[place];
    if (rule.looks_at_streams && rule.payload) made.looks_at_streams = true;
    if (rule.looks_at_streams && rule.payload && rule.stream_reach.from_start) made.from_start = true;
    made.stream_reach = std::max(made.stream_reach, rule.stream_reach.bytes);
    const Selection& selection = selections[place];
    if (selection.literal == kNoLiteral) {
      made.always.push_back({place, rule.needs});
    } else if (selection.buffer != Buffer::payload) {
      in_headers[selection.buffer].push_back(selection.literal);
    } else {
      if (!is_tcp || rule.looks_at_packets) in_packets.push_back(selection.literal);
      if (is_tcp && rule.looks_at_streams) in_streams.push_back(selection.literal);
    }
  }
  made.looks_at_streams = made.looks_at_streams && is_tcp;
  auto packets = matchers.number_of(false, parts.payload_literals, std::move(in_packets));
  auto streams = matchers.number_of(false, parts.payload_literals, std::move(in_streams));
  if (!packets) return tl::unexpected(std::move(packets.error()));
  if (!streams) return tl::unexpected(std::move(streams.error()));
  made.packets = *packets;
  made.streams = *streams;
  for (auto& [buffer, literals] : in_headers) {
    auto matcher = matchers.number_of(true, parts.header_literals, std::move(literals));
    if (!matcher) return tl::unexpected(std::move(matcher.error()));
    made.headers.push_back({buffer, *matcher});
  }
  return made;
}

bool has_expression(const Rule& rule) noexcept {
  return std::ranges::any_of(rule.buffers, [](const BufferMatches& buffer) {
    return std::ranges::any_of(buffer.matches,
                               [](const BufferMatch& match) { return std::holds_alternative<Pcre>(match); });
  });
}

std::size_t expression_bytes(const CompiledRule& rule) noexcept {
  std::size_t bytes = rule.payload ? rule.payload->expression_bytes() : 0;
  for (const CompiledRule::HeaderProgram& header : rule.headers) bytes += header.program.expression_bytes();
  return bytes;
}

/// Compiles rules in the order of evaluation. Rules that cannot be compiled, or whose expressions exceed the limit, are
/// removed from the set.
std::vector<CompiledRule> compile_rules(RuleSet& set, std::size_t most_expression_bytes) {
  std::vector<CompiledRule> compiled;
  std::map<std::uint32_t, Error> failed;  // by index in the set
  std::size_t bytes = 0;
  for (const std::uint32_t index : evaluation_order(set.rules)) {
    const Rule& rule = set.rules[index];
    if (bytes >= most_expression_bytes && has_expression(rule)) {
      failed.emplace(index, Error{{rule.file, rule.line, 0},
                                  "no memory left for another regular expression",
                                  format_size(bytes) + " used by earlier ones",
                                  "at most " + format_size(most_expression_bytes)});
      continue;
    }
    auto made = compile_rule(rule, index);
    if (made) {
      bytes += expression_bytes(*made);
      compiled.push_back(std::move(*made));
    } else {
      failed.emplace(index, std::move(made.error().front()));
    }
  }
  if (failed.empty()) return compiled;
  for (auto& [index, why] : failed) {
    set.left_out.push_back({set.rules[index].sid, std::move(why), "regular expression"});
  }
  std::vector<Rule> kept;
  kept.reserve(set.rules.size() - failed.size());
  for (std::uint32_t index = 0; index < set.rules.size(); ++index) {
    if (!failed.contains(index)) kept.push_back(std::move(set.rules[index]));
  }
  set.rules = std::move(kept);
  return compile_rules(set, std::numeric_limits<std::size_t>::max());  // compile again, since compiled rules refer to
                                                                       // the set by index
}

}  // namespace

Detection::Detection() : parts_(std::make_unique<Parts>()) {}
Detection::~Detection() = default;

Result<std::unique_ptr<const Detection>> Detection::compile(RuleSet rules, const DetectionOptions& options) {
  std::unique_ptr<Detection> detection(new Detection);
  Parts& parts = *detection->parts_;
  parts.rule_set = std::move(rules);
  parts.options = options;

  parts.rules = compile_rules(parts.rule_set, options.most_expression_bytes);
  for (const CompiledRule& rule : parts.rules)
    parts.stream_reach = std::max(parts.stream_reach, rule.stream_reach.bytes);

  std::vector<Selection> selections(parts.rules.size());
  LiteralTableBuilder of_payloads, of_headers;
  for (std::uint32_t place = 0; place < parts.rules.size(); ++place) {
    if (parts.rules[place].type == RuleType::ip_only) continue;
    const std::optional<FastPattern> pattern = fast_pattern(*parts.rules[place].rule, options.most_pattern_bytes);
    if (!pattern) continue;
    LiteralTableBuilder& table = pattern->buffer == Buffer::payload ? of_payloads : of_headers;
    selections[place] = {pattern->buffer, table.add(pattern->literal, place)};
  }
  parts.payload_literals = std::move(of_payloads).build();
  parts.header_literals = std::move(of_headers).build();
  parts.contested_search = ContestedSearch(parts.payload_literals.literals);
  parts.ip_only = IpOnlyRules(parts.rules);
  parts.groups = RuleGroups(parts.rules);

  Matchers matchers(options.matcher, parts.matchers);
  for (std::size_t i = 0; i < parts.groups.groups().size(); ++i) {
    auto made = plan(parts, parts.groups.groups()[i], selections, parts.groups.of_tcp(i), matchers);
    if (!made) return tl::unexpected(std::move(made.error()));
    parts.plans.push_back(std::move(*made));
  }
  parts.has_tags = std::any_of(parts.rule_set.rules.begin(), parts.rule_set.rules.end(),
                               [](const Rule& rule) { return !rule.tags.empty(); });
  for (const Matcher& matcher : parts.matchers) {
    parts.most_literals = std::max(parts.most_literals, matcher.literals.size());
  }
  return detection;
}

const RuleSet& Detection::rules() const noexcept { return parts_->rule_set; }

bool Detection::literals_select_all() const noexcept {
  return parts_->ip_only.empty() && !parts_->has_tags && std::ranges::all_of(parts_->plans, [](const GroupPlan& plan) {
           return plan.always.empty() && plan.headers.empty();
         });
}

std::uint32_t Detection::seam_bytes() const noexcept { return parts_->stream_reach; }

std::span<const Literal> Detection::literals() const noexcept { return parts_->payload_literals.literals; }

std::string Detection::description() const {
  std::size_t bytes = 0;
  for (const Matcher& matcher : parts_->matchers) bytes += matcher.matcher->bytes();
  return fmt::format("{} in {}, {}, {} of {} KiB", format_count(parts_->rules.size(), "rule"),
                     format_count(parts_->plans.size() - 1, "group"),
                     format_count(parts_->payload_literals.literals.size(), "literal"),
                     format_count(parts_->matchers.size(), "matcher"), (bytes + 1023) / 1024);
}

}  // namespace penstock::nids
