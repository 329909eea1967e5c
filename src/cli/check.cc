// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/check.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/ctl.h"
#include "config/run_section.h"
#include "control/hand_over.h"
#include "control/kernel/table_follower.h"
#include "port/catalog.h"
#include "process/remote_function.h"
#include "report/error_json.h"

namespace penstock::cli {

namespace {

struct CheckArguments {
  ChainArguments chain;
  bool parameters = false;
  bool json = false;
  bool verbose = false;
  std::string take_over;  // the control socket of a run that this one would continue; "": none
};

using Json = nlohmann::ordered_json;

void print(const Json& json) { fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace)); }

Json to_json(ParameterTable table) {
  Json list = Json::array();
  for (const Parameter& p : table) {
    list.push_back({{"name", p.name},
                    {"type", name(p.type)},
                    {"range", p.range},
                    {"default", p.default_text.empty() ? Json() : Json(p.default_text)},
                    {"required", p.required},
                    {"help", p.help}});
  }
  return list;
}

void print_parameters_json(function::NfKinds functions) {
  Json json{{"functions", Json::array()}, {"ports", Json::array()}};
  const auto add = [&](const char* to, const auto& kind) {
    json[to].push_back({{"name", kind.name}, {"summary", kind.summary}, {"parameters", to_json(kind.parameters)}});
  };
  for (const function::NfKind* kind : functions) add("functions", *kind);
  for (const port::PortKind& kind : port::catalog()) add("ports", kind);
  json["function"] = to_json(function::kCommonParameters);
  json["process"] = to_json(process::remote_parameters());
  json["run"] = to_json(config::run_parameters());
  json["outputs"] = to_json(config::output_parameters(functions));
  print(json);
}

void print_parameters(function::NfKinds functions) {
  fmt::print("Network functions (`chain: [- NAME: {{PARAMETER: VALUE}}]`):\n");
  for (const function::NfKind* kind : functions) {
    fmt::print("\n{}: {}\n{}", kind->name, kind->summary, describe(kind->parameters));
  }
  fmt::print("\nevery function also has:\n{}", describe(function::kCommonParameters));
  fmt::print("\na function in a process of its own has only these:\n{}", describe(process::remote_parameters()));
  fmt::print("\nPorts (`ports: {{NAME: {{KIND: {{PARAMETER: VALUE}}}}}}`):\n");
  for (const port::PortKind& kind : port::catalog()) {
    fmt::print("\n{}: {}\n{}", kind.name, kind.summary, describe(kind.parameters));
  }
  fmt::print("\nrun:\n{}\noutputs:\n{}", describe(config::run_parameters()),
             describe(config::output_parameters(functions)));
}

/// For a function in an arm, which packets reach it: "in_port lan"; "" for others.
std::string arm_text(const run::Chain& chain, std::size_t function) {
  const auto arm = plan::arm_of(chain.forks, function);
  return arm ? chain.forks[arm->fork].arms[arm->arm].text : "";
}

/// What distinguishes the function's place in the chain: " (arm: in_port lan, processor: cpu)"; "" for most.
std::string place_text(const run::Chain& chain, std::size_t function) {
  const std::string arm = arm_text(chain, function);
  const auto processor = chain.functions[function].processor;
  std::string text = arm.empty() ? "" : "arm: " + arm;
  if (processor) text += fmt::format("{}processor: {}", text.empty() ? "" : ", ", name(*processor));
  return text.empty() ? "" : fmt::format(" ({})", text);
}

/// Where packets that arrived on this port leave, if they are still forwarded at the end of the chain.
std::string way_out(const run::Chain& chain, std::size_t port) {
  const auto traits = chain.traits();
  const auto chooses = std::find_if(traits.begin(), traits.end(), [](const auto& t) { return t.chooses_port; });
  const PortIndex to = chain.wiring[port];
  std::string text = to == kNoPort ? "packets are consumed" : "packets leave on " + chain.ports[to].name;
  if (chooses == traits.end()) return text;
  const std::string& name = chain.functions[static_cast<std::size_t>(chooses - traits.begin())].name;
  return to == kNoPort ? fmt::format("{} chooses the port that packets leave on", name)
                       : fmt::format("{} unless {} chooses another port", text, name);
}

void print_loaded(const config::LoadedChain& loaded) {
  const std::vector<run::NamedPort>& ports = loaded.chain.ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const bool reads = ports[i].port->reads();
    const bool writes = ports[i].port->writes();
    fmt::print("port {}: {}{}{}{}\n", ports[i].name, reads ? "reads" : "", reads && writes ? " and " : "",
               writes ? "writes" : "", reads ? "; " + way_out(loaded.chain, i) : "");
  }
  for (std::size_t i = 0; i < loaded.chain.functions.size(); ++i) {
    const run::NamedFunction& f = loaded.chain.functions[i];
    fmt::print("{}{}: {}\n", f.name, place_text(loaded.chain, i), f.function->description());
    const std::string table = f.function->load_table();
    for (const std::string_view line : split(table, '\n')) {
      if (!line.empty()) fmt::print("  {}\n", line);
    }
  }
}

