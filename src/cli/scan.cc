// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/scan.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "chain/run.h"
#include "cli/chain_arguments.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "config/chain_file.h"
#include "report/text_table.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;

struct ScanArguments {
  std::vector<std::string> captures, rules, sets;
  std::vector<config::Override> options;  // of the options that are one value each
  bool payload = false, packet = false;
  bool json = false, strict = false, verbose = false, quiet = false;
};

/// As YAML, in which JSON is.
std::string yaml(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

config::Override of_nids(std::string_view parameter, const Json& value, std::string_view option) {
  return {fmt::format("chain.nids.{}", parameter), yaml(value), std::string(option)};
}

/// Every option's value at its place in the chain, so that mistakes are told by the option.
Result<std::vector<config::Override>> overrides_of(const ScanArguments& arguments) {
  std::vector<config::Override> overrides{{"ports.captures.pcap.read", yaml(arguments.captures), "CAPTURE"},
                                          of_nids("rules", arguments.rules, "-S")};
  if (arguments.payload) overrides.push_back(of_nids("payload", "true", "--payload"));
  if (arguments.packet) overrides.push_back(of_nids("packet", "true", "--packet"));
  Errors errors;
  for (const std::string& text : arguments.sets) {
    auto parsed = config::parse_override(text);
    if (!parsed) {
      append(errors, std::move(parsed.error()));
      continue;
    }
    // The value as it is: to YAML, `!$HOME_NET` were a tag.
    overrides.push_back(of_nids(parsed->path, parsed->value, parsed->text));
  }
  if (!errors.empty()) return failure(std::move(errors));
  overrides.insert(overrides.end(), arguments.options.begin(), arguments.options.end());
  return overrides;
}

Result<config::LoadedChain> load(const ScanArguments& arguments) {
  auto overrides = overrides_of(arguments);
  if (!overrides) return failure(std::move(overrides).error());
  config::LoadOptions options;
  options.overrides = std::move(*overrides);
  options.strict = arguments.strict;
  return config::load_chain_text(R"({"ports": {"captures": {"pcap": {}}}, "chain": [{"nids": {}}]})", "scan", options);
}

Json summary_of(const ScanArguments& arguments, const Json& report, const Errors& errors) {
  const Json& details = report["functions"][0]["details"];
  Json summary;
  summary["captures"] = arguments.captures;
  summary["packets"] = report["packets"]["in"];
  summary["bytes"] = report["bytes"]["in"];
  if (report["packets"]["dropped"] != 0) summary["dropped"] = report["packets"]["dropped"];
  summary["flows"] = details["stack"]["flows"];
  summary["alerts"] = 0;
  for (const Json& rule : details["rules"])
    summary["alerts"] = summary["alerts"].get<std::uint64_t>() + rule["alerts"].get<std::uint64_t>();
  summary["processor"] = report["processor"];
  summary["workers"] = report["workers"];
  summary["elapsed_s"] = report["elapsed_s"];
  summary["rate"] = report["rate"];
  for (const char* part : {"rules", "load", "inspection", "stack"}) summary[part] = details[part];
  if (details.contains("warnings")) summary["warnings"] = details["warnings"];
  summary["errors"] = Json::array();
  for (const Error& error : errors) summary["errors"].push_back(to_string(error));
  return summary;
}

std::string plural(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", format_count(count), thing, count == 1 ? "" : "s");
}

std::string tables(const Json& summary, const std::string& load_table) {
  constexpr std::size_t kTop = 20;
  const auto number = [](const Json& value) { return value.get<std::uint64_t>(); };
  const Json& rules = summary["rules"];
  std::string text = fmt::format(
      "{}, {} in {}; {:.3f} s, {}bit/s, {}pps by {} on the {}\n", plural(number(summary["packets"]), "packet"),
      format_size(number(summary["bytes"])), plural(number(summary["flows"]), "flow"),
      summary["elapsed_s"].get<double>(), format_si(summary["rate"]["bits_per_s"].get<double>()),
      format_si(summary["rate"]["packets_per_s"].get<double>()), plural(number(summary["workers"]), "worker"),
      summary["processor"] == "gpu" ? "GPU" : "CPU");
  if (summary.contains("dropped")) text += fmt::format("{} dropped\n", plural(number(summary["dropped"]), "packet"));
  text += fmt::format("{} of {}\n", plural(number(summary["alerts"]), "alert"), plural(rules.size(), "rule"));
  if (summary.contains("warnings")) {
    for (const Json& warning : summary["warnings"]) text += fmt::format("warning: {}\n", warning.get<std::string>());
  }
  if (!rules.empty()) {
    report::TextTable table({">alerts", ">gid", ">sid", ">rev", "rule"});
    for (std::size_t i = 0; i < std::min(kTop, rules.size()); ++i) {
      const Json& rule = rules[i];
      table.add_row({format_count(number(rule["alerts"])), std::to_string(number(rule["gid"])),
                     std::to_string(number(rule["sid"])), std::to_string(number(rule["rev"])),
                     printable(rule["message"].get<std::string>())});
    }
    text += '\n' + table.text();
    if (rules.size() > kTop)
      text += fmt::format("… and {}; --json has all\n", plural(rules.size() - kTop, "more rule"));
  }
  return text + '\n' + load_table;
}

int scan(const ScanArguments& arguments) {
  auto loaded = load(arguments);
  if (!loaded) return refuse(loaded.error(), arguments.verbose);
  print_warnings(*loaded, arguments.verbose);
  if (arguments.json && loaded->writes_stdout) {
    fmt::print(stderr, "--json: the standard output is taken by the alerts; -o and --fast write to files\n");
    return kWrongUsage;
  }
  if (const Errors errors = config::check_files(*loaded); !errors.empty()) return refuse(errors);
  const chain::NetworkFunction& nids = *loaded->chain.functions.front().function;
  Json load;
  nids.load_report(load);
  if (load["loaded"] == 0) fmt::print(stderr, "warning: no rule could be loaded: nothing is looked for\n");

  const std::atomic<bool>& signalled = stop_on_signals();
  std::atomic<bool> stop{false};
  const bool progress = shows_progress() && !arguments.quiet;
  chain::RunOptions options;
  options.on_progress = [&](const chain::Progress& now) {
    // Alerts that reach nobody are of no use: `| head` has seen enough.
    const auto failed = [](const auto& log) { return log->failed(); };
    stop.store(signalled.load() || std::ranges::any_of(loaded->chain.logs, failed));
    if (progress) print_progress(now);
  };
  auto result = chain::run(loaded->chain, options, stop);
  nothing_left_to_stop();
  if (progress) end_progress();
  if (!result) return refuse(placed(std::move(result.error()), loaded->files));  // nothing has run

  const Json summary = summary_of(arguments, result->report, result->errors);
  std::string text;
  if (arguments.json) {
    text = summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } else if (!arguments.quiet) {
    text = tables(summary, nids.load_table());
  }
  const int code = print_results(text, !arguments.json && loaded->writes_stdout, std::move(result->errors));
  print_left_out(loaded->unsupported);
  return code;
}

}  // namespace

