// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/bench.h"
#include "cli/chain_arguments.h"
#include "cli/check.h"
#include "cli/classify.h"
#include "cli/ctl.h"
#include "cli/devices.h"
#include "cli/doctor.h"
#include "cli/explain.h"
#include "cli/filter.h"
#include "cli/function.h"
#include "cli/ike.h"
#include "cli/plan.h"
#include "cli/proxy.h"
#include "cli/route.h"
#include "cli/run.h"
#include "cli/scan.h"
#include "config/outputs.h"
#include "nf/catalog.h"

namespace penstock::cli {
namespace {

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("penstock {} ({}, {}, {}, {})", build.version, build.commit, build.compiler,
                     build.cuda.empty() ? std::string("without CUDA") : fmt::format("CUDA {}", build.cuda),
                     build.build_type);
}

/// Suggestions for the unknown word `wrong`: the command's options, or the program's commands.
std::string expected_word(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  if (wrong.starts_with('-')) {
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* subcommand : command.get_subcommands({})) names.push_back(subcommand->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return wrong.starts_with('-') ? std::string(nearest_name(wrong, known)) : expected_name(wrong, known);
}

/// Splits `text` at `word`: the parts before and after it.
std::optional<std::pair<std::string, std::string>> split_at(const std::string& text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return std::nullopt;
  return std::pair{text.substr(0, at), text.substr(at + word.size())};
}

/// Rewords CLI11's messages in the form of our other messages.
Error in_our_words(const std::string& text) {
  if (const auto missing = split_at(text, ": 1 required ")) {  // --report: 1 required TEXT missing
    const std::string type = missing->second.substr(0, missing->second.rfind(" missing"));
    return {{}, missing->first + ": the value is missing", "", type == "TEXT" ? "" : type};
  }
  if (const auto often = split_at(text, ": At Most 1 required but received "))
    return {{}, fmt::format("{}: given {} times", often->first, often->second), "", "once"};
  if (const auto flag = split_at(text, " was given a disallowed flag override"))
    return {{}, flag->first + ": takes no value", "", ""};
  if (const auto flag = split_at(text, ": Should be true/false or a number"))
    return {{}, flag->first + ": takes no value", "", ""};
  if (const auto both = split_at(text, " excludes "))
    return {{}, fmt::format("{} cannot be given together with {}", both->first, both->second), "", ""};
  if (const auto choice = split_at(text, " not in {")) {  // -k: z not in {all,none}
    const auto name = split_at(choice->first, ": ");
    std::string list = choice->second.substr(0, choice->second.rfind('}'));
    for (std::size_t at = 0; (at = list.find(',', at)) != list.npos; at += 2) list.replace(at, 1, ", ");
    if (name) return {{}, name->first + ": wrong value", in_quotes(name->second), "one of " + list};
  }
  if (const auto number = split_at(text, "Could not convert: ")) {  // --x = a
    if (const auto name = split_at(number->second, " = "))
      return {{}, name->first + ": wrong value", in_quotes(name->second), "a number"};
  }
  return {{}, text, "", ""};
}

/// The commands that the arguments name, from the outer one in: `ctl`, `stats`.
std::vector<const CLI::App*> named_commands(const CLI::App& app) {
  std::vector<const CLI::App*> named;
  for (auto next = app.get_subcommands(); !next.empty(); next = next.front()->get_subcommands())
    named.push_back(next.front());
  return named;
}

/// What is wrong with the command line. Unknown words are reported first, because missing arguments may follow from
/// them.
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto named = named_commands(app);
  const CLI::App& command = named.empty() ? app : *named.back();
  std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (unknown.empty() && !command.get_subcommands({}).empty())
    return {{}, "no command", "", expected_word(command, "")};
  if (unknown.empty()) return in_our_words(error.what());
  const std::string& word = unknown.front();
  const char* message = word.starts_with('-') ? "unknown option"
                        : named.empty()       ? "unknown command"
                                              : "unexpected argument";
  return {{}, message, in_quotes(word), expected_word(command, word)};
}

int refuse_arguments(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = "penstock";
  for (const CLI::App* const named : named_commands(app)) command += ' ' + named->get_name();
  fmt::print(stderr, "{}: {}\nSee `{} --help`.\n", command, to_string(usage_error(app, error)), command);
  return kWrongUsage;
}

/// Adds a limit for the size of input files to every command that reads files. `function serve` has it too, where it
/// says that the option raises the limit.
void add_file_limit(CLI::App& app) {
  std::vector<CLI::App*> commands = app.get_subcommands({});
  const auto reads_none = [](const CLI::App* command) {
    const std::string& name = command->get_name();
    return name == "devices" || name == "ctl" || name == "ike" || name == "proxy";
  };
  std::erase_if(commands, reads_none);
  commands.push_back(app.get_subcommand("function")->get_subcommand("serve"));
  for (CLI::App* const command : commands) {
    command
        ->add_option_function<std::string>(
            "--file-limit",
            [](const std::string& text) {
              const auto bytes = parse_size(text);
              if (!bytes || *bytes == 0) {
                throw CLI::ValidationError(
                    fmt::format("--file-limit: wrong value: found {}, expected a size such as 1GiB", in_quotes(text)));
              }
              set_file_limit(*bytes);
            },
            fmt::format("maximum size of a text file after decompression (default: {})", format_size(file_limit())))
        ->type_name("SIZE");
  }
}

}  // namespace

void define_command_line(CLI::App& app, function::NfKinds functions, const std::vector<std::string>& arguments,
                         int& exit_code) {
  app.name("penstock");
  app.description("Penstock runs chains of network functions on CPUs and GPUs, with the same results on both.");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
  add_run(app, functions, exit_code);
  add_check(app, functions, exit_code);
  add_plan(app, functions, exit_code);
  add_explain(app, functions, exit_code);
  add_scan(app, exit_code);
  add_filter(app, exit_code);
  add_route(app, exit_code);
  add_classify(app, exit_code);
  add_devices(app, exit_code);
  add_doctor(app, functions, exit_code);
  add_ctl(app, exit_code);
  add_ike(app, exit_code);
  add_function(app, functions, exit_code);
  add_proxy(app, exit_code);
  add_bench(app, arguments, exit_code);
  add_file_limit(app);
}

int run_program(int argc, const char* const* argv, function::NfKinds further) {
  const auto functions = nf::catalog_with(further);
  if (!functions) {
    for (const Error& error : functions.error()) fmt::print(stderr, "penstock: {}\n", to_string(error));
    return kWrongUsage;
  }
  if (const Errors errors = config::check_declared_outputs(*functions); !errors.empty()) {
    for (const Error& error : errors) fmt::print(stderr, "penstock: {}\n", to_string(error));
    return kWrongUsage;
  }
  CLI::App app;
  int exit_code = kDone;
  define_command_line(app, *functions, {argv, argv + argc}, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);  // for help or the version
    // Help must not be shown for a command that does not exist.
    if (!is_help || (app.get_subcommands().empty() && !app.remaining().empty())) return refuse_arguments(app, error);
    exit_code = app.exit(error);
  }
  // If the disk is full, writing to stdout fails only here.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "penstock: cannot write to standard output\n");
    return kFailed;
  }
  return exit_code;
}

}  // namespace penstock::cli
