// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parameter.h"
#include "base/text_file.h"
#include "base/version.h"
#include "cli/option_value.h"
#include "config/outputs.h"
#include "config/run_section.h"
#include "port/catalog.h"
#include "process/remote_function.h"

namespace penstock::cli {

namespace {

/// Text as roff shows it: nothing in it is a request or an escape.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '|': out += "|\\:"; break;  // a line may end after it
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '`': out += "\\(ga"; break;
      case '\'': out += "\\(aq"; break;
      default: out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return text.empty() ? "" : "\\fI" + roff(text) + "\\fR"; }

std::string heading(std::string_view name, int section, const std::string& date) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} {} {} \"penstock {}\" \"Penstock\"\n.nh\n.ad l\n", roff(upper), section, date,
                     build_info().version);
}

std::string name_section(std::string_view name, std::string_view summary) {
  return fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(summary));
}

/// "  NAME  text" → {"NAME", "text"}: a line of a table such as `describe` makes. Empty: it is another line.
std::pair<std::string_view, std::string_view> table_row(std::string_view line) {
  const std::size_t name = line.find_first_not_of(' ');
  if (name < 2 || name == line.npos) return {};
  const std::size_t gap = line.find("  ", name);
  // A long name is followed by only one space.
  const std::size_t end = gap != line.npos                     ? gap
                          : line.substr(name).starts_with("-") ? line.npos
                                                               : line.find(' ', name);
  if (end == line.npos) return {};
  const std::size_t text = line.find_first_not_of(' ', end);
  return text == line.npos ? std::pair<std::string_view, std::string_view>()
                           : std::pair{line.substr(name, end - name), line.substr(text)};
}

/// Paragraphs and tables of a help text. Lines of a paragraph are joined; rows of tables become tagged paragraphs,
/// those that are indented more than others belong to the row before them.
std::string flowing(std::string_view text) {
  std::string out;
  enum class In { nothing, paragraph, table } in = In::nothing;
  int depth = 0;
  const auto leave = [&] {
    for (; depth > 0; --depth) out += ".RE\n";
  };
  for (const std::string_view line : split(text, '\n')) {
    if (line.find_first_not_of(' ') == line.npos) {
      in = In::nothing;
      continue;
    }
    if (const auto [name, help] = table_row(line); !name.empty()) {
      const int wanted = line.find_first_not_of(' ') >= 4 ? 1 : 0;
      if (in != In::table) leave();
      if (wanted > depth) out += ".RS\n";
      if (wanted < depth) out += ".RE\n";
      depth = wanted;
      out += fmt::format(".TP\n{}\n{}\n", bold(name), roff(help));
      in = In::table;
      continue;
    }
    if (in != In::paragraph) {
      leave();
      if (!out.empty()) out += ".PP\n";  // a heading has begun one
    }
    out += roff(line.substr(line.find_first_not_of(' '))) + '\n';
    in = In::paragraph;
  }
  leave();
  return out;
}

/// "auto|cpu|gpu" of a value that is one of these, else what the value is called; "": a flag.
std::string value_text(const CLI::Option& option) {
  const Value value = value_of(option);
  if (value.kind == Value::Kind::none) return "";
  std::string text = value.name;
  if (!value.choices.empty()) {
    text.clear();
    for (const std::string& choice : value.choices) text += (text.empty() ? "" : "|") + choice;
  }
  return text;
}

std::string option_text(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : names_of(option)) names += (names.empty() ? "" : ", ") + bold(name);
  const std::string value = value_text(option);
  std::string help = option.get_description();
  std::ranges::replace(help, '\n', ' ');
  std::string more;
  if (!option.get_default_str().empty()) more += fmt::format("Default: {}.\n", roff(option.get_default_str()));
  if (!option.get_envname().empty())
    more += fmt::format("The environment variable {} stands for it.\n", bold(option.get_envname()));
  std::string excluded;
  for (const CLI::Option* const other : option.get_excludes())
    excluded += (excluded.empty() ? "" : ", ") + bold(other->get_name());
  if (!excluded.empty()) more += fmt::format("Not together with {}.\n", excluded);
  if (!more.empty() && !help.ends_with('.')) help += '.';
  return fmt::format(".TP\n{}{}\n{}\n{}", names, value.empty() ? "" : " " + italic(value), roff(help), more);
}

