// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/fixed_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "config/chain_description.h"
#include "config/outputs.h"
#include "config/run_section.h"

namespace penstock::config {

namespace {

using Part = FixedParts::Part;

constexpr std::size_t kShown = 200;  // bytes of a value in messages; paths can be long

class Collector {
 public:
  explicit Collector(const ChainDescription& description) : description_(description) {
    parts_.file = description.place;
  }

  FixedParts collect() && {
    parts_.sections = {{"ports", "", "", description_.ports_place},
                       {"chain", "", "", description_.chain_place},
                       {"wire", "", "", description_.wire_place},
                       {"run", "", "", description_.run_place},
                       {"outputs", "", "", description_.outputs_place}};
    add_section("run", description_.run, run_parameters());
    add_section("outputs", description_.outputs, description_.output_table);
    add_ports();
    add_wires();
    add_chain();
    return std::move(parts_);
  }

 private:
  void add_section(const std::string& name, const std::optional<Parameters>& parameters, ParameterTable table) {
    if (!parameters) return parts_.unknown.push_back(name);
    for (const Parameter& parameter : table) {
      if (!parameters->has(parameter.name)) continue;
      parts_.values.push_back({fmt::format("{}.{}", name, parameter.name), parameters->normal_form(parameter),
                               in_quotes(parameters->shown(parameter.name), kShown),
                               parameters->place(parameter.name)});
    }
  }

  void add_ports() {
    if (!description_.ports_complete) parts_.unknown.emplace_back("ports");
    for (const PortDescription& port : description_.ports) {
      const std::string name = "ports." + port.name;
      if (port.kind == nullptr) {
        parts_.unknown.push_back(name);
        continue;
      }
      const std::string kind(port.kind->name);
      parts_.values.push_back({name, kind, fmt::format("a port of kind {}", kind), port.place});
      add_section(fmt::format("{}.{}", name, kind), port.parameters, port.kind->parameters);
    }
  }

  void add_wires() {
    for (const auto& [from, to] : description_.wires)
      parts_.values.push_back({"wire." + from.text, to.text, in_quotes(to.text), to.place});
  }

  void add_chain() {
    std::size_t next = 0;
    for (const ForkDescription& fork : description_.forks) {
      add_functions(next, fork.first);
      add_fork(fork);
      next = fork.last;
    }
    add_functions(next, description_.functions.size());
  }

  void add_functions(std::size_t first, std::size_t last) {
    for (std::size_t f = first; f < last; ++f) {
      const FunctionDescription& function = description_.functions[f];
      const std::string kind(function.kind == nullptr ? "" : function.kind->name);
      parts_.chain.push_back({"a function", kind, kind, function.place});
      if (!function.parameters) {
        parts_.chain.push_back({"a processor", "", "", function.place});
      } else {
        const std::string form = "processor: " + function.parameters->text("processor") +
                                 (function.in_process ? ", in a process of its own" : "");
        const Place& place = function.parameters->place("processor");
        parts_.chain.push_back(
            {"a processor", form, fmt::format("{} with {}", kind, form), place.file.empty() ? function.place : place});
      }
    }
  }

  void add_fork(const ForkDescription& fork) {
    if (fork.arms.empty()) parts_.chain_known = false;
    parts_.chain.push_back({"a fork", "fork", "a fork", fork.place});
    Place last = fork.place;
    for (const ArmDescription& arm : fork.arms) {
      const std::string condition = condition_of(arm);
      parts_.chain.push_back({"an arm", arm.complete ? "arm " + condition : "", "an arm for " + condition, arm.place});
      add_functions(arm.first, arm.last);
      if (arm.last > arm.first) last = description_.functions[arm.last - 1].place;
    }
    parts_.chain.push_back({"the end of a fork", "end", "the end of the fork", last});
  }

