// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `nids`, and how it is built from them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/error_list.h"
#include "base/text_file.h"
#include "base/units.h"
#include "nf/nids/nids.h"
#include "nf/nids/rules/rule_reader.h"

namespace penstock::nids {

namespace {

constexpr std::string_view kPolicies = "first|last|bsd|bsd_right|linux|windows|solaris";

constexpr auto kParameters = std::to_array<Parameter>({
    {"rules", ParameterType::paths, "", "", "files of Suricata or Snort 2.9 rules", true},
    {"action", ParameterType::choice, "alert", "alert|drop",
     "effect of drop and reject rules: alert only, or drop the packet and the rest of its flow", false},
    {"vars", ParameterType::pairs, "", "",
     "variables of the rules: {HOME_NET: 10.0.0.0/8, HTTP_PORTS: [80, 8080]}; other variables keep their defaults",
     false},
    {"classification", ParameterType::path, "", "", "classification.config, instead of the built-in classes", false},
    {"reference", ParameterType::path, "", "", "reference.config, instead of the built-in systems", false},
    {"threshold", ParameterType::path, "", "", "threshold.config: thresholds, rate filters and suppressions", false},
    {"fragment_policy", ParameterType::choice, "linux", kPolicies, "kind of host to imitate when fragments overlap",
     false},
    {"stream_policy", ParameterType::choice, "linux", kPolicies, "the same for overlapping TCP segments", false},
    {"overlaps", ParameterType::choice, "all", "all|policy",
     "which versions are inspected if fragments or segments contradict each other; all: every version; policy: only "
     "the one that the policy's host keeps",
     false},
    {"tracking", ParameterType::choice, "streams", "streams|packets",
     "packets: inspect each packet on its own, without flows and streams; rules that need them never match", false},
    {"midstream", ParameterType::flag, "false", "", "also track TCP connections whose start was not seen", false},
    {"async", ParameterType::flag, "false", "", "also track TCP connections of which only one direction is seen",
     false},
    {"checksums", ParameterType::choice, "verify", "verify|ignore",
     "verify: packets with a wrong IPv4 or TCP checksum are not reassembled; ignore: checksums are not verified, for "
     "captures taken at the sender before the NIC filled in the checksums",
     false},
    {"stream_depth", ParameterType::size, "1MiB", "0B..4GiB",
     "bytes to reassemble in each direction of a TCP connection; 0: all", false},
    {"flow_memory", ParameterType::size, "64MiB", "1MiB..1TiB", "memory for flows, per worker", false},
    {"stream_memory", ParameterType::size, "128MiB", "1MiB..1TiB", "memory for TCP streams, per worker", false},
    {"fragment_memory", ParameterType::size, "16MiB", "1MiB..1TiB", "memory for fragments, per worker", false},
    {"when_full", ParameterType::choice, "auto", "auto|drop|pass",
     "what to do with packets when flow, stream or fragment memory is full; auto: drop with action: drop, else pass",
     false},
    {"host_memory", ParameterType::size, "32MiB", "1MiB..1TiB",
     "memory for thresholds, tags and host bits, shared by all workers", false},
    {"most_alerts", ParameterType::integer, "255", "1..255",
     "maximum number of alerts per packet; those of the lowest priority are left out", false},
    {"matcher", ParameterType::choice, "auto", "auto|hyperscan|aho_corasick|hashed_filter",
     "string matcher on the CPU; auto: hyperscan", false},
    {"gpu_matcher", ParameterType::choice, "auto", "auto|hashed_filter|aho_corasick",
     "string search on a GPU; auto: the fastest for the rules; aho_corasick: the papers' algorithm, with strings of up "
     "to 255 bytes and a thread for each packet",
     false},
    {"flow_state", ParameterType::choice, "none", "none|automaton",
     "state of flows that is sent to a GPU with each TCP segment; automaton: that of the string search, so that the "
     "GPU "
     "finds strings across two segments",
     false},
    {"payload", ParameterType::flag, "false", "", "add the payload to EVE alerts, in base64 and as printable text",
     false},
    {"packet", ParameterType::flag, "false", "", "add the packet to EVE alerts, in base64", false},
    {"stats_interval", ParameterType::duration, "0", "0..24h",
     "how often to write a `stats` record to the EVE log; 0: only at the end", false},
    {"flow_records", ParameterType::flag, "false", "", "write a `flow` record to the EVE log when a flow ends", false},
    {"references", ParameterType::flag, "false", "", "add the references of the rule to EVE alerts", false},
    {"most_rules", ParameterType::integer, "150000", "1..100000000",
     "maximum number of rules in all files, loaded or not; also bounds their memory", false},
    {"strict", ParameterType::flag, "false", "", "treat rules that cannot be loaded as errors", false},
    {"undecodable", ParameterType::choice, "pass", "pass|drop",
     "what to do with frames that may hide a packet that the decoder cannot find; drop needs action: drop", false},
    {"vxlan_ports", ParameterType::integers, "4789,4790,8472", "0..65535",
     "UDP destination ports whose payload is decoded as VXLAN, at most 8; 0: none", false},
    {"geneve_ports", ParameterType::integers, "6081", "0..65535",
     "UDP destination ports whose payload is decoded as Geneve, at most 8; 0: none", false},
    {"teredo_ports", ParameterType::integers, "3544", "0..65535",
     "UDP source or destination ports whose payload may be Teredo, at most 8; 0: none", false},
    {"handshake_timeout", ParameterType::duration, "60s", "1s..24h",
     "how long an idle TCP connection is kept before it is established", false},
    {"tcp_idle_timeout", ParameterType::duration, "600s", "1s..24h",
     "how long an idle established TCP connection is kept", false},
    {"tcp_closed_timeout", ParameterType::duration, "60s", "1s..24h", "how long a closed TCP connection is kept",
     false},
    {"flow_new_timeout", ParameterType::duration, "30s", "1s..24h",
     "how long any other idle flow, such as UDP, is kept after packets from one side only", false},
    {"flow_idle_timeout", ParameterType::duration, "300s", "1s..24h",
     "how long any other idle flow is kept after packets from both sides", false},
    {"fragment_timeout", ParameterType::duration, "60s", "1s..24h",
     "how long fragments of an incomplete datagram are kept", false},
});

constexpr std::string_view kEve = "eve";
constexpr std::string_view kFastLog = "fast_log";

constexpr auto kOutputs = std::to_array<function::OutputKind>({
    {kEve, "alerts", "alerts as EVE JSON, one per line, written while the chain runs"},
    {kFastLog, "alerts", "alerts in Suricata's fast.log format, one per line, written while the chain runs"},
});

stack::OverlapPolicy policy_of(std::string_view name) {
  using Policy = stack::OverlapPolicy;
  if (name == "first") return Policy::first;
  if (name == "last") return Policy::last;
  if (name == "bsd_right") return Policy::bsd_right;
  if (name == "windows") return Policy::windows;
  if (name == "solaris") return Policy::solaris;
  if (name == "bsd") return Policy::bsd;
  return Policy::linux_host;
}

MatcherKind matcher_of(std::string_view name) {
  if (name == "aho_corasick") return MatcherKind::aho_corasick;
  if (name == "hashed_filter") return MatcherKind::hashed_filter;
  return MatcherKind::hyperscan;
}

ScanEngine scan_of(std::string_view name) {
  if (name == "aho_corasick") return ScanEngine::aho_corasick_packets;
  if (name == "hashed_filter") return ScanEngine::hashed_filter;
  return ScanEngine::automatic;
}

/// check_parameters has limited their number.
stack::TunnelPorts::Ports ports_of(const Parameters& parameters, std::string_view name) {
  stack::TunnelPorts::Ports ports{};
  const std::vector<std::uint64_t>& given = parameters.integers(name);
  for (std::size_t i = 0; i < given.size() && i < ports.size(); ++i) ports[i] = static_cast<std::uint16_t>(given[i]);
  return ports;
}

/// The duration rounded up to whole seconds.
std::uint32_t seconds(const Parameters& parameters, std::string_view name) {
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(parameters.duration(name)).count());
}

Errors check_parameters(const Parameters& parameters) {
  Errors errors;
  const bool drops = parameters.text("action") == "drop";
  for (const std::string_view name : {"when_full", "undecodable"}) {
    if (drops || parameters.text(name) != "drop") continue;
    errors.push_back(
        {parameters.place(name), fmt::format("{}: nothing is dropped", name), "drop with action: alert",
         name == "when_full" ? "drop with action: drop, else pass or auto" : "drop with action: drop, else pass"});
  }
  if (parameters.text("flow_state") != "none" && parameters.text("tracking") == "packets") {
    errors.push_back({parameters.place("flow_state"), "flow_state: packets are inspected one by one, without flows",
                      "automaton with tracking: packets", "automaton with tracking: streams, else none"});
  }
  if (parameters.text("flow_state") != "none" && parameters.text("gpu_matcher") == "aho_corasick") {
    errors.push_back({parameters.place("flow_state"), "flow_state: this search on the GPU takes no state",
                      "automaton with gpu_matcher: aho_corasick", "none, or gpu_matcher: auto"});
  }
  constexpr std::size_t kMost = std::tuple_size_v<stack::TunnelPorts::Ports>;
  for (const std::string_view name : {"vxlan_ports", "geneve_ports", "teredo_ports"}) {
    const std::size_t count = parameters.integers(name).size();
    if (count <= kMost) continue;
    errors.push_back({parameters.place(name), fmt::format("{}: too many ports", name), fmt::format("{}", count),
                      fmt::format("at most {}", kMost)});
  }
  return errors;
}

NidsSettings settings_of(const Parameters& parameters, const function::NfContext& context) {
  NidsSettings settings;
  stack::TrackerOptions& tracker = settings.tracker;
  tracker.fragment_policy = policy_of(parameters.text("fragment_policy"));
  tracker.stream_policy = policy_of(parameters.text("stream_policy"));
  tracker.every_version = parameters.text("overlaps") == "all";
  tracker.verify_checksums = parameters.text("checksums") == "verify";
  tracker.keep_flows = parameters.text("tracking") == "streams";
  tracker.midstream = parameters.flag("midstream");
  tracker.async_oneside = parameters.flag("async");
  tracker.flow_memory = parameters.integer("flow_memory");
  tracker.stream_memory = parameters.integer("stream_memory");
  tracker.fragment_memory = parameters.integer("fragment_memory");
  tracker.refuse_undecodable = parameters.text("undecodable") == "drop";
  tracker.tunnel_ports.vxlan = ports_of(parameters, "vxlan_ports");
  tracker.tunnel_ports.geneve = ports_of(parameters, "geneve_ports");
  tracker.tunnel_ports.teredo = ports_of(parameters, "teredo_ports");
  tracker.tcp_new_timeout_s = seconds(parameters, "handshake_timeout");
  tracker.tcp_established_timeout_s = seconds(parameters, "tcp_idle_timeout");
  tracker.tcp_closed_timeout_s = seconds(parameters, "tcp_closed_timeout");
  tracker.new_timeout_s = seconds(parameters, "flow_new_timeout");
  tracker.established_timeout_s = seconds(parameters, "flow_idle_timeout");
  tracker.fragment_timeout_s = seconds(parameters, "fragment_timeout");
  const std::uint64_t depth = parameters.integer("stream_depth");
  tracker.stream_depth = depth == 0 || depth > 0xffff'ffff ? 0xffff'ffff : static_cast<std::uint32_t>(depth);
  settings.inspector.drops = tracker.inline_streams = parameters.text("action") == "drop";
  tracker.refuse_when_full = settings.inspector.drops && parameters.text("when_full") != "pass";
  settings.scan = scan_of(parameters.text("gpu_matcher"));
  settings.flow_state = parameters.text("flow_state") == "automaton";
  settings.host_memory = parameters.integer("host_memory");
  settings.eve.payload = parameters.flag("payload");
  settings.eve.packet = parameters.flag("packet");
  settings.stats_interval = std::chrono::seconds(seconds(parameters, "stats_interval"));
  settings.flow_records = parameters.flag("flow_records");
  settings.eve_log = context.log(kEve);
  settings.fast_log = context.log(kFastLog);
  return settings;
}

/// Parameters that only a new run can change.
constexpr auto kFixed = std::to_array<std::string_view>({
    "action",
    "fragment_policy",
    "stream_policy",
    "overlaps",
    "tracking",
    "midstream",
    "async",
    "checksums",
    "stream_depth",
    "flow_memory",
    "stream_memory",
    "fragment_memory",
    "when_full",
    "host_memory",
    "flow_state",
    "undecodable",
    "vxlan_ports",
    "geneve_ports",
    "teredo_ports",
    "handshake_timeout",
    "tcp_idle_timeout",
    "tcp_closed_timeout",
    "flow_new_timeout",
    "flow_idle_timeout",
    "fragment_timeout",
});

std::string value_of(const Parameters& parameters, const Parameter& parameter) {
  switch (parameter.type) {
    case ParameterType::flag: return parameters.flag(parameter.name) ? "true" : "false";
    case ParameterType::integer: return format_count(parameters.integer(parameter.name));
    case ParameterType::size: return format_count(parameters.integer(parameter.name), "byte");
    case ParameterType::duration: return fmt::format("{} s", seconds(parameters, parameter.name));
    case ParameterType::integers: {
      std::vector<std::uint64_t> all = parameters.integers(parameter.name);
      std::sort(all.begin(), all.end());
      return fmt::format("{}", fmt::join(all, ","));
    }
    default: return parameters.text(parameter.name);
  }
}

/// The values that the settings were made of, except files and variables: rules are compared instead.
std::vector<NidsParameter> values_of(const Parameters& parameters, const NidsSettings& settings) {
  std::vector<NidsParameter> values;
  for (const Parameter& parameter : kParameters) {
    const bool is_file = parameter.type == ParameterType::path || parameter.type == ParameterType::paths;
    if (is_file || parameter.type == ParameterType::pairs) continue;
    const bool is_fixed = std::ranges::find(kFixed, parameter.name) != kFixed.end();
    values.push_back({parameter.name, value_of(parameters, parameter), parameters.place(parameter.name), is_fixed});
    if (parameter.name == "when_full") values.back().value = settings.tracker.refuse_when_full ? "drop" : "pass";
  }
  return values;
}

/// Reads the rule files' variables, and where each was set, so that errors are reported there.
Result<void> read_variables(const Parameters& parameters, RuleFiles& files) {
  if (!parameters.has("vars")) return {};
  Errors errors;
  const std::vector<std::string>& given = parameters.texts("vars");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    std::string name = given[i].substr(0, equals);
    if (name.starts_with('$')) name.erase(0, 1);
    if (name.empty()) {
      errors.push_back({parameters.place("vars", i), "vars: a variable without a name", in_quotes(given[i]),
                        "a mapping such as {HOME_NET: 10.0.0.0/8}"});
      continue;
    }
    if (!files.variable_places.emplace(name, parameters.place("vars", i)).second) {
      errors.push_back({parameters.place("vars", i), "vars: a variable is given twice", in_quotes(given[i]),
                        "each variable once, with or without $"});
    }
    files.variables.insert_or_assign(std::move(name), given[i].substr(equals + 1));
  }
  if (!errors.empty()) return failure(std::move(errors));
  return {};
}