std::string argument_text(const CLI::Option& option) {
  std::string help = option.get_description();
  std::ranges::replace(help, '\n', ' ');
  return fmt::format(".TP\n{}\n{}\n", italic(option.get_name(true)), roff(help));
}

std::string positional_text(const CLI::Option& option) {
  const std::string name = option.get_name(true);
  const bool several = option.get_expected_max() > 1;
  const std::string text = italic(name) + (several ? "..." : "");
  return option.get_required() ? text : "[" + text + "]";
}

/// "penstock ctl reload"
std::string full_name(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

std::string options_section(const CLI::App& command) {
  std::string positionals, options;
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional())
      positionals += argument_text(*option);
    else
      options += option_text(*option);
  }
  return (positionals.empty() ? "" : ".SH ARGUMENTS\n" + positionals) + ".SH OPTIONS\n" + options;
}

std::string synopsis(const CLI::App& command) {
  std::string text = fmt::format(".SH SYNOPSIS\n{} [\\fIOPTION\\fR...]", bold(full_name(command)));
  if (!command.get_subcommands({}).empty()) text += " \\fICOMMAND\\fR";
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional()) text += " " + positional_text(*option);
  }
  return text + "\n";
}

std::string commands_section(const CLI::App& command) {
  std::string text;
  for (const CLI::App* const sub : command.get_subcommands({})) {
    std::string arguments, details;
    for (const CLI::Option* const option : sub->get_options()) {
      if (option == sub->get_help_ptr()) continue;
      const bool positional = option->get_positional();
      if (positional) arguments += " " + positional_text(*option);
      details += ".RS\n" + (positional ? argument_text(*option) : option_text(*option)) + ".RE\n";
    }
    text += fmt::format(".TP\n{}{}\n{}\n{}", bold(sub->get_name()), arguments, roff(sub->get_description()), details);
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

/// What the definitions of a command do not say.
struct Extra {
  std::string_view command;   // "": the program
  std::string_view examples;  // lines for a shell
  std::vector<std::pair<std::string_view, std::string_view>> files;
};

const Extra* extra_of(std::string_view command) {
  static const std::vector<Extra> kExtras{
      {"",
       "penstock check /etc/penstock/firewall.yaml\n"
       "systemctl enable --now penstock@firewall\n"
       "penstock ctl stats --watch\n"
       "penstock scan traffic.pcap -S local.rules\n",
       {{"/etc/penstock/NAME.yaml", "the chain of the service penstock@NAME"},
        {"/run/penstock/NAME.sock", "its control socket"},
        {"/usr/share/doc/penstock", "the documentation: service.md, live.md, chain-file.md, control.md and others"},
        {"/usr/share/doc/penstock/examples", "chains that run as they are, to be copied first"}}},
      {"run",
       "penstock run chain.yaml\n"
       "penstock run chain.yaml --workers 2 --duration 10s --report report.json\n"
       "penstock run gateway.yaml --control /run/penstock/gateway.sock --metrics 127.0.0.1:9474\n"
       "penstock run gateway.yaml --take-over gateway\n",
       {{"/run/penstock", "the usual folder of control sockets"},
        {"/var/lib/penstock", "what ipsec must remember when the service starts again, and connections that are kept"},
        {"/var/log/penstock", "logs and reports of the service"}}},
      {"ctl",
       "penstock ctl status\n"
       "penstock ctl --socket firewall stats --watch\n"
       "penstock ctl explain tcp 10.1.0.5:4242 192.0.2.7:443 --in lan\n"
       "penstock ctl trace 10 --filter 'host 10.1.0.5'\n"
       "penstock ctl capture drops.pcapng --function firewall --reason denied\n"
       "penstock ctl conntrack list --proto tcp --dport 443\n"
       "penstock ctl reload --dry-run\n",
       {{"/run/penstock/NAME.sock", "the control socket of the service penstock@NAME"},
        {"/usr/share/doc/penstock/control.md", "the commands in detail, the protocol and its limits"}}},
  };
  const auto found = std::ranges::find(kExtras, command, &Extra::command);
  return found == kExtras.end() ? nullptr : &*found;
}

std::string examples_and_files(std::string_view command) {
  const Extra* const extra = extra_of(command);
  if (extra == nullptr) return "";
  std::string text = fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n.SH FILES\n", roff(extra->examples));
  for (const auto& file : extra->files) text += fmt::format(".TP\n{}\n{}\n", italic(file.first), roff(file.second));
  return text;
}

std::string page_name(const CLI::App& command) { return "penstock-" + command.get_name(); }

GeneratedFile command_page(const CLI::App& command, const std::string& date) {
  const std::string name = page_name(command);
  std::string text = heading(name, 1, date) + name_section(name, command.get_description()) + synopsis(command) +
                     commands_section(command) + options_section(command);
  if (const std::string footer = command.get_footer(); !footer.empty()) text += ".SH NOTES\n" + flowing(footer);
  text += ".SH EXIT STATUS\n0: done; 1: failed at run time; 2: wrong usage or configuration.\n";
  text += examples_and_files(command.get_name());
  text += ".SH SEE ALSO\n\\fBpenstock\\fR(1), \\fBpenstock.yaml\\fR(5)\n";
  return {"man/man1/" + name + ".1", text};
}

std::string section(std::string_view title, std::string_view text) { return fmt::format(".SH {}\n{}", title, text); }

template <typename Kind>
std::string kind_text(const Kind& kind) {
  return fmt::format(".SS {}\n{}\n{}", roff(kind.name), roff(kind.summary), flowing(describe(kind.parameters)));
}

}  // namespace

std::vector<GeneratedFile> command_pages(const CLI::App& app, const std::string& date) {
  std::string see_also;
  std::vector<GeneratedFile> pages;
  for (const CLI::App* const command : app.get_subcommands({})) {
    pages.push_back(command_page(*command, date));
    see_also += bold(page_name(*command)) + "(1),\n";
  }
  pages.push_back(
      {"man/man1/penstock.1", heading("penstock", 1, date) +
                                  name_section("penstock", "run chains of network functions on CPUs and GPUs") +
                                  synopsis(app) + ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n" +
                                  commands_section(app) + options_section(app) +
                                  ".SH EXIT STATUS\n0: done; 1: failed at run time; 2: wrong usage or "
                                  "configuration.\n" +
                                  examples_and_files("") + ".SH SEE ALSO\n" + see_also + "\\fBpenstock.yaml\\fR(5)\n"});
  return pages;
}

GeneratedFile chain_file_page(function::NfKinds functions, const std::string& date) {
  std::string text = heading("penstock.yaml", 5, date) + name_section("penstock.yaml", "chain of network functions");
  text +=
      section("DESCRIPTION",
              "A chain file names the ports where packets enter and leave, the functions in their order, and how to "
              "run them. It is a YAML file for\n.BR penstock\\-run (1)\nand for the service \\fBpenstock@NAME\\fR, "
              "which runs \\fI/etc/penstock/NAME.yaml\\fR.\n.PP\n.nf\n" +
                  roff("ports:\n"
                       "  lan: {af_packet: {interface: eth1}}\n"
                       "  wan: {af_packet: {interface: eth2}}\n"
                       "wire: {lan: wan, wan: lan}\n"
                       "chain:\n"
                       "  - firewall: {rules: rules.txt}\n"
                       "outputs: {report: /var/log/penstock/report.json}\n") +
                  ".fi\n.PP\nRelative paths start at the folder of the file that names them. \\fBwire\\fR says where "
                  "packets of a port leave unless a function chooses another port.\n");
  std::string ports, chain;
  for (const port::PortKind& kind : port::catalog()) ports += kind_text(kind);
  for (const function::NfKind* const kind : functions) chain += kind_text(*kind);
  text += section("PORTS", "Each port has a name and one of these kinds.\n" + ports);
  text +=
      section("CHAIN", "The functions, and their parameters.\n" + chain + ".SS All functions\n" +
                           flowing(describe(function::kCommonParameters)) + ".SS A function in a process of its own\n" +
                           flowing(describe(process::remote_parameters())));
  text += section("RUN", flowing(describe(config::run_parameters())));
  text += section("OUTPUTS", flowing(describe(config::output_parameters(functions))));
  text += section("SEE ALSO", "\\fBpenstock\\fR(1), \\fBpenstock\\-check\\fR(1)\n");
  return {"man/man5/penstock.yaml.5", text};
}

}  // namespace penstock::cli
