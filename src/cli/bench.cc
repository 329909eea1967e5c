// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/stop_signals.h"
#include "experiments/catalog.h"
#include "experiments/costs.h"
#include "experiments/record_check.h"
#include "experiments/session.h"
#include "experiments/summary.h"
#include "report/text_table.h"

namespace penstock::cli {
namespace {

using experiments::Experiment;
using experiments::Record;
using experiments::Style;

struct BenchArguments {
  std::string name;
  experiments::Options options;
  std::string json;
  std::string plots;
  std::string shown_plots;
  std::string chains;
  std::string from;
  bool markdown = false;
  experiments::Costs costs;
};

// ---- The command line

/// The words with the quotes that a shell needs.
std::string shell_text(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+:,./@%";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

CLI::Validator duration_text() {
  return {[](std::string& text) {
            const auto duration = parse_duration(text);
            return duration && duration->count() > 0
                       ? std::string()
                       : fmt::format("wrong value: found {}, expected a time such as 200ms or 1s", in_quotes(text));
          },
          ""};
}

CLI::Validator cost_text() {
  return {[](std::string& text) {
            return experiments::parse_cost(text)
                       ? std::string()
                       : fmt::format("wrong value: found {}, expected DOLLARS:WATTS, both above 0, such as 1200:250",
                                     in_quotes(text));
          },
          ""};
}

CLI::Validator condition_text() {
  return {[](std::string& text) {
            const std::size_t equals = text.find('=');
            return equals != std::string::npos && equals > 0
                       ? std::string()
                       : fmt::format("wrong value: found {}, expected KEY=VALUE", in_quotes(text));
          },
          ""};
}

/// Several values for the same key are alternatives.
std::vector<experiments::Condition> conditions(const std::vector<std::string>& texts) {
  std::vector<experiments::Condition> all;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    auto there = std::find_if(all.begin(), all.end(), [&](const auto& condition) { return condition.key == key; });
    if (there == all.end()) there = all.insert(all.end(), {key, {}});
    there->values.push_back(text.substr(equals + 1));
  }
  return all;
}

std::string known_names(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const Experiment* const known : experiments::experiments()) names.push_back(known->name);
  return expected_name(wrong, names);
}

// ---- Output

int list_experiments() {
  report::TextTable table({"experiment", "description"});
  for (const Experiment* const known : experiments::experiments()) {
    table.add_row({std::string(known->name), std::string(known->summary)});
    table.add_note(known->source);
  }
  const auto written = write_stdout(table.text() + "\nRun one with `penstock bench NAME`.\n");
  return written ? kDone : fail(written.error());
}

/// A plot that was drawn before, in Markdown. Empty: it was not.
std::string shown_plot(const experiments::Figure& figure, const std::string& prefix) {
  const std::string path = prefix + figure.id + ".svg";
  std::error_code none;
  if (prefix.empty() || !std::filesystem::exists(path, none)) return "";
  return fmt::format("![{}]({})\n\n", figure.title, path);
}

/// `plots`: what the paths of plots that are shown begin with; empty: none are.
std::string rendered(const Experiment& experiment, const Record& record, Style style, const std::string& plots) {
  std::string text = experiments::summary(experiment, record, style);
  for (const experiments::Figure& figure : experiment.figures()) {
    if (!has_points(figure, record)) continue;
    std::string table = experiments::table(figure, record, style);
    constexpr std::string_view kBreak = "\n\n";  // after the heading
    table.insert(std::min(table.size(), table.find(kBreak) + kBreak.size()), shown_plot(figure, plots));
    text += '\n' + table;
  }
  if (experiment.further_tables == nullptr) return text;
  const std::string further = experiment.further_tables(record, style);
  return further.empty() ? text : text + '\n' + further;
}

Errors make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return {{{folder, 0, 0}, "cannot create the folder", error.message(), ""}};
  return {};
}

/// Creates the folder with the first file.
Errors write_chains(const Experiment& experiment, const Record& record, const std::string& folder) {
  for (const experiments::ChainFile& file : experiment.chain_files(record)) {
    if (Errors errors = make_folder(folder); !errors.empty()) return errors;
    const std::string path = folder + "/" + file.name;
    if (const auto written = write_text_file(path, file.text); !written) return written.error();
    fmt::print(stderr, "{}\n", printable(path));
  }
  return {};
}

