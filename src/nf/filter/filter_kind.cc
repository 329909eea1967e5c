// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `filter`, and how it is built from them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/text_file.h"
#include "gpu/nvrtc.h"
#include "nf/filter/bpf/read_program.h"
#include "nf/filter/filter.h"

namespace penstock::filter {

namespace {

constexpr std::string_view kMatchHelp =
    "what happens to packets that match: forward, drop, or {to: PORT}; the default is forward";

constexpr auto kEntry = std::to_array<Parameter>({
    {"name", ParameterType::text, "", "", "name in reports: letters, digits, '_', '-' and '.'", true},
    {"expression", ParameterType::text, "", "", "libpcap expression (pcap-filter(7))"},
    {"program", ParameterType::path, "", "", "instead of an expression: output of `tcpdump -ddd`"},
    {"match", ParameterType::pairs, "", "forward|drop", kMatchHelp},
});
constexpr ParameterTable kEntryTable{kEntry};

// In the order of LinkType, with libpcap's names.
constexpr std::string_view kLinkTypeNames = "EN10MB|RAW|NULL|LOOP|LINUX_SLL|LINUX_SLL2|PPP|C_HDLC";

constexpr auto kParameters = std::to_array<Parameter>({
    {"expression", ParameterType::text, "", "", "libpcap expression (pcap-filter(7)), such as \"tcp port 80\""},
    {"program", ParameterType::path, "", "", "instead of an expression: output of `tcpdump -ddd`"},
    {"match", ParameterType::pairs, "", "forward|drop", kMatchHelp},
    {"filters", ParameterType::entries, "", "",
     "instead of one expression or program: several filters. Each counts what it matches; the first that matches "
     "decides",
     false, &kEntryTable},
    {"otherwise", ParameterType::choice, "", "forward|drop",
     "what happens to packets that no filter matches; default: drop if a filter forwards, else forward"},
    {"sees", ParameterType::choice, "frame", "frame|headers",
     "headers: filters see a packet as if it had been captured up to its payload, so that a GPU needs no more"},
    {"link_type", ParameterType::choice, "EN10MB", kLinkTypeNames,
     "link type that programs are for; frames of other types are dropped"},
    {"engine", ParameterType::choice, "auto", "auto|interpreter|libpcap|jit",
     "how filters run on the CPU; auto: jit if this build has it, else interpreter"},
    {"gpu_engine", ParameterType::choice, "auto", "auto|interpreter|generated",
     "how filters run on a GPU; auto: generated on H100 and H200 if NVRTC is installed, else interpreter"},
    {"most_filters", ParameterType::integer, "", "1..1024",
     "number of filters up to which a reload on a GPU may grow; default: the number of filters, rounded up to a "
     "multiple of 32"},
});

std::optional<Action> read_action(const Parameters& parameters, const function::NfContext& context, std::string& text,
                                  Errors& errors) {
  text = "forward";
  if (!parameters.has("match")) return Action{};
  const std::vector<std::string>& given = parameters.texts("match");
  if (given.size() == 1 && given.front().find('=') == std::string::npos) {
    text = given.front();
    return Action{text == "drop" ? Action::Kind::drop : Action::Kind::pass, kNoPort};
  }
  const std::string_view pair = given.empty() ? std::string_view() : given.front();
  if (given.size() != 1 || !pair.starts_with("to=")) {
    errors.push_back({parameters.place("match"), "match: wrong value",
                      given.empty() ? "an empty mapping" : in_quotes(pair.substr(0, pair.find('='))),
                      "forward, drop or {to: PORT}"});
    return std::nullopt;
  }
  const std::string_view port = pair.substr(3);
  const auto found = std::ranges::find(context.ports, port);
  const auto index = static_cast<std::size_t>(found - context.ports.begin());
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < context.ports.size(); ++i) {
    if (i >= context.ports_write.size() || context.ports_write[i]) known.push_back(context.ports[i]);
  }
  if (found == context.ports.end()) {
    errors.push_back(
        {parameters.place("match", 0), "match: unknown port", in_quotes(port), expected_name(port, known)});
    return std::nullopt;
  }
  if (index < context.ports_write.size() && !context.ports_write[index]) {
    errors.push_back({parameters.place("match", 0), "match: the port does not write", in_quotes(port),
                      known.empty() ? "a port that writes" : expected_name(port, known)});
    return std::nullopt;
  }
  text = fmt::format("to: {}", port);
  return Action{Action::Kind::to, static_cast<PortIndex>(index)};
}

LinkType link_type_of(std::string_view name) {
  const auto names = split(kLinkTypeNames, '|');
  return static_cast<LinkType>(std::ranges::find(names, name) - names.begin());
}

/// Reads one filter, from the function's parameters or from an entry of `filters`, which lies at `place`.
std::optional<NamedFilter> read_filter(const Parameters& parameters, const Place& place, LinkType link_type,
                                       function::NfContext& context, Errors& errors) {
  NamedFilter filter;
  const auto action = read_action(parameters, context, filter.action_text, errors);
  const bool expression = parameters.has("expression");
  const bool program = parameters.has("program");
  if (expression == program) {
    errors.push_back({expression ? parameters.place("program") : place,
                      expression ? "a filter has an expression and a program" : "a filter has no expression", "",
                      "either `expression` or `program`"});
    return std::nullopt;
  }
  if (expression) {
    filter.text = parameters.text("expression");
    if (Result<void> compiled = compile_for_all(filter, parameters.place("expression")); !compiled) {
      append(errors, std::move(compiled.error()));
      return std::nullopt;
    }
    if (!filter.programs[static_cast<std::size_t>(LinkType::ethernet)]) {
      context.cautions.push_back(
          {parameters.place("expression"),
           "the expression cannot be compiled for Ethernet: Ethernet frames are dropped (link_type)",
           in_quotes(filter.text), "an expression for the link type of the ports"});
    }
  } else {
    filter.text = parameters.text("program");
    filter.is_expression = false;
    const Result<std::string> text = read_lines(filter.text);
    if (!text) {
      append(errors, text.error());
      return std::nullopt;
    }
    Result<Program> read = read_program(*text, input_name(filter.text), dlt_of(link_type));
    if (!read) {
      append(errors, std::move(read.error()));
      return std::nullopt;
    }
    filter.programs[static_cast<std::size_t>(link_type)] = std::move(*read);
  }
  if (!action) return std::nullopt;
  filter.action = *action;
  return filter;
}

bool good_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return name.size() <= 64 && std::ranges::all_of(name, good);
}

