// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/chain_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <set>
#include <span>
#include <string_view>

#include "base/units.h"
#include "config/fork_reader.h"
#include "config/outputs.h"
#include "nf/catalog.h"
#include "process/remote_function.h"

namespace penstock::config {

namespace {

// Each port has queues for every worker.
constexpr std::size_t kMostPorts = 1024;
constexpr std::size_t kMostFunctions = 255;

bool good_port_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '@' || c == ':';
  });
}

template <typename Kinds, typename NameOf>
std::string expected_kind(std::string_view name, const Kinds& kinds, NameOf name_of) {
  std::vector<std::string_view> names;
  names.reserve(kinds.size());
  for (const auto& kind : kinds) names.push_back(name_of(kind));
  return expected_name(name, names);
}

/// Continues after mistakes, to report all of them.
class Reader {
 public:
  Reader(const YamlFile& file, function::NfKinds functions) : file_(file), functions_(functions) {
    chain_.place = {file.path(), 0, 0};
    chain_.files.push_back({file.path(), chain_.place, false});
  }

  ChainDescription read(ParameterTable run_table) {
    check_top_level(kSections, {"ports", "chain"});
    const YAML::Node run = root()["run"];
    chain_.run_place = file_.place(run);
    const std::size_t mistakes = chain_.errors.size();
    chain_.run_given = file_.parameters(run, run_table, chain_.errors);
    chain_.run = check_parameters(run_table, chain_.run_given, run, mistakes);
    read_outputs();
    read_ports();
    read_functions();
    read_wiring();
    return std::move(chain_);
  }

  ChainDescription read_functions_only() {
    static constexpr std::array<std::string_view, 2> kOfFunctions{"chain", "outputs"};
    check_top_level(kOfFunctions, {"chain"});
    read_outputs();
    read_functions();
    return std::move(chain_);
  }

 private:
  const YAML::Node& root() const { return file_.root(); }
  void mistake(const YAML::Node& node, std::string message, std::string found = "", std::string expected = "") {
    chain_.errors.push_back({file_.place(node), std::move(message), std::move(found), std::move(expected)});
  }

  static constexpr std::array<std::string_view, 5> kSections{"ports", "chain", "wire", "run", "outputs"};

