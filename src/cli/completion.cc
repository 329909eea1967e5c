// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text_file.h"
#include "cli/option_value.h"
#include "control/client.h"

namespace penstock::cli {

namespace {

/// A command with the options that it takes, those of its parent included.
struct Command {
  std::string path;  // "", "run", "ctl reload"
  std::string summary;
  std::vector<const CLI::Option*> options{};
  std::vector<const CLI::App*> commands{};
  std::vector<std::string> words{};  // that arguments may be
  bool takes_files = false;          // otherwise
};

void collect(const CLI::App& app, const std::string& path, std::vector<Command>& all) {
  Command command{path, app.get_description()};
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_positional()) {
      command.options.push_back(option);
    } else if (const Value value = value_of(*option); !value.choices.empty()) {
      command.words = value.choices;
    } else {
      command.takes_files = true;
    }
  }
  if (app.get_fallthrough()) {
    for (const CLI::Option* const option : app.get_parent()->get_options()) {
      if (option != app.get_parent()->get_help_ptr()) command.options.push_back(option);
    }
  }
  for (const CLI::App* const sub : app.get_subcommands({})) command.commands.push_back(sub);
  all.push_back(command);
  for (const CLI::App* const sub : command.commands)
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), all);
}

/// The program first, then its commands, each followed by its own.
std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> all;
  collect(app, "", all);
  return all;
}

/// The value that must follow the option, if any.
Value needed_value(const CLI::Option& option) {
  Value value = value_of(option);
  return value.optional ? Value() : value;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CLI::App* const command : commands) names.push_back(command->get_name());
  return names;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what)) {
    out += fmt::format("{}{}", text.substr(0, at), with);
    text.remove_prefix(at + what.size());
  }
  return out + std::string(text);
}

/// In single quotes, for all three shells but for fish's backslashes.
std::string shell_quoted(std::string_view text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// ---- bash

/// The case of an option's value; "": it has none.
std::string bash_value(const Command& command, const CLI::Option& option) {
  const Value value = needed_value(option);
  if (value.kind == Value::Kind::none) return "";
  std::vector<std::string> patterns;
  for (const std::string& name : cli::names_of(option)) patterns.push_back(shell_quoted(command.path + " " + name));
  const std::string completion =
      !value.choices.empty()
          ? fmt::format("_penstock_words {}", shell_quoted(fmt::format("{}", fmt::join(value.choices, " "))))
      : value.kind == Value::Kind::file   ? "_penstock_files -f"
      : value.kind == Value::Kind::folder ? "_penstock_files -d"
      : value.kind == Value::Kind::socket ? "_penstock_sockets"
                                          : ":";
  return fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), completion);
}

// ---- zsh

/// Text in a specification of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return replaced(out, "'", "'\\''");
}

std::string zsh_action(const Value& value) {
  if (!value.choices.empty()) return fmt::format("({})", fmt::join(value.choices, " "));
  if (value.kind == Value::Kind::file) return "_files";
  if (value.kind == Value::Kind::socket) return "_penstock_sockets";
  return value.kind == Value::Kind::folder ? "_files -/" : "";
}

void add_zsh_specs(std::vector<std::string>& specs, const CLI::Option& option) {
  const Value value = needed_value(option);
  for (const std::string& name : cli::names_of(option)) {
    std::string spec = option.get_expected_max() > 1 ? "*" + name : name;
    if (value.kind != Value::Kind::none) spec += name.starts_with("--") ? "=" : "+";
    spec += fmt::format("[{}]", zsh_text(one_line(option.get_description())));
    if (value.kind != Value::Kind::none) spec += fmt::format(":{}:{}", zsh_text(value.name), zsh_action(value));
    specs.push_back("'" + spec + "'");
  }
}

/// The function that completes the words that follow a command; its subcommands have functions of their own.
std::string zsh_function(const Command& command) {
  std::vector<std::string> specs;
  for (const CLI::Option* const option : command.options) add_zsh_specs(specs, *option);
  const std::string function = "_penstock" + (command.path.empty() ? "" : "_" + replaced(command.path, " ", "_"));
  if (command.commands.empty()) {
    if (!command.words.empty())
      specs.push_back(fmt::format("'*:value:({})'", fmt::join(command.words, " ")));
    else if (command.takes_files)
      specs.emplace_back("'*:file:_files'");
    return fmt::format("{}() {{\n  _arguments -s \\\n    {}\n}}\n\n", function, fmt::join(specs, " \\\n    "));
  }
  std::vector<std::string> names;
  for (const CLI::App* const sub : command.commands)
    names.push_back(fmt::format("{}:{}", sub->get_name(), zsh_text(sub->get_description())));
  specs.emplace_back("'1:command:->command'");
  specs.emplace_back("'*::argument:->argument'");
  std::string text = fmt::format(
      "{}() {{\n  local context state state_descr line\n  typeset -A opt_args\n  _arguments -C \\\n    {}\n"
      "  case $state in\n  command)\n    local -a commands=(\n",
      function, fmt::join(specs, " \\\n    "));
  for (const std::string& name : names) text += fmt::format("      '{}'\n", name);
  text += "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n";
  for (const CLI::App* const sub : command.commands)
    text += fmt::format("    {0}) {1}_{2} ;;\n", sub->get_name(), function, sub->get_name());
  return text + "    esac ;;\n  esac\n}\n\n";
}