/// Creates the folder with the first plot.
Errors write_plots(const Experiment& experiment, const Record& record, const std::string& folder) {
  for (const experiments::Figure& figure : experiment.figures()) {
    if (!has_plot(figure, record)) continue;
    if (Errors errors = make_folder(folder); !errors.empty()) return errors;
    const auto path = write_plot(figure, record, folder);
    if (!path) return path.error();
    fmt::print(stderr, "{}\n", printable(*path));
  }
  return {};
}

/// Writes files first, since printing may fail if stdout is a broken pipe.
Errors write_all(const Experiment& experiment, const Record& record, const BenchArguments& arguments) {
  Errors errors;
  const auto note = [&](const Result<void>& written) {
    if (!written) append(errors, written.error());
  };
  const bool json_to_stdout = arguments.json == "-";
  if (!arguments.json.empty() && !json_to_stdout) {
    // The run was stopped before its first point, so keep an existing record.
    std::error_code none;
    const bool keeps_other = record.points.empty() && !record.complete &&
                             std::filesystem::is_regular_file(arguments.json, none) &&
                             std::filesystem::file_size(arguments.json, none) > 0;
    note(keeps_other ? failure({{arguments.json, 0, 0}, "not changed, because nothing was measured", "", ""})
                     : write_text_file(arguments.json, to_json(record)));
  }
  if (!arguments.plots.empty()) append(errors, write_plots(experiment, record, arguments.plots));
  if (!arguments.chains.empty()) append(errors, write_chains(experiment, record, arguments.chains));
  note(write_stdout(json_to_stdout
                        ? to_json(record)
                        : rendered(experiment, record, arguments.markdown ? Style::markdown : Style::terminal,
                                   arguments.shown_plots)));
  return errors;
}

/// Checks that the folder exists or can be created, and accepts new files. Creates nothing.
Result<void> check_folder_writable(const std::string& folder) {
  std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  std::error_code none;
  while (!std::filesystem::exists(path, none) && path.has_relative_path()) path = path.parent_path();
  if (!std::filesystem::is_directory(path, none)) {
    return failure({{folder, 0, 0}, "cannot create the folder", path.string() + " is a file", "a folder"});
  }
  auto writable = check_text_file_writable((path / "plot.svg").string());
  if (!writable) writable.error().front().place.file = folder;
  return writable;
}

/// Errors about the paths of the outputs. Creates nothing.
Errors check_outputs(const BenchArguments& arguments, const Experiment* experiment) {
  Errors errors;
  if (!arguments.chains.empty() && experiment != nullptr && experiment->chain_files == nullptr)
    errors.push_back(
        {{"--chains", 0, 0}, fmt::format("the experiment {} recommends no chains", experiment->name), "", ""});
  const std::pair<const char*, const std::string*> inputs[] = {
      {"--rules", &arguments.options.rules}, {"--routes", &arguments.options.routes}, {"--from", &arguments.from}};
  for (const auto& [option, path] : inputs) {
    std::error_code none;
    if (!path->empty() && std::filesystem::equivalent(*path, arguments.json, none))
      errors.push_back(
          {{arguments.json, 0, 0}, fmt::format("--json would overwrite the file that {} reads", option), "", ""});
  }
  if (!errors.empty()) return errors;
  if (!arguments.json.empty() && arguments.json != "-") {
    if (const auto right = check_text_file_writable(arguments.json); !right) append(errors, right.error());
  }
  if (!arguments.plots.empty()) {
    if (const auto right = check_folder_writable(arguments.plots); !right) append(errors, right.error());
  }
  if (!arguments.chains.empty()) {
    if (const auto right = check_folder_writable(arguments.chains); !right) append(errors, right.error());
  }
  return errors;
}

// ---- Running, or reading a record

void print_progress(const experiments::Progress& progress) {
  constexpr std::size_t kMost = 70;
  std::string what = progress.what.substr(0, kMost);
  if (what.size() < progress.what.size()) what += "…";
  const std::string number = progress.number == 0 ? "" : fmt::format("{} of {}: ", progress.number, progress.count);
  const std::string line = "\r\033[K" + number + what;
  std::fputs(line.c_str(), stderr);  // a closed terminal must not end a run
}