/// Checks for variables that the user set and no rule uses. If the name is similar to a variable that keeps its
/// default, it is an error, because rules would match the wrong hosts. Variables that have a default may be meant for
/// other rules.
Errors check_unused_variables(const RuleFiles& files, const RuleSet& set, Errors& warnings) {
  const Variables defaults = default_variables();
  std::vector<std::string_view> not_set;  // variables that the user has not set
  for (const auto& [name, value] : defaults) {
    if (!files.variable_places.contains(name)) not_set.emplace_back(name);
  }
  Errors errors;
  for (const auto& [name, place] : files.variable_places) {
    if (set.named_variables.contains(name) || defaults.contains(name)) continue;
    const auto same =
        std::ranges::find_if(not_set, [&wanted = name](auto known) { return equals_ignoring_case(known, wanted); });
    const std::string_view meant = same != not_set.end() ? *same : nearest_name(name, not_set);
    Error error{place, "vars: no rule uses this variable", in_quotes(name), std::string(meant)};
    (meant.empty() ? warnings : errors).push_back(std::move(error));
  }
  return errors;
}

/// Reports rules that were left out; wrong rules first, since the user can fix these.
Errors left_out(const RuleSet& rules) {
  Errors errors;
  for (const bool mistakes : {true, false}) {
    for (const RuleSet::Left& left : rules.left_out) {
      if (left.is_mistake() == mistakes) errors.push_back(left.why);
    }
  }
  return errors;
}