/// "no mistakes" only if the chain does everything that its files say.
std::string summary_of(const config::LoadedChain& loaded) {
  const std::size_t warnings = loaded.without_effect.size() + loaded.cautions.size();
  std::string text = loaded.unsupported.empty() ? "no mistakes"
                                                : fmt::format("incomplete: {} left out",
                                                              format_count(count_of(loaded.unsupported), "construct"));
  if (warnings > 0) text += ", " + format_count(warnings, "warning");
  return text;
}

void print_json(const config::LoadedChain& loaded) {
  Json json{{"errors", Json::array()}, {"ports", Json::array()}, {"functions", Json::array()}};
  const std::vector<run::NamedPort>& ports = loaded.chain.ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const bool reads = ports[i].port->reads();
    const PortIndex to = reads ? loaded.chain.wiring[i] : kNoPort;
    json["ports"].push_back({{"name", ports[i].name},
                             {"reads", reads},
                             {"writes", ports[i].port->writes()},
                             {"wired_to", to == kNoPort ? nullptr : nlohmann::json(ports[to].name)}});
  }
  for (std::size_t i = 0; i < loaded.chain.functions.size(); ++i) {
    const run::NamedFunction& f = loaded.chain.functions[i];
    Json function{{"name", f.name}, {"description", f.function->description()}};
    if (const std::string arm = arm_text(loaded.chain, i); !arm.empty()) function["arm"] = arm;
    if (f.processor) function["processor"] = name(*f.processor);
    Json load = Json::object();
    f.function->load_report(load);
    if (!load.empty()) function["load"] = std::move(load);
    json["functions"].push_back(std::move(function));
  }
  json["unsupported"] = report::to_json(loaded.unsupported);
  json["without_effect"] = report::to_json(loaded.without_effect);
  json["cautions"] = report::to_json(loaded.cautions);
  print(json);
}

int refuse_chain(const Errors& errors, const CheckArguments& arguments) {
  if (!arguments.json) return refuse(errors, arguments.verbose);
  print({{"errors", report::to_json(errors)}});
  return kWrongUsage;
}

int check_chain(const CheckArguments& arguments) {
  if (arguments.parameters) {
    const auto functions = arguments.chain.functions;
    arguments.json ? print_parameters_json(functions) : print_parameters(functions);
    return kDone;
  }
  if (arguments.chain.file.empty()) {
    throw CLI::RequiredError("CHAIN.yaml");  // CLI11 does the same if no other option replaces this one
  }
  auto loaded = arguments.chain.load();
  if (!loaded) return refuse_chain(loaded.error(), arguments);
  append(loaded->cautions, config::port_cautions(loaded->chain));
  append(loaded->cautions, config::busy_outputs(*loaded));
  append(loaded->cautions, control::holding_cautions(loaded->chain));
  print_warnings(*loaded, arguments.verbose);
  if (const Errors errors = config::check_files(*loaded); !errors.empty()) return refuse_chain(errors, arguments);
  if (!arguments.take_over.empty()) {
    const auto process = control::RunningProcess::connect(arguments.take_over, loaded->chain);
    if (!process) {
      static_cast<void>(refuse_chain(process.error().errors, arguments));
      return code_of(process.error());
    }
    if ((*process)->has_died()) {
      static_cast<void>(refuse_chain({{{arguments.take_over, 0, 0},
                                       "the run has ended",
                                       fmt::format("process {}, which is dead", (*process)->pid()),
                                       "a run that goes on"}},
                                     arguments));
      return kFailed;
    }
  }
  if (arguments.json) {
    print_json(*loaded);
  } else {
    print_loaded(*loaded);
    fmt::print("{}: {}\n", printable(arguments.chain.file), summary_of(*loaded));
  }
  print_left_out(loaded->unsupported);
  return kDone;
}

}  // namespace

void add_check(CLI::App& app, function::NfKinds functions, int& exit_code) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand("check", "Check a chain file and the files that it refers to");
  arguments->chain.add_to(*command, functions);
  command->get_option("CHAIN.yaml")->required(false);
  command->add_flag("--parameters", arguments->parameters, "list all ports and functions with their parameters");
  command->add_flag("--json", arguments->json, "print the result as JSON: the mistakes, or what was loaded");
  command->add_flag("-v,--verbose", arguments->verbose,
                    "report every construct that is left out, however many there are");
  command
      ->add_option("--take-over", arguments->take_over,
                   "also check whether `penstock run --take-over` could continue the run at this control socket")
      ->transform(socket_name())
      ->type_name("SOCKET");
  command->callback([arguments, &exit_code] { exit_code = check_chain(*arguments); });
}

}  // namespace penstock::cli
