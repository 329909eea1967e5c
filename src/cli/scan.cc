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
#include "cli/alert_pcap.h"
#include "cli/chain_arguments.h"
#include "cli/progress.h"
#include "cli/scan_captures.h"
#include "cli/scan_summary.h"
#include "cli/stop_signals.h"
#include "cli/suricata_yaml.h"
#include "config/chain_file.h"
#include "nf/nids/nids.h"
#include "run/run.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;

struct ScanArguments {
  std::vector<std::string> captures, more_captures, rules, more_rules, sets;
  std::string suricata_yaml, log_folder, alert_pcap;
  std::vector<config::Override> options;  // from the options with a single value
  Errors wrong_folders;                   // without captures; the others are scanned
  bool payload = false, packet = false, profile = false;
  bool json = false, strict = false, verbose = false, quiet = false;
};

/// As YAML, of which JSON is a subset.
std::string yaml(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

config::Override of_nids(std::string_view parameter, const Json& value, std::string_view option) {
  return {fmt::format("chain.nids.{}", parameter), yaml(value), std::string(option)};
}

config::Override of_variable(const RuleVariable& variable, std::string_view option) {
  return of_nids("vars." + variable.name, variable.value, option);
}

/// `vars={…}` sets the named variables and keeps the others. For other parameters, lists and mappings are YAML.
Result<std::vector<config::Override>> overrides_of_set(const std::string& text) {
  auto parsed = config::parse_override(text);
  if (!parsed) return failure(std::move(parsed).error());
  // Like `run`, where paths start with a section.
  for (const std::string_view section : {"chain.", "run.", "outputs."}) {
    if (parsed->path.starts_with(section)) return std::vector{std::move(*parsed)};
  }
  if (parsed->path == "vars" && parsed->value.starts_with('{')) {
    auto variables = read_variables(parsed->value, parsed->text);
    if (!variables) return failure(std::move(variables).error());
    std::vector<config::Override> overrides;
    for (const RuleVariable& variable : *variables) overrides.push_back(of_variable(variable, parsed->text));
    return overrides;
  }
  const bool is_yaml = parsed->value.starts_with('{') || parsed->value.starts_with('[');
  if (is_yaml && !parsed->path.starts_with("vars."))
    return std::vector{config::Override{"chain.nids." + parsed->path, parsed->value, parsed->text}};
  // The literal value, because YAML would read `!$HOME_NET` as a tag.
  return std::vector{of_nids(parsed->path, parsed->value, parsed->text)};
}

/// The overrides for -c: the file's variables, each with its place. Warns on stderr about unused parts of the file.
Result<std::vector<config::Override>> overrides_of_suricata_yaml(const ScanArguments& arguments) {
  auto yaml = read_suricata_yaml(arguments.suricata_yaml);
  if (!yaml) return failure(std::move(yaml).error());
  std::vector<config::Override> overrides;
  for (const RuleVariable& variable : yaml->variables)
    overrides.push_back(of_variable(variable, fmt::format("{}:{}", variable.place.file, variable.place.line)));
  for (const Error& warning : yaml->warnings) fmt::print(stderr, "warning: {}\n", to_string(warning));
  if (!arguments.quiet) {
    fmt::print(stderr, "{}: {} used{}\n", printable(arguments.suricata_yaml),
               format_count(yaml->variables.size(), "variable"),
               yaml->not_used.empty() ? "" : printable(fmt::format("; not used: {}", fmt::join(yaml->not_used, ", "))));
  }
  return overrides;
}

/// Normalises a path: the chain's only function can be named in several ways.
std::string in_one_form(std::string_view path) {
  constexpr std::string_view kChain = "chain.";
  if (!path.starts_with(kChain)) return std::string(path);
  const std::size_t end = std::min(path.find('.', kChain.size()), path.size());
  return fmt::format("chain.nids{}", path.substr(end));
}

/// Whether the paths are equal, or one contains the other.
bool overlap(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

/// Errors for a --set that would silently replace the value of an option.
Errors check_set(const config::Override& set, const std::vector<config::Override>& options) {
  Errors errors;
  for (const config::Override& option : options) {
    if (!overlap(in_one_form(set.path), in_one_form(option.path))) continue;
    errors.push_back({{set.text, 0, 0},
                      fmt::format("given together with {}, which sets the same value", option.text),
                      "",
                      "one of them"});
  }
  return errors;
}

/// The overrides of all options, so that mistakes are reported with the option.
Result<std::vector<config::Override>> overrides_of(const ScanArguments& arguments) {
  std::vector<config::Override> options{{"ports.captures.pcap.read", yaml(arguments.captures), "CAPTURE"},
                                        of_nids("rules", arguments.rules, "-S")};
  if (arguments.payload) options.push_back(of_nids("payload", "true", "--payload"));
  if (arguments.packet) options.push_back(of_nids("packet", "true", "--packet"));
  options.insert(options.end(), arguments.options.begin(), arguments.options.end());
  std::vector<config::Override> overrides;
  Errors errors;
  const auto add = [&](Result<std::vector<config::Override>> more) {
    if (more) {
      overrides.insert(overrides.end(), more->begin(), more->end());
    } else {
      append(errors, std::move(more).error());
    }
  };
  if (!arguments.suricata_yaml.empty()) add(overrides_of_suricata_yaml(arguments));
  for (const std::string& text : arguments.sets) {
    auto sets = overrides_of_set(text);
    for (const config::Override& set : sets ? *sets : std::vector<config::Override>{})
      append(errors, check_set(set, options));
    add(std::move(sets));
  }
  if (!errors.empty()) return failure(std::move(errors));
  overrides.insert(overrides.end(), options.begin(), options.end());
  return overrides;
}

Result<config::LoadedChain> load(const ScanArguments& arguments) {
  auto overrides = overrides_of(arguments);
  if (!overrides) return failure(std::move(overrides).error());
  config::LoadOptions options;
  options.overrides = std::move(*overrides);
  options.strict = arguments.strict;
  return config::load_chain_text(
      R"({"ports": {"captures": {"pcap": {"bad_capture": "skip"}}}, "chain": [{"nids": {}}]})", "scan", options);
}

/// Prints the user's mistakes before unsupported constructs, because the user can fix the mistakes.
void print_mistakes_first(config::LoadedChain& loaded, const nids::Nids& nids, bool verbose) {
  const auto mistakes = std::ranges::count_if(nids.rules().left_out, &nids::RuleSet::Left::is_mistake);
  const auto first_unsupported = loaded.unsupported.begin() + mistakes;
  print_mistakes(Errors(loaded.unsupported.begin(), first_unsupported), verbose);
  loaded.unsupported.erase(loaded.unsupported.begin(), first_unsupported);
  print_warnings(loaded, verbose);
}

/// Joins the captures and rules of all options, and replaces folders by the captures in them.
Result<ScanArguments> resolved(ScanArguments arguments) {
  arguments.captures.insert(arguments.captures.end(), arguments.more_captures.begin(), arguments.more_captures.end());
  arguments.rules.insert(arguments.rules.end(), arguments.more_rules.begin(), arguments.more_rules.end());
  if (arguments.captures.empty()) throw CLI::RequiredError("CAPTURE");
  if (arguments.rules.empty()) throw CLI::RequiredError("-S");
  Captures captures = find_captures(arguments.captures);
  if (captures.paths.empty()) return failure(std::move(captures.errors));
  arguments.captures = std::move(captures.paths);
  arguments.wrong_folders = std::move(captures.errors);
  for (const Error& error : captures.left_out) fmt::print(stderr, "warning: {}\n", to_string(error));
  if (arguments.log_folder.empty()) return arguments;
  const auto add_log = [&](const char* path, const char* name) {
    const bool is_given =
        std::ranges::any_of(arguments.options, [&](const auto& o) { return o.path == path; }) ||
        std::ranges::any_of(arguments.sets, [&](const auto& set) { return set.starts_with(fmt::format("{}=", path)); });
    if (!is_given) arguments.options.push_back({path, yaml(arguments.log_folder + "/" + name), "-l"});
  };
  add_log("outputs.eve", "eve.json");
  add_log("outputs.fast_log", "fast.log");
  return arguments;
}

/// Removes the name of the captures' port from messages, because it is internal.
void hide_port(Errors& errors) {
  constexpr std::string_view kPort = "port captures: ";
  for (Error& error : errors) {
    if (error.message.starts_with(kPort)) error.message.erase(0, kPort.size());
  }
}

int scan(const ScanArguments& given) {
  const auto with_captures = resolved(given);
  if (!with_captures) return refuse(with_captures.error());
  const ScanArguments& arguments = *with_captures;
  auto loaded = load(arguments);
  if (!loaded) return refuse(loaded.error(), arguments.verbose);
  auto& nids = dynamic_cast<nids::Nids&>(*loaded->chain.functions.front().function);
  print_mistakes_first(*loaded, nids, arguments.verbose);
  const bool alert_pcap_to_stdout = arguments.alert_pcap == "-";
  if ((arguments.json || alert_pcap_to_stdout) && (loaded->writes_stdout || (arguments.json && alert_pcap_to_stdout))) {
    fmt::print(
        stderr,
        "{}: standard output is already in use for alerts; write those to files with -o, --fast and --alert-pcap\n",
        arguments.json ? "--json" : "--alert-pcap");
    return kWrongUsage;
  }
  Errors wrong_files = config::check_files(*loaded);
  if (!arguments.alert_pcap.empty())
    append(wrong_files, check_alert_pcap(arguments.alert_pcap, arguments.captures, loaded->files));
  if (!wrong_files.empty()) {
    append(wrong_files, arguments.wrong_folders);
    return refuse(wrong_files);
  }
  nids.record({arguments.profile, !arguments.alert_pcap.empty()});

  const std::atomic<bool>& signalled = stop_on_signals();
  std::atomic<bool> stop{false};
  const bool progress = shows_progress() && !arguments.quiet;
  run::RunOptions options;
  options.on_progress = [&](const run::Progress& now) {
    // Stop if the alerts cannot be written any more, as with `| head`.
    const auto failed = [](const auto& log) { return log->failed(); };
    stop.store(signalled.load() || std::ranges::any_of(loaded->chain.logs, failed));
    if (progress) print_progress(now);
  };
  auto result = run::run(loaded->chain, options, stop);
  if (result && !arguments.alert_pcap.empty()) {
    append(result->errors, write_alert_pcap(arguments.alert_pcap, arguments.captures, nids.alert_frames()));
  }
  nothing_left_to_stop();
  if (progress) end_progress();
  hide_port(result ? result->errors : result.error());
  if (!result) return refuse(placed(std::move(result.error()), loaded->files));  // the run has not started

  append(result->errors, arguments.wrong_folders);
  Json summary = scan_summary(arguments.captures, result->report, result->errors);
  if (const std::uint64_t count = nids.alert_frames().without_frame(); count > 0) {
    summary["warnings"].push_back(fmt::format("{} raised at the end of a stream, without a packet: missing from {}",
                                              format_count(count, "alert"), arguments.alert_pcap));
  }
  std::string text;
  if (arguments.json) {
    text = summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } else if (!arguments.quiet) {
    text = scan_tables(summary, nids.load_table());
  }
  const int code = print_results(text, (!arguments.json && loaded->writes_stdout) || alert_pcap_to_stdout,
                                 std::move(result->errors));
  print_left_out(loaded->unsupported);
  return code;
}

}  // namespace

void add_scan(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ScanArguments>();
  CLI::App* command = app.add_subcommand("scan", "Search captures with intrusion detection rules");
  const auto add_files = [&](const char* names, std::vector<std::string>& to, const char* help) {
    return command->add_option(names, to, help)->type_name("FILE")->allow_extra_args(false)->take_all();
  };
  command->add_option(
      "CAPTURE", arguments->captures,
      "pcap or pcapng files, also compressed with gzip or zstd, or folders of them; - is standard input");
  add_files("-r", arguments->more_captures, "same as CAPTURE; may be repeated");
  add_files("-S,--rules", arguments->rules, "Suricata or Snort 2.9 rule file; may be repeated");
  add_files("-s", arguments->more_rules, "same as -S; only rules from -S and -s are loaded");
  command
      ->add_option("-c", arguments->suricata_yaml,
                   "suricata.yaml to take `vars` from; everything else in it is ignored")
      ->check(not_empty("a file"))
      ->type_name("FILE");
  const auto add_value = [&](const char* names, const char* path, const char* help) {
    const std::string option = std::string(names).substr(0, std::string_view(names).find(','));
    return command->add_option_function<std::string>(
        names,
        [arguments, option, path](const std::string& value) {
          arguments->options.push_back({path, value == "-" ? value : yaml(value), option});
        },
        help);
  };
  add_value("-o,--eve", "outputs.eve", "write alerts to this file as EVE JSON, one per line; - is standard output")
      ->type_name("FILE");
  add_value("--fast", "outputs.fast_log",
            "write alerts to this file in Suricata's fast.log format; - is standard output")
      ->type_name("FILE");
  command->add_flag_callback(
      "--no-append",
      [arguments] {
        arguments->options.push_back({"outputs.append", "false", "--no-append"});
      },
      "overwrite the files of -o and --fast; default: append to them");
  command
      ->add_option("-l", arguments->log_folder,
                   "write eve.json and fast.log to this folder, unless -o or --fast names another file")
      ->check(not_empty("a folder"))
      ->type_name("DIR");
  command
      ->add_option("--alert-pcap", arguments->alert_pcap,
                   "write the packets that raised alerts to this capture, each packet once, in their original order")
      ->check(not_empty("a file, or -"))
      ->type_name("FILE");
  add_value("--classification", "chain.nids.classification", "classification.config")->type_name("FILE");
  add_value("--reference", "chain.nids.reference", "reference.config")->type_name("FILE");
  add_value("--threshold", "chain.nids.threshold", "threshold.config")->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "-k",
          [arguments](const std::string& value) {
            arguments->options.push_back({"chain.nids.checksums", value == "none" ? "ignore" : "verify", "-k"});
          },
          "all: packets with wrong checksums are not reassembled (the default); none: checksums are not verified,\n"
          "for captures taken at the sender before the NIC filled in the checksums")
      ->check(CLI::IsMember({"all", "none"}))
      ->type_name("all|none");
  add_value("--workers", "run.workers", "number of worker threads")->type_name("N");
  add_value("--processor", "run.processor", "auto, cpu or gpu");
  command
      ->add_option("--set", arguments->sets,
                   "set a rule variable, such as vars.HOME_NET=10.0.0.0/8, or another parameter of nids, such as\n"
                   "stream_policy=linux")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--payload", arguments->payload, "add the payload to EVE alerts, in base64 and as printable text");
  command->add_flag("--packet", arguments->packet, "add the packet to EVE alerts, in base64");
  command->add_flag("--profile", arguments->profile,
                    "print what the evaluation of each rule cost, most expensive first");
  command->add_flag("--strict", arguments->strict, "fail if any rule cannot be loaded");
  command->add_flag("--json", arguments->json,
                    "print the summary as JSON instead of tables, with every rule that alerted");
  command->add_flag("-v,--verbose", arguments->verbose, "report each rule that is left out");
  command->add_flag("-q,--quiet", arguments->quiet, "print no summary and no progress");
  command->footer(
      "Without -o, --fast and -l, only the summary is printed. Rules that cannot be loaded are left out and reported\n"
      "on stderr, mistakes first. An unreadable capture or a folder without captures is reported, the others are\n"
      "scanned, and the exit code is 1. A capture that is given twice is read once.\n"
      "`penstock check --parameters` lists the parameters of nids.");
  command->callback([arguments, &exit_code] { exit_code = scan(*arguments); });
}

}  // namespace penstock::cli