  /// In a normal form: conditions and ports in any order mean the same.
  static std::string condition_of(const ArmDescription& arm) {
    std::set<std::string> conditions;
    for (const ConditionDescription& condition : arm.when) {
      std::vector<std::string> texts;
      const auto add = [&](std::string_view what, const std::optional<ConditionDescription::Ports>& ports) {
        if (!ports) return;
        std::set<std::string_view> names;
        for (const PortName& name : ports->names) names.insert(name.text);
        texts.push_back(fmt::format("{} {}", what, fmt::join(names, "|")));
      };
      add("in_port", condition.in_port);
      add("out_port", condition.out_port);
      conditions.insert(fmt::format("{}", fmt::join(texts, " and ")));
    }
    return conditions.empty() ? "all remaining packets" : fmt::format("{}", fmt::join(conditions, " or "));
  }

  const ChainDescription& description_;
  FixedParts parts_;
};

bool contains(std::string_view section, std::string_view name) {
  return name == section || (name.starts_with(section) && name.size() > section.size() && name[section.size()] == '.');
}

class Comparison {
 public:
  Comparison(const FixedParts& running, const FixedParts& next) : running_(running), next_(next) {}

  Errors compare() && {
    std::map<std::string_view, const Part*> there;
    for (const Part& part : running_.values) there.emplace(part.name, &part);
    skipped_.insert(next_.unknown.begin(), next_.unknown.end());
    for (const Part& part : next_.values) {
      const auto same = there.find(part.name);
      const Part* const before = same == there.end() ? nullptr : same->second;
      if (before != nullptr) there.erase(same);
      if (before != nullptr && before->form == part.form) continue;
      differs(part.name, part.place, part.shown, before == nullptr ? "nothing" : before->shown);
    }
    for (const Part& part : running_.values) {
      if (there.contains(part.name)) differs(part.name, place_of_missing(part.name), "nothing", part.shown);
    }
    compare_chains();
    return std::move(errors_);
  }

 private:
  void differs(std::string_view name, const Place& place, std::string found, std::string expected) {
    for (const std::string& section : skipped_) {
      if (contains(section, name)) return;
    }
    // If there is another port, its parameters differ too.
    skipped_.emplace(name);
    errors_.push_back({place, fmt::format("{} cannot change in a reload: it needs a new run", name), std::move(found),
                       std::move(expected)});
  }

  [[nodiscard]] Place place_of_missing(std::string_view name) const {
    // The nearest section that is there.
    for (const Part& part : next_.values) {
      if (name != part.name && contains(part.name, name)) return part.place;
    }
    for (const Part& section : next_.sections) {
      if (contains(section.name, name)) return section.place.file.empty() ? next_.file : section.place;
    }
    return next_.file;
  }

  void compare_chains() {
    if (!next_.chain_known) return;
    const std::size_t both = std::min(running_.chain.size(), next_.chain.size());
    const auto chain_differs = [&](const Place& place, std::string found, std::string expected) {
      errors_.push_back({place,
                         "the functions of the chain, their order, processors and forks cannot change in a reload: it "
                         "needs a new run",
                         std::move(found), std::move(expected)});
    };
    for (std::size_t i = 0; i < both; ++i) {
      const Part& part = next_.chain[i];
      if (part.form.empty() || part.form == running_.chain[i].form) continue;
      // What follows may only be moved.
      return chain_differs(part.place, part.shown, running_.chain[i].shown);
    }
    if (next_.chain.size() > both) {
      if (next_.chain[both].form.empty()) return;  // a mistake, which is reported
      chain_differs(next_.chain[both].place, next_.chain[both].shown, "the end of the chain");
    } else if (running_.chain.size() > both) {
      chain_differs(next_.chain.empty() ? place_of_missing("chain") : next_.chain.back().place, "the end of the chain",
                    running_.chain[both].shown);
    }
  }

  const FixedParts& running_;
  const FixedParts& next_;
  std::set<std::string> skipped_;
  Errors errors_;
};

}  // namespace

FixedParts fixed_parts(const ChainDescription& description) { return Collector(description).collect(); }

Errors check_unchanged(const FixedParts& running, const FixedParts& next) {
  return Comparison(running, next).compare();
}

}  // namespace penstock::config
