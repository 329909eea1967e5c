// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/chain_arguments.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text_file.h"
#include "base/units.h"
#include "control/client.h"

namespace penstock::cli {

namespace {

/// Errors with the same message about the same thing, in any place.
struct Kind {
  const Error* first;
  std::size_t count = 0;
};

/// The most frequent kind first; kinds with equal frequency are in the order of `errors`. Errors that only stand for a
/// number of others belong to no kind.
std::vector<Kind> kinds_of(std::span<const Error* const> errors) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> by_text;
  std::vector<Kind> kinds;
  for (const Error* const error : errors) {
    if (error->count != 1) continue;
    const auto [place, added] = by_text.try_emplace({error->message, error->found}, kinds.size());
    if (added) kinds.push_back({error});
    ++kinds[place->second].count;
  }
  std::ranges::stable_sort(kinds, std::greater<>{}, &Kind::count);
  return kinds;
}

std::vector<const Error*> pointers_to(std::span<const Error> errors) {
  std::vector<const Error*> pointers;
  pointers.reserve(errors.size());
  for (const Error& error : errors) pointers.push_back(&error);
  return pointers;
}

constexpr std::size_t kMostKinds = 5;

/// Logs each error. If there are too many, prints errors that differ only in their place as one, the most
/// frequent first.
void print_alike(std::span<const Error> errors, LogLevel level, bool all) {
  constexpr std::size_t kMost = 20;
  Log& log = Log::of_process();
  if (all || errors.size() <= kMost) {
    for (const Error& error : errors) log.write(level, to_string(error));
    return;
  }
  const std::vector<Kind> kinds = kinds_of(pointers_to(errors));
  std::size_t printed = 0;
  for (std::size_t i = 0; i < kinds.size() && i < kMostKinds; ++i) {
    const std::string more =
        kinds[i].count == 1 ? "" : fmt::format(" (and {} more like this)", format_count(kinds[i].count - 1));
    log.write(level, to_string(*kinds[i].first) + more);
    printed += kinds[i].count;
  }
  if (printed == count_of(errors)) return;
  // The kinds of errors that are only counted are unknown.
  const std::string of =
      kinds.size() > kMostKinds ? " of " + format_count(kinds.size() - kMostKinds, "other kind") : std::string();
  log.write(level, fmt::format("… and {} more{}", format_count(count_of(errors) - printed), of));
}

}  // namespace

void print_errors(const Errors& errors) {
  for (const Error& error : errors) Log::of_process().write(LogLevel::error, to_string(error));
}

int refuse(const Errors& errors, bool all) {
  // The last error states the consequence of the others.
  const std::span<const Error> every(errors);
  print_alike(every.first(errors.empty() ? 0 : errors.size() - 1), LogLevel::error, all);
  if (!errors.empty()) print_errors({errors.back()});
  return kWrongUsage;
}

int fail(const Errors& errors) {
  print_errors(errors);
  return kFailed;
}

Errors check_stdin(std::string_view option, std::span<const std::string> files, bool asked_by_arguments,
                   std::string_view questions) {
  Errors errors;
  const auto read_once = [&](std::string found, std::string expected) {
    errors.push_back({{fmt::format("{} -", option), 0, 0},
                      "standard input can be read only once",
                      std::move(found),
                      std::move(expected)});
  };
  const auto times = std::ranges::count(files, "-");
  if (times > 1) read_once("two uses of -", "a file");
  if (times > 0 && !asked_by_arguments) read_once("", fmt::format("{} as arguments", questions));
  return errors;
}

int print_results(std::string_view text, bool stdout_is_taken, Errors errors) {
  if (stdout_is_taken) {
    fmt::print(stderr, "{}", text);
  } else if (!text.empty()) {
    if (auto written = write_stdout(text); !written) append(errors, std::move(written.error()));
  }
  print_errors(errors);
  return errors.empty() ? kDone : kFailed;
}

void print_cautions(const Errors& cautions) {
  for (const Error& caution : cautions) Log::of_process().write(LogLevel::warning, to_string(caution));
}

void print_warnings(const config::LoadedChain& loaded, bool all) {
  print_cautions(loaded.without_effect);
  print_cautions(loaded.cautions);
  print_alike(loaded.unsupported, LogLevel::warning, all);
}