  void check_top_level(std::span<const std::string_view> known, std::initializer_list<const char*> required) {
    std::set<std::string> seen;
    for (const auto& member : root()) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::ranges::find(known, key) == known.end()) {
        mistake(member.first, "unknown section", shape_of(member.first), expected_name(key, known));
      } else if (!seen.insert(key).second) {
        mistake(member.first, key + ": given twice");
      }
    }
    for (const char* key : required) {
      if (!seen.contains(key)) mistake(root(), fmt::format("`{}` is missing", key));
    }
  }

  /// Empty if there are mistakes.
  std::optional<Parameters> read_parameters(ParameterTable table, const YAML::Node& node, const YAML::Node& owner) {
    const std::size_t mistakes = chain_.errors.size();
    return check_parameters(table, file_.parameters(node, table, chain_.errors), owner, mistakes);
  }

  /// Like `read_parameters`, for a mapping that was already read. `mistakes` is the number of errors before that.
  std::optional<Parameters> check_parameters(ParameterTable table, const std::vector<RawParameter>& raw,
                                             const YAML::Node& owner, std::size_t mistakes) {
    auto parameters = Parameters::read(table, raw, file_.place(owner));
    if (!parameters) append(chain_.errors, std::move(parameters.error()));
    if (chain_.errors.size() > mistakes) return std::nullopt;
    chain_.files.insert(chain_.files.end(), parameters->files().begin(), parameters->files().end());
    return std::move(*parameters);
  }

  void read_outputs() {
    const YAML::Node outputs = root()["outputs"];
    chain_.outputs_place = file_.place(outputs);
    chain_.output_table = output_parameters(functions_);
    chain_.outputs = read_parameters(chain_.output_table, outputs, outputs);
  }

  void read_ports() {
    const YAML::Node node = root()["ports"];
    if (!node.IsDefined()) return;
    chain_.ports_place = file_.place(node);
    if (!node.IsMap() || node.size() == 0)
      return mistake(node, "ports: wrong value", node.IsMap() ? "an empty mapping" : shape_of(node),
                     "a mapping of names to ports, such as {lan: {pcap: {read: traffic.pcap}}}");
    if (node.size() > kMostPorts) {
      return mistake(node, "ports: too many", fmt::format("{} ports", format_count(node.size())),
                     fmt::format("{} or fewer", format_count(kMostPorts)));
    }
    chain_.ports_complete = true;
    for (const auto& member : node) {
      const std::string name = member.first.IsScalar() ? member.first.Scalar() : "";
      if (!good_port_name(name)) {
        chain_.ports_complete = false;
        mistake(member.first, "wrong port name", shape_of(member.first),
                member.first.IsNull() ? "a name; 'null' must be quoted"
                                      : "1 to 64 letters, digits, '_', '-', '.', ':' and '@'");
        continue;
      }
      if (std::ranges::find(chain_.ports, name, &PortDescription::name) != chain_.ports.end()) {
        mistake(member.first, fmt::format("port {}: given twice", name));
        continue;
      }
      PortDescription& port = chain_.ports.emplace_back(PortDescription{name, file_.place(member.first)});
      read_port(port, member.first, member.second);
    }
  }

  void read_port(PortDescription& port, const YAML::Node& key, const YAML::Node& value) {
    std::string kind_name;
    YAML::Node parameters;
    YAML::Node kind_node = value;
    if (value.IsScalar()) {
      kind_name = value.Scalar();
    } else if (value.IsMap() && value.size() == 1 &&
               (value.begin()->first.IsScalar() || value.begin()->first.IsNull())) {
      // `null` is also YAML's null value, even as a key.
      kind_name = value.begin()->first.IsNull() ? "null" : value.begin()->first.Scalar();
      // `=` would change the document.
      kind_node.reset(value.begin()->first);
      parameters.reset(value.begin()->second);
    } else {
      constexpr const char* kExpected =
          "one kind of port with its parameters, such as {pcap: {read: traffic.pcap}} or {null: {}}";
      if (value.IsMap() && value.size() > 1) {
        const YAML::Node second = std::next(value.begin())->first;
        mistake(second, fmt::format("port {}: more than one kind", port.name), shape_of(second), kExpected);
      } else {
        const bool stands = value.IsDefined() && (!value.IsNull() || file_.is_override(value));
        mistake(stands ? value : key, fmt::format("port {}: wrong value", port.name),
                value.IsMap() ? "an empty mapping" : shape_of(value), kExpected);
      }
      return;
    }
    port.kind = port::find_kind(kind_name);
    if (port.kind == nullptr) {
      return mistake(kind_node, fmt::format("port {}: unknown kind", port.name), in_quotes(kind_name),
                     expected_kind(kind_name, port::catalog(), [](const auto& k) { return k.name; }));
    }
    port.parameters = read_parameters(port.kind->parameters, parameters, key);
  }

  void read_functions() {
    const YAML::Node node = root()["chain"];
    if (!node.IsDefined()) return;
    chain_.chain_place = file_.place(node);
    const std::size_t mistakes = chain_.errors.size();
    if (!node.IsSequence()) {
      mistake(node, "chain: wrong value", shape_of(node), "a list of network functions, in order");
    } else if (const std::size_t count = count_functions(node); count > kMostFunctions) {
      mistake(node, "chain: too long", fmt::format("{} functions", count), fmt::format("{} or fewer", kMostFunctions));
    } else {
      for (const auto& item : node) {
        if (is_fork(item)) {
          read_fork(file_, item, chain_, [&](const YAML::Node& function) { read_function(function); });
        } else {
          read_function(item);
        }
      }
    }
    chain_.functions_complete = chain_.errors.size() == mistakes;
  }

  void read_function(const YAML::Node& item) {
    FunctionDescription& function = chain_.functions.emplace_back();
    function.place = file_.place(item);
    std::string name;
    YAML::Node parameters;
    if (item.IsScalar()) {
      name = item.Scalar();
    } else if (item.IsMap() && item.size() == 1 && item.begin()->first.IsScalar()) {
      name = item.begin()->first.Scalar();
      parameters.reset(item.begin()->second);
    } else {
      constexpr const char* kExpected =
          "a network function with its parameters, such as {firewall: {rules: rules.txt}}";
      if (item.IsMap() && item.size() > 1) {
        const YAML::Node second = std::next(item.begin())->first;
        mistake(second, "chain: two functions in one list item", shape_of(second), kExpected);
      } else {
        mistake(item, "chain: wrong function", item.IsMap() ? "an empty mapping" : shape_of(item), kExpected);
      }
      return;
    }
    function.kind = nf::find_kind(name, functions_);
    if (function.kind == nullptr) {
      return mistake(item, "unknown network function", in_quotes(name),
                     expected_kind(name, functions_, [](const auto* k) { return k->name; }));
    }
    function.in_process = parameters.IsMap() && parameters["process"].IsDefined();
    const ParameterTable own = function.in_process ? process::remote_parameters() : function.kind->parameters;
    std::vector<Parameter> table(own.begin(), own.end());
    table.insert(table.end(), function::kCommonParameters.begin(), function::kCommonParameters.end());
    function.parameters = read_parameters(table, parameters, item);
  }

  void read_wiring() {
    const YAML::Node node = root()["wire"];
    chain_.wire_place = file_.place(node);
    chain_.has_wire = node.IsDefined() && !node.IsNull();
    if (!chain_.has_wire) return;
    if (!node.IsMap())
      return mistake(node, "wire: wrong value", shape_of(node), "a mapping of ports that read to ports that write");
    // An empty mapping would remove the default wiring and silently consume every packet.
    if (node.size() == 0)
      return mistake(node, "wire: wrong value", "an empty mapping",
                     "a mapping such as {lan: wan}, or no `wire` at all");
    for (const auto& member : node)
      chain_.wires.emplace_back(read_port_name(file_, member.first), read_port_name(file_, member.second));
  }

  const YamlFile& file_;
  const function::NfKinds functions_;
  ChainDescription chain_;
};

}  // namespace

PortName read_port_name(const YamlFile& file, const YAML::Node& node) {
  return {node.IsScalar() ? node.Scalar() : "", shape_of(node), file.place(node)};
}

ChainDescription describe_chain(const YamlFile& file, ParameterTable run_table, function::NfKinds functions) {
  return Reader(file, functions).read(run_table);
}

ChainDescription describe_functions(const YamlFile& file, function::NfKinds functions) {
  return Reader(file, functions).read_functions_only();
}

}  // namespace penstock::config