int run_experiment(const Experiment& experiment, const BenchArguments& arguments) {
  const std::atomic<bool>& stop = stop_on_signals();
  auto session = experiments::Session::open(experiment, arguments.options, stop);
  if (!session) return refuse(session.error());
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  Record& record = session->record();
  if (had_uncommitted_changes(record)) {
    fmt::print(
        stderr,
        "warning: this program has uncommitted changes: nobody can repeat its measurements, so do not keep them\n");
  }
  const auto show_left_out = [&record](std::size_t from) {
    for (; from < record.left_out.size(); ++from)
      fmt::print(stderr, "left out: {}\n", printable(record.left_out[from]));
  };
  show_left_out(0);
  const std::size_t known_before = record.left_out.size();
  Errors errors;
  try {
    errors = session->run(terminal ? print_progress : std::function<void(const experiments::Progress&)>());
  } catch (const std::exception& error) {  // such as a GPU failure: the record so far is still written
    record.errors.emplace_back(error.what());
    errors.push_back({{}, error.what(), "", ""});
  }
  nothing_left_to_stop();
  if (terminal) std::fputs("\r\033[K", stderr);
  show_left_out(known_before);
  add_costs(record, arguments.costs);
  append(errors, write_all(experiment, record, arguments));
  print_errors(errors);
  if (errors.empty() && !record.complete) {
    fmt::print(stderr, "stopped after {} of {}\n", session->measured(), format_count(session->points(), "point"));
  }
  return errors.empty() && record.complete ? kDone : kFailed;
}

int render_record(const BenchArguments& arguments) {
  const auto text = read_input(arguments.from);
  const std::string from = input_name(arguments.from);
  auto record = text ? experiments::parse_record(*text, from) : tl::unexpected(text.error());
  if (!record) return refuse(record.error());
  if (!arguments.name.empty() && arguments.name != record->experiment) {
    return refuse(Errors{Error{{from, 0, 0},
                               "the record is from another experiment",
                               in_quotes(record->experiment),
                               in_quotes(arguments.name)}});
  }
  const Experiment* const known = experiments::find_experiment(record->experiment);
  if (known == nullptr) {
    return refuse(Errors{
        Error{{from, 0, 0}, "unknown experiment", in_quotes(record->experiment), known_names(record->experiment)}});
  }
  if (const Errors wrong = check_record(*record, *known, from); !wrong.empty()) return refuse(wrong);
  if (record->points.empty() && !arguments.plots.empty()) {
    return refuse(Errors{Error{{from, 0, 0}, "nothing to plot", "a record without points", ""}});
  }
  add_costs(*record, arguments.costs);
  if (const Errors wrong = check_outputs(arguments, known); !wrong.empty()) return refuse(wrong);
  const Errors errors = write_all(*known, *record, arguments);
  return errors.empty() ? kDone : fail(errors);
}

int bench(const BenchArguments& arguments) {
  if (!arguments.from.empty()) return render_record(arguments);
  const Experiment* const known = experiments::find_experiment(arguments.name);
  if (const Errors errors = check_outputs(arguments, known); !errors.empty()) return refuse(errors);
  if (known != nullptr) return run_experiment(*known, arguments);
  return refuse(Errors{Error{{},
                             arguments.name.empty() ? "NAME is missing" : "unknown experiment",
                             arguments.name.empty() ? "" : in_quotes(arguments.name),
                             known_names(arguments.name)}});
}

/// A comma-separated list of integers.
CLI::Validator whole_numbers(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [one = whole_number(least, most)](std::string& text) {
        for (const std::string_view part : split(text, ',')) {
          std::string number(part);
          if (std::string error = one(number); !error.empty()) return error;
        }
        return std::string();
      },
      "");
}

}  // namespace