void read_entries(const Parameters& parameters, LinkType link_type, function::NfContext& context, FilterList& list,
                  Errors& errors) {
  for (const std::string_view other : {"expression", "program", "match"}) {
    if (!parameters.has(other)) continue;
    errors.push_back({parameters.place(other), fmt::format("`{}` cannot be combined with `filters`", other), "",
                      "each filter's own, in the list"});
  }
  const std::vector<Parameters>& entries = parameters.entries("filters");
  if (entries.size() > kMostFilters) {
    errors.push_back({parameters.place("filters"), "too many filters", std::to_string(entries.size()),
                      fmt::format("at most {}", kMostFilters)});
    return;
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].text("name");
    if (!good_name(name)) {
      errors.push_back({entries[i].place("name"), "wrong name of a filter", in_quotes(name),
                        "at most 64 letters, digits, '_', '-' and '.'"});
    } else if (!names.insert(name).second) {
      errors.push_back({entries[i].place("name"), "two filters have the same name", in_quotes(name), "another name"});
    }
    auto filter = read_filter(entries[i], entries[i].place("name"), link_type, context, errors);
    if (!filter) continue;
    filter->name = name;
    list.filters.push_back(std::move(*filter));
  }
}

Action read_otherwise(const Parameters& parameters, const FilterList& list) {
  const bool forwards = std::ranges::any_of(
      list.filters, [](const NamedFilter& filter) { return filter.action.kind == Action::Kind::pass; });
  const bool drops = parameters.has("otherwise") ? parameters.text("otherwise") == "drop" : forwards;
  return {drops ? Action::Kind::drop : Action::Kind::pass, kNoPort};
}

Engine engine_for(const std::string& name) {
  if (name != "auto") return engine_of(name);
  return has_engine(Engine::jit) ? Engine::jit : Engine::interpreter;
}

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters, function::NfContext& context) {
  FilterList list;
  Errors errors;
  list.headers_only = parameters.text("sees") == "headers";
  const LinkType link_type = link_type_of(parameters.text("link_type"));
  if (parameters.has("filters")) {
    read_entries(parameters, link_type, context, list, errors);
  } else if (!parameters.has("expression") && !parameters.has("program")) {
    errors.push_back({{}, "filter: nothing to filter by", "", "`expression`, `program` or `filters`"});
  } else {
    const Place& place = parameters.place(parameters.has("expression") ? "expression" : "program");
    if (auto filter = read_filter(parameters, place, link_type, context, errors)) {
      filter->name = "filter";
      list.filters.push_back(std::move(*filter));
    }
  }
  if (const gpu::NvrtcStatus nvrtc = gpu::nvrtc_status();
      parameters.text("gpu_engine") == "generated" && !nvrtc.available) {
    errors.push_back({parameters.place("gpu_engine"), "code cannot be generated: " + nvrtc.reason, "", "interpreter"});
  }
  if (!errors.empty()) return failure(std::move(errors));

  list.otherwise = read_otherwise(parameters, list);
  FilterOptions options;
  options.engine = engine_for(parameters.text("engine"));
  options.gpu_engine = gpu_engine_of(parameters.text("gpu_engine"));
  std::size_t most = parameters.has("most_filters") ? parameters.integer("most_filters") : list.filters.size();
  if (most < list.filters.size()) {
    return failure({parameters.place("most_filters"), "fewer filters are allowed than there are", std::to_string(most),
                    fmt::format("at least {}", list.filters.size())});
  }
  options.most_filters = (most + 31) / 32 * 32;
  return Filter::build(std::move(list), options).map([](std::unique_ptr<Filter> filter) {
    return std::unique_ptr<function::NetworkFunction>(std::move(filter));
  });
}

}  // namespace

const function::NfKind& filter_kind() {
  static constexpr function::NfKind kKind{
      "filter", "filters packets by BPF programs; the first filter that matches decides", kParameters, &make};
  return kKind;
}

}  // namespace penstock::filter