// ---- fish

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

/// The condition under which the words of a command are completed.
std::string fish_condition(const Command& command) {
  if (command.path.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (const std::string_view word : split(command.path, ' '))
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
  return condition;
}

std::string fish_option(const std::string& condition, const CLI::Option& option) {
  const Value value = needed_value(option);
  std::string text = fmt::format("complete -c penstock -n {}", fish_quoted(condition));
  for (const std::string& name : cli::names_of(option))
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!value.choices.empty())
    text += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(value.choices, " "))));
  else if (value.kind == Value::Kind::file)
    text += " -r -F";
  else if (value.kind == Value::Kind::folder)
    text += " -x -a '(__fish_complete_directories)'";
  else if (value.kind == Value::Kind::socket)
    text += fmt::format(" -r -F -a '(path basename -E {}/*.sock)'", control::kSocketFolder);
  else if (value.kind == Value::Kind::word)
    text += " -x";
  return text + fmt::format(" -d {}\n", fish_quoted(one_line(option.get_description())));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string words, options, values;
  for (const Command& command : commands_of(app)) {
    std::vector<std::string> names;
    for (const CLI::Option* const option : command.options) {
      for (const std::string& name : cli::names_of(*option)) names.push_back(name);
      values += bash_value(command, *option);
    }
    options +=
        fmt::format("    {}) options={} commands={} ;;\n", shell_quoted(command.path),
                    shell_quoted(fmt::format("{}", fmt::join(names, " "))),
                    shell_quoted(fmt::format(
                        "{}", fmt::join(command.words.empty() ? names_of(command.commands) : command.words, " "))));
    if (command.path.empty()) continue;
    const std::size_t last = command.path.rfind(' ');
    const std::string parent = last == command.path.npos ? "" : command.path.substr(0, last);
    words += fmt::format("      {}) command={} ;;\n", shell_quoted(parent + ":" + command.path.substr(last + 1)),
                         shell_quoted(command.path));
  }
  return fmt::format(R"(# Completion of penstock for bash; made from the definitions of its commands.

_penstock_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }}
_penstock_files() {{
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
}}
# The names of services, and files.
_penstock_sockets() {{
  local names=({3}/*.sock)
  [[ -e ${{names[0]}} ]] || names=()
  names=("${{names[@]##*/}}")
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen -W "${{names[*]%.sock}}" -- "$current"; compgen -f -- "$current")
}}

_penstock() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command='' options commands i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command:${{COMP_WORDS[i]}}" in
{0}    esac
  done
  # bash splits --option=value at the sign.
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "$command $previous" in
{1}  esac
  case $command in
{2}  esac
  if [[ $current == -* ]]; then
    _penstock_words "$options"
  elif [[ -n $commands ]]; then
    _penstock_words "$commands"
  else
    _penstock_files -f
  fi
}}

complete -F _penstock penstock
)",
                     words, values, options, control::kSocketFolder);
}

std::string zsh_completion(const CLI::App& app) {
  std::string text =
      "#compdef penstock\n# Completion of penstock for zsh; made from the definitions of its commands.\n\n";
  text += fmt::format(
      "# The names of services, and files.\n_penstock_sockets() {{\n  local -a names=({}/*.sock(N:t:r))\n"
      "  _alternative \"names:service:($names)\" 'files:file:_files'\n}}\n\n",
      control::kSocketFolder);
  for (const Command& command : commands_of(app)) text += zsh_function(command);
  return text + "_penstock \"$@\"\n";
}

std::string fish_completion(const CLI::App& app) {
  std::string text =
      "# Completion of penstock for fish; made from the definitions of its commands.\n\ncomplete -c penstock -f\n";
  for (const Command& command : commands_of(app)) {
    const std::string condition = fish_condition(command);
    for (const CLI::Option* const option : command.options) text += fish_option(condition, *option);
    for (const CLI::App* const sub : command.commands) {
      const std::string none_yet = command.path.empty()
                                       ? condition
                                       : fmt::format("{}; and not __fish_seen_subcommand_from {}", condition,
                                                     fmt::join(names_of(command.commands), " "));
      text += fmt::format("complete -c penstock -n {} -a {} -d {}\n", fish_quoted(none_yet), sub->get_name(),
                          fish_quoted(sub->get_description()));
    }
    if (!command.words.empty())
      text += fmt::format("complete -c penstock -n {} -a {}\n", fish_quoted(condition),
                          fish_quoted(fmt::format("{}", fmt::join(command.words, " "))));
    else if (command.takes_files)
      text += fmt::format("complete -c penstock -n {} -F\n", fish_quoted(condition));
  }
  return text;
}

}  // namespace penstock::cli