void add_scan(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ScanArguments>();
  CLI::App* command = app.add_subcommand("scan", "Find in captures what intrusion detection rules describe");
  command->add_option("CAPTURE", arguments->captures, "pcap or pcapng, also gzip or zstd; - is standard input")
      ->required();
  command->add_option("-S,--rules", arguments->rules, "Suricata's or Snort 2.9's rules, files of them")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->take_all();
  const auto add_value = [&](const char* names, const char* path, const char* help) {
    const std::string option = std::string(names).substr(0, std::string_view(names).find(','));
    return command->add_option_function<std::string>(
        names,
        [arguments, option, path](const std::string& value) {
          arguments->options.push_back({path, value == "-" ? value : yaml(value), option});
        },
        help);
  };
  add_value("-o,--eve", "outputs.eve", "write alerts there in EVE JSON, a line each; - is standard output")
      ->type_name("FILE");
  add_value("--fast", "outputs.fast_log", "write alerts there as Suricata's fast.log; - is standard output")
      ->type_name("FILE");
  command->add_flag_callback(
      "--no-append",
      [arguments] {
        arguments->options.push_back({"outputs.append", "false", "--no-append"});
      },
      "begin the files of -o and --fast anew; without it, alerts are appended to them");
  add_value("--classification", "chain.nids.classification", "classification.config")->type_name("FILE");
  add_value("--reference", "chain.nids.reference", "reference.config")->type_name("FILE");
  add_value("--threshold", "chain.nids.threshold", "threshold.config")->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "-k",
          [arguments](const std::string& value) {
            arguments->options.push_back({"chain.nids.checksums", value == "none" ? "ignore" : "verify", "-k"});
          },
          "all: packets with wrong checksums are not followed (the default); none: they are, as captures\n"
          "taken at the sender need it")
      ->check(CLI::IsMember({"all", "none"}))
      ->type_name("all|none");
  add_value("--workers", "run.workers", "number of worker threads")->type_name("N");
  add_value("--processor", "run.processor", "auto, cpu or gpu");
  command
      ->add_option("--set", arguments->sets,
                   "a variable of the rules, --set vars.HOME_NET=10.0.0.0/8, or another parameter of nids,\n"
                   "--set stream_policy=linux")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--payload", arguments->payload, "EVE alerts hold the payload, in base64 and printable");
  command->add_flag("--packet", arguments->packet, "EVE alerts hold the packet, in base64");
  command->add_flag("--strict", arguments->strict, "fail if any rule cannot be loaded");
  command->add_flag("--json", arguments->json,
                    "print the summary as JSON instead of tables, with all rules that alert");
  command->add_flag("-v,--verbose", arguments->verbose, "report each rule that is left out");
  command->add_flag("-q,--quiet", arguments->quiet, "print no summary and no progress");
  command->footer(
      "Without -o and --fast there is the summary alone. Rules that cannot be loaded are left out, and told on "
      "stderr.\n"
      "`penstock check --parameters` lists the parameters of nids.");
  command->callback([arguments, &exit_code] { exit_code = scan(*arguments); });
}

}  // namespace penstock::cli