void add_bench(CLI::App& app, std::vector<std::string> command_line, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  experiments::Options& options = arguments->options;
  if (!command_line.empty()) command_line.front() = "penstock";  // without the path of the program
  options.command = shell_text(command_line);

  CLI::App* const command =
      app.add_subcommand("bench", "Run an experiment from a paper; show tables, write JSON and plots");
  std::vector<std::string_view> names;
  for (const Experiment* const known : experiments::experiments()) names.push_back(known->name);
  command->add_option("NAME", arguments->name, "experiment to run; `penstock bench` alone lists them")
      ->type_name(fmt::format("{}", fmt::join(names, "|")));
  const std::vector<CLI::Option*> measuring{
      command->add_flag("--quick", options.quick, "measure fewer points, with less time for each"),
      command->add_option("--repeats", "measurements per point; tables show the mean and its 95 % confidence interval")
          ->transform(whole_number(1, 1000))
          ->type_name("N"),
      command->add_option("--duration", "length of one measurement, such as 200ms")
          ->check(duration_text())
          ->type_name("TIME"),
      command->add_option("--workers", "maximum number of threads; default: all usable cores")
          ->transform(whole_number(1, 256))
          ->type_name("N"),
      command->add_option("--gpus", "indices of the GPUs to use, such as 0,1; default: the first")
          ->check(whole_numbers(0, 255))
          ->type_name("N,..."),
      command->add_option("--rules", options.rules, "your own rules instead of synthetic ones; - is standard input")
          ->check(not_empty("a file, or -"))
          ->type_name("FILE"),
      command
          ->add_option("--routes", options.routes,
                       "your own routes (`ip route`) instead of synthetic ones; - is standard input")
          ->check(not_empty("a file, or -"))
          ->type_name("FILE"),
      command->add_option("--only", "measure only points with this value; may be repeated with other keys or values")
          ->check(condition_text())
          ->type_name("KEY=VALUE")
          ->allow_extra_args(false)
          ->take_all(),
      command
          ->add_option(
              "--resume", options.resume,
              "keep the points of this record, which may be that of --json, and measure only those that it lacks")
          ->check(not_empty("a file"))
          ->type_name("FILE"),
  };
  command->add_option("--json", arguments->json, "write the record to this file as JSON; - prints it instead of tables")
      ->check(not_empty("a file, or -"))
      ->type_name("FILE");
  command->add_option("--plots", arguments->plots, "write the plots as SVG files to this folder")
      ->check(not_empty("a folder"))
      ->type_name("DIR");
  command->add_option("--chains", arguments->chains, "write the chain files that the record recommends to this folder")
      ->check(not_empty("a folder"))
      ->type_name("DIR");
  CLI::Option* const from =
      command
          ->add_option("--from", arguments->from,
                       "show a record written by --json instead of measuring; - is standard input")
          ->check(not_empty("a file, or -"))
          ->type_name("FILE");
  CLI::Option* const markdown = command->add_flag("--markdown", arguments->markdown, "print the tables as Markdown");
  command
      ->add_option("--show-plots", arguments->shown_plots,
                   "above each table, show the plot whose path is PREFIX, the figure and .svg, if there is one: "
                   "plots/chain-")
      ->check(not_empty("the beginning of a path"))
      ->needs(from)
      ->needs(markdown)
      ->type_name("PREFIX");
  command->add_option("--core-cost", "price and power of one core, for rates per dollar and per watt")
      ->check(cost_text())
      ->type_name("DOLLARS:WATTS");
  command->add_option("--gpu-cost", "the same for one GPU")->check(cost_text())->type_name("DOLLARS:WATTS");
  for (CLI::Option* const option : measuring) option->excludes(from);
  command->footer(
      "Each point is measured several times: by default five times if claims rest on it (`headline`), else as the\n"
      "experiment says. Records have all values; tables and plots show means and their 95 % confidence intervals. "
      "--only\n"
      "takes any key of the record's points: `--only processor=cpu --only engine=dir24`. Ctrl-C ends the run and "
      "writes\n"
      "what was measured. Without a GPU, points that need one are left out.");
  command->callback([command, arguments, measuring, &exit_code] {
    experiments::Options& asked = arguments->options;
    const auto number = [&](const char* option) {
      return command->count(option) == 0 ? std::nullopt : std::optional(command->get_option(option)->as<unsigned>());
    };
    asked.repeats = number("--repeats");
    asked.workers = number("--workers");
    if (command->count("--duration") > 0)
      asked.duration = parse_duration(command->get_option("--duration")->as<std::string>());
    asked.gpus.clear();
    if (command->count("--gpus") > 0) {
      const auto numbers = command->get_option("--gpus")->as<std::string>();
      for (const std::string_view index : split(numbers, ',')) {
        asked.gpus.push_back(static_cast<int>(*parse_integer(index)));
      }
    }
    const auto cost = [&](const char* option) {
      return command->count(option) == 0 ? std::nullopt
                                         : experiments::parse_cost(command->get_option(option)->as<std::string>());
    };
    arguments->costs = {.core = cost("--core-cost"), .gpu = cost("--gpu-cost")};
    if (command->count("--only") > 0) asked.only = conditions(command->get_option("--only")->results());
    const std::vector<CLI::Option*> all = command->get_options();
    const bool any = std::any_of(all.begin(), all.end(), [](const CLI::Option* option) { return option->count() > 0; });
    exit_code = any ? bench(*arguments) : list_experiments();
  });
}

}  // namespace penstock::cli