/// One warning per unknown class, at the first rule that uses it.
Errors unknown_classes(const RuleSet& rules) {
  Errors errors;
  for (const auto& [name, unknown] : rules.unknown_classes) {
    std::string message = "unknown classtype";
    if (unknown.rules > 1) message += " in " + format_count(unknown.rules, "rule");
    if (!unknown.meant.empty()) message += fmt::format("; did you mean '{}'?", unknown.meant);
    errors.push_back({unknown.place, std::move(message), in_quotes(unknown.name), "a class of classification.config"});
  }
  errors = in_file_order(std::move(errors));
  if (const std::size_t more = rules.more_rules_of_unknown_classes; more > 0)
    errors.push_back({{}, fmt::format("… and {} with other unknown classtypes", format_count(more, "rule")), "", ""});
  return errors;
}

/// Warns about drop rules in a chain that forwards packets and only alerts.
void caution_about_drops(const Parameters& parameters, const RuleSet& set, function::NfContext& context) {
  const bool forwards = std::ranges::find(context.ports_write, true) != context.ports_write.end();
  const auto count = std::ranges::count_if(set.rules, [](const Rule& rule) { return drops(rule.action); });
  if (!forwards || count == 0 || parameters.text("action") == "drop") return;
  context.cautions.push_back(
      {parameters.place("rules"),
       "no packets are dropped by " + format_count(static_cast<std::uint64_t>(count), "drop or reject rule"),
       "action: alert", "action: drop, to drop packets"});
}

