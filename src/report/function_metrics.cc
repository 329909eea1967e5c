// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/function_metrics.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::report {

namespace {

using Json = nlohmann::ordered_json;
using Type = Exposition::Type;

/// The list `list` of the details has an entry for each rule, filter or SA.
struct ListMetric {
  std::string_view name;
  std::string_view help;
  std::string_view list;
  std::string_view value;  // a member of an entry, like the next three
  // Their texts or numbers are labels of the same names. They tell entries apart.
  std::string_view labels[3];
};

constexpr ListMetric kLists[] = {
    {"penstock_firewall_rule_packets_total",
     "Packets for which this rule was the first to match.",
     "rules",
     "packets",
     {"line", "index", "target"}},
    {"penstock_firewall_rule_bytes_total",
     "Bytes of the frames for which this rule was the first to match.",
     "rules",
     "bytes",
     {"line", "index", "target"}},
    {"penstock_filter_matched_packets_total",
     "Packets that this filter matched.",
     "filters",
     "packets",
     {"name", "match", ""}},
    {"penstock_filter_matched_bytes_total",
     "Bytes of the frames that this filter matched.",
     "filters",
     "bytes",
     {"name", "match", ""}},
    {"penstock_nids_rule_alerts_total", "Alerts of this rule.", "rules", "alerts", {"gid", "sid", ""}},
    {"penstock_ipsec_sa_packets_total",
     "Packets that this SA carried.",
     "sas",
     "packets",
     {"spi", "source", "destination"}},
    {"penstock_ipsec_sa_bytes_total", "Bytes that this SA carried.", "sas", "bytes", {"spi", "source", "destination"}},
    {"penstock_ipsec_sa_replayed_packets_total",
     "Packets of this SA that had been received before, or were too old.",
     "sas",
     "replayed",
     {"spi", "source", "destination"}},
    {"penstock_ipsec_sa_integrity_failures_total",
     "Packets of this SA whose integrity check failed.",
     "sas",
     "integrity",
     {"spi", "source", "destination"}},
};

/// A number at `path` in the details.
struct NumberMetric {
  std::string_view name;
  Type type;
  std::string_view help;
  const char* path;
};

constexpr NumberMetric kNumbers[] = {
    {"penstock_firewall_ipv4_policy_packets_total", Type::counter, "IPv4 packets that no rule matched.",
     "/policy/ipv4/packets"},
    {"penstock_firewall_ipv6_policy_packets_total", Type::counter, "IPv6 packets that no rule matched.",
     "/policy/ipv6/packets"},
    {"penstock_firewall_kernel_rules_in_use", Type::gauge,
     "1: the rules are those that the kernel has now. 0: the kernel has others, which are not in use.",
     "/kernel/in_use"},
    {"penstock_nids_alerts_total", Type::counter, "Alerts of all rules.", "/alerts"},
    {"penstock_nids_rules", Type::gauge, "Rules in use.", "/load/loaded"},
    {"penstock_nids_rules_left_out", Type::gauge, "Rules that could not be loaded.", "/load/left_out"},
    {"penstock_nids_flows_total", Type::counter, "Flows that have begun.", "/stack/flows"},
    {"penstock_nids_flows_evicted_total", Type::counter, "Flows that ended early, to make room for others.",
     "/stack/flows_evicted"},
    {"penstock_nids_frames_over_budget_total", Type::counter,
     "Frames for which some rules were not evaluated, because they exceeded the limit of work.",
     "/inspection/frames_over_budget"},
    {"penstock_router_routes", Type::gauge, "IPv4 routes in use.", "/ipv4/routes"},
    {"penstock_router_ipv6_routes", Type::gauge, "IPv6 routes in use.", "/ipv6/routes"},
    {"penstock_ipsec_fragments_received_total", Type::counter, "Fragments of ESP packets for our SAs.",
     "/fragments/received"},
    {"penstock_ipsec_fragments_dropped_total", Type::counter, "Fragments of ESP packets that were dropped.",
     "/fragments/dropped"},
};

/// The kind of function that a metric is about: "nids" in penstock_nids_alerts_total.
std::string_view kind_of(std::string_view metric) {
  const std::string_view rest = metric.substr(metric.find('_') + 1);
  return rest.substr(0, rest.find('_'));
}

/// The second function of a kind has the name "nids#2".
bool is_of_kind(const FunctionReport& function, std::string_view kind) {
  const std::string_view name = function.name;
  return name.substr(0, name.find('#')) == kind && function.details.is_object();
}

std::optional<std::uint64_t> count_of(const Json& number) {
  if (number.is_boolean()) return number.get<bool>() ? 1 : 0;
  if (!number.is_number_integer() || (!number.is_number_unsigned() && number.get<std::int64_t>() < 0))
    return std::nullopt;
  return number.get<std::uint64_t>();
}

std::string text_of(const Json& entry, std::string_view member) {
  const auto found = entry.find(member);
  if (found == entry.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Those of the list with the most hits, in the list's order.
std::vector<const Json*> chosen_entries(const Json& list, std::string_view hits) {
  std::vector<const Json*> entries;
  for (const Json& entry : list) entries.push_back(&entry);
  if (entries.size() <= kMostSeries) return entries;
  std::vector<const Json*> most = entries;
  std::ranges::nth_element(most, most.begin() + kMostSeries, std::greater{},
                           [&](const Json* entry) { return count_in(*entry, hits).value_or(0); });
  most.resize(kMostSeries);
  std::ranges::sort(most);
  return most;
}

const Json* list_of(const FunctionReport& function, std::string_view name) {
  const auto list = function.details.find(name);
  return list == function.details.end() || !list->is_array() ? nullptr : &*list;
}

void add_list(Exposition& out, const ListMetric& metric, std::span<const FunctionReport> functions) {
  out.family(metric.name, Type::counter, metric.help);
  for (const FunctionReport& function : functions) {
    const Json* const list = is_of_kind(function, kind_of(metric.name)) ? list_of(function, metric.list) : nullptr;
    if (list == nullptr) continue;
    for (const Json* const entry : chosen_entries(*list, metric.value)) {
      const auto value = count_in(*entry, metric.value);
      if (!value) continue;
      const std::string texts[] = {text_of(*entry, metric.labels[0]), text_of(*entry, metric.labels[1]),
                                   text_of(*entry, metric.labels[2])};
      if (metric.labels[2].empty()) {
        out.sample(*value, {{"function", function.name}, {metric.labels[0], texts[0]}, {metric.labels[1], texts[1]}});
      } else {
        out.sample(*value, {{"function", function.name},
                            {metric.labels[0], texts[0]},
                            {metric.labels[1], texts[1]},
                            {metric.labels[2], texts[2]}});
      }
    }
  }
}

void add_number(Exposition& out, const NumberMetric& metric, std::span<const FunctionReport> functions) {
  out.family(metric.name, metric.type, metric.help);
  const Json::json_pointer path(metric.path);
  for (const FunctionReport& function : functions) {
    if (!is_of_kind(function, kind_of(metric.name)) || !function.details.contains(path)) continue;
    if (const auto count = count_of(function.details.at(path))) out.sample(*count, {{"function", function.name}});
  }
}

}  // namespace

std::optional<std::uint64_t> count_in(const Json& object, std::string_view member) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(member);
  return found == object.end() ? std::nullopt : count_of(*found);
}

void add_function_details(Exposition& out, std::span<const FunctionReport> functions) {
  for (const NumberMetric& metric : kNumbers) add_number(out, metric, functions);
  for (const ListMetric& metric : kLists) add_list(out, metric, functions);
  out.family("penstock_function_series_left_out", Type::gauge,
             "Rules or SAs with hits that have no series of their own, because there are too many.");
  for (const FunctionReport& function : functions) {
    for (const std::string_view name : {"rules", "filters", "sas"}) {
      const Json* const list = function.details.is_object() ? list_of(function, name) : nullptr;
      if (list == nullptr) continue;
      out.sample(std::uint64_t{list->size() - std::min(list->size(), kMostSeries)}, {{"function", function.name}});
    }
  }
}

}  // namespace penstock::report
