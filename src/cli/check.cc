// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/check.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/chain_arguments.h"
#include "nf/catalog.h"
#include "port/catalog.h"

namespace penstock::cli {

namespace {

struct CheckArguments {
  ChainArguments chain;
  bool parameters = false;
  bool json = false;
};

void print_parameters() {
  fmt::print("Network functions (`chain: [- NAME: {{PARAMETER: VALUE}}]`):\n");
  for (const chain::NfKind* kind : nf::catalog()) {
    fmt::print("\n{}: {}\n{}", kind->name, kind->summary, describe(kind->parameters));
  }
  fmt::print("\nPorts (`ports: {{NAME: {{KIND: {{PARAMETER: VALUE}}}}}}`):\n");
  for (const port::PortKind& kind : port::catalog()) {
    fmt::print("\n{}: {}\n{}", kind.name, kind.summary, describe(kind.parameters));
  }
  fmt::print("\nrun:\n{}\noutputs:\n{}", describe(config::run_parameters()), describe(config::output_parameters()));
}

void print_loaded(const config::LoadedChain& loaded) {
  for (const chain::NamedPort& p : loaded.chain.ports) {
    fmt::print("port {}: {}{}{}\n", p.name, p.port->reads() ? "reads" : "",
               p.port->reads() && p.port->writes() ? " and " : "", p.port->writes() ? "writes" : "");
  }
  for (const chain::NamedFunction& f : loaded.chain.functions)
    fmt::print("{}: {}\n", f.name, f.function->description());
}

void print_json(const config::LoadedChain& loaded) {
  nlohmann::ordered_json json{{"ports", nlohmann::json::array()},
                              {"functions", nlohmann::json::array()},
                              {"left_out", nlohmann::json::array()}};
  for (const chain::NamedPort& p : loaded.chain.ports) {
    json["ports"].push_back({{"name", p.name}, {"reads", p.port->reads()}, {"writes", p.port->writes()}});
  }
  for (const chain::NamedFunction& f : loaded.chain.functions) {
    json["functions"].push_back({{"name", f.name}, {"description", f.function->description()}});
  }
  for (const Error& error : loaded.unsupported) json["left_out"].push_back(to_string(error));
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int check_chain(const CheckArguments& arguments) {
  if (arguments.parameters) {
    print_parameters();
    return kDone;
  }
  if (arguments.chain.file.empty()) {
    fmt::print(stderr, "CHAIN.yaml is required\nRun with --help for more information.\n");
    return kWrongUsage;
  }
  const auto loaded = arguments.chain.load();
  if (!loaded) return kWrongUsage;
  print_unsupported(loaded->unsupported);
  if (arguments.json) {
    print_json(*loaded);
  } else {
    print_loaded(*loaded);
    fmt::print("{}: no mistakes\n", arguments.chain.file);
  }
  return kDone;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand("check", "Validate a chain file and all it names");
  arguments->chain.add_to(*command);
  command->get_option("CHAIN.yaml")->required(false);
  command->add_flag("--parameters", arguments->parameters, "list all ports and functions with their parameters");
  command->add_flag("--json", arguments->json, "print what was loaded as JSON");
  command->callback([arguments, &exit_code] { exit_code = check_chain(*arguments); });
}

}  // namespace penstock::cli