Errors in_short(const RuleSet& rules) {
  ErrorList list;
  for (Error& error : left_out(rules)) list.add(std::move(error));
  return std::move(list).take();
}

/// With `action: drop`, the rules are a policy. A rule with a mistake may be all that is left of a longer file, or what
/// should drop an attack.
Result<void> check_policy(const RuleSet& set, const Parameters& parameters) {
  if (parameters.text("action") != "drop") return {};
  ErrorList list;
  std::size_t mistakes = 0;
  for (const RuleSet::Left& left : set.left_out) {
    if (!left.is_mistake()) continue;
    list.add(left.why);
    ++mistakes;
  }
  if (mistakes == 0) return {};
  Errors errors = std::move(list).take();
  errors.push_back({parameters.place("action"),
                    fmt::format("refused because of {} with mistakes, listed above: what they should drop would pass",
                                format_count(mistakes, "rule")),
                    "'drop'", "correct rules, or `action: alert`"});
  return failure(std::move(errors));
}

/// Some rules may be left out, but without any rule nothing would be detected.
Result<void> check_not_empty(const RuleSet& set, const Parameters& parameters) {
  if (!set.rules.empty()) return {};
  Errors errors = in_short(set);
  std::string found = "no rules";
  if (set.has_rule) {
    const auto mistakes = std::ranges::count_if(set.left_out, &RuleSet::Left::is_mistake);
    found = fmt::format("{} with mistakes, {} not supported", mistakes,
                        static_cast<std::ptrdiff_t>(set.left_out.size()) - mistakes);
  } else if (set.disabled > 0) {
    found = fmt::format("only {} in comments", format_count(set.disabled));
  }
  errors.push_back({parameters.place("rules"), "no rule could be loaded", std::move(found), "at least one"});
  return failure(std::move(errors));
}