void print_left_out(const Errors& left_out) {
  if (left_out.empty()) return;
  std::fflush(stdout);
  std::vector<std::string_view> files;  // in order of first occurrence
  std::map<std::string_view, std::vector<const Error*>> by_file;
  for (const Error& error : left_out) {
    std::vector<const Error*>& of_file = by_file[error.place.file];
    if (of_file.empty()) files.emplace_back(error.place.file);
    of_file.push_back(&error);
  }
  fmt::print(stderr, "\nNot supported and left out:\n");
  for (const std::string_view file : files) {
    const std::vector<const Error*>& errors = by_file[file];
    std::size_t count = 0;
    for (const Error* const error : errors) count += error->count;
    if (file.empty()) {  // only counted, so the file is unknown
      fmt::print(stderr, "  {} more\n", format_count(count));
      continue;
    }
    fmt::print(stderr, "  {}: {}\n", printable(file), format_count(count, "construct"));
    const std::vector<Kind> kinds = kinds_of(errors);
    std::size_t shown = 0;
    for (std::size_t i = 0; i < kinds.size() && i < kMostKinds; ++i) {
      Error first = *kinds[i].first;
      const std::uint32_t line = std::exchange(first.place, {}).line;
      fmt::print(stderr, "  {:>8}  {}{}\n", format_count(kinds[i].count), to_string(first),
                 line == 0 ? "" : fmt::format(" ({}line {})", kinds[i].count == 1 ? "" : "first: ", line));
      shown += kinds[i].count;
    }
    if (shown == count) continue;
    const std::string reasons = kinds.size() > kMostKinds
                                    ? "for " + format_count(kinds.size() - kMostKinds, "other reason")
                                    : std::string("more");
    fmt::print(stderr, "  {:>8}  {}\n", format_count(count - shown), reasons);
  }
}

void print_mistakes(const Errors& mistakes, bool all) {
  if (mistakes.empty()) return;
  print_alike(mistakes, LogLevel::warning, all);
  log_warning(
      "{} left out because of {}", format_count(mistakes.size(), "rule"),
      mistakes.size() == 1 ? "this mistake; --strict makes it an error" : "these mistakes; --strict makes them errors");
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return {[least, most](std::string& text) {
            const auto number = parse_integer(text);
            if (number && *number >= least && *number <= most) {
              text = std::to_string(*number);
              return std::string();
            }
            const bool any = least == 0 && most == std::numeric_limits<std::uint64_t>::max();
            return fmt::format("wrong value: found {}, expected a whole number{}", in_quotes(text),
                               any ? "" : fmt::format(" in {}..{}", least, most));
          },
          ""};
}

CLI::Validator not_empty(std::string_view expected) {
  return {[expected = std::string(expected)](std::string& text) {
            return text.empty() ? fmt::format("wrong value: found '', expected {}", expected) : std::string();
          },
          ""};
}

CLI::Validator socket_name() {
  return {[](std::string& text) {
            text = control::socket_named(text);
            return std::string();
          },
          ""};
}

void ChainArguments::add_to(CLI::App& command, function::NfKinds known_functions) {
  functions = known_functions;
  command.add_option("CHAIN.yaml", file, "the chain file")->required();
  command
      .add_option("--set", sets,
                  "set or override a value of the chain file: --set run.workers=4, --set ports.lan.pcap.read=x.pcap,\n"
                  "--set chain.router.routes=full.txt")
      ->allow_extra_args(false)
      ->take_all();
  command.add_flag("--strict", strict,
                   "refuse all files with unsupported constructs, also those of functions that would leave them out");
}

CLI::Option* ChainArguments::add_override(CLI::App& command, const std::string& option, const std::string& path,
                                          const std::string& help) {
  // With a function instead of a variable, an empty value is not lost.
  return command.add_option_function<std::string>(
      option,
      [this, option, path](const std::string& value) {
        options.push_back(config::override_by_option(option, path, value));
      },
      help);
}

Result<config::LoadedChain> ChainArguments::load(bool only_plan) const {
  const auto how = load_options(only_plan);
  if (!how) return failure(how.error());
  return config::load_chain(file, *how);
}

Result<config::Reload> ChainArguments::plan_reload(const config::LoadedChain& running) const {
  const auto how = load_options(false);
  if (!how) return failure(how.error());
  return config::plan_reload(running, file, *how);
}

Result<config::LoadOptions> ChainArguments::load_options(bool only_plan) const {
  config::LoadOptions how{{}, strict, only_plan, functions};
  Errors errors;
  for (const std::string& text : sets) {
    auto parsed = config::parse_override(text);
    if (parsed) {
      how.overrides.push_back(std::move(*parsed));
    } else {
      append(errors, std::move(parsed.error()));
    }
  }
  how.overrides.insert(how.overrides.end(), options.begin(), options.end());
  if (!errors.empty()) return failure(std::move(errors));
  return how;
}

}  // namespace penstock::cli