/// Gives errors that one variable causes in another a place, since they have none of their own.
Errors placed_variables(Errors errors, const Parameters& parameters) {
  if (!parameters.has("vars")) return errors;
  for (Error& error : errors) {
    if (error.place.file.empty()) error.place = parameters.place("vars");
  }
  return errors;
}

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters, function::NfContext& context) {
  if (Errors errors = check_parameters(parameters); !errors.empty()) return failure(std::move(errors));
  RuleFiles files;
  if (auto read = read_variables(parameters, files); !read) return failure(std::move(read).error());
  files.rules = parameters.texts("rules");
  files.most_rules = parameters.integer("most_rules");
  if (parameters.has("classification")) files.classification = parameters.text("classification");
  if (parameters.has("reference")) files.reference = parameters.text("reference");
  if (parameters.has("threshold")) files.threshold = parameters.text("threshold");
  auto rules = read_rules(files);
  if (!rules) return failure(placed_variables(std::move(rules).error(), parameters));
  DetectionOptions options;
  options.matcher = matcher_of(parameters.text("matcher"));
  constexpr std::size_t kLongestContent = 255;  // that Suricata takes
  if (parameters.text("gpu_matcher") == "aho_corasick") options.most_pattern_bytes = kLongestContent;
  options.most_alerts = static_cast<unsigned>(parameters.integer("most_alerts"));
  auto detection = Detection::compile(std::move(*rules), options);
  if (!detection) {
    for (Error& error : detection.error()) {
      if (error.place.file.empty()) error.place = parameters.place("rules");
    }
    return failure(std::move(detection).error());
  }
  const RuleSet& set = (*detection)->rules();
  if (parameters.flag("strict") && !set.left_out.empty()) return failure(in_short(set));
  if (auto some = check_not_empty(set, parameters); !some) return failure(std::move(some).error());
  if (auto whole = check_policy(set, parameters); !whole) return failure(std::move(whole).error());
  if (Errors errors = check_unused_variables(files, set, context.without_effect); !errors.empty())
    return failure(std::move(errors));
  append(context.without_effect, unknown_classes(set));
  caution_about_drops(parameters, set, context);
  append(context.unsupported, left_out(set));
  NidsSettings settings = settings_of(parameters, context);
  settings.parameters = values_of(parameters, settings);
  settings.tracker.seam_bytes = (*detection)->seam_bytes();
  if (parameters.flag("references")) settings.eve.references = &set.references;
  return std::make_unique<Nids>(std::move(*detection), settings);
}

}  // namespace

const function::NfKind& nids_kind() {
  static constexpr function::NfKind kKind{
      "nids", "matches packets against Suricata or Snort rules, and alerts or drops", kParameters, &make, kOutputs};
  return kKind;
}

}  // namespace penstock::nids
