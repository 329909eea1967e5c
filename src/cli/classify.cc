// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/classify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "base/text_file.h"
#include "base/units.h"
#include "classify/classifier.h"
#include "cli/chain_arguments.h"
#include "function/port_addresses.h"
#include "function/unsupported.h"
#include "nf/firewall/ipset_reader.h"
#include "nf/firewall/rule_reader.h"
#include "nf/firewall/steps/step_runner.h"
#include "nf/firewall/tuple_reader.h"

namespace penstock::cli {
namespace {

struct ClassifyOptions {
  std::string file;
  std::vector<std::string> tuples;
  std::string engine = "bitvector";
  std::string format = "auto";
  std::string chain, match, policy, decides;  // empty if not given
  std::string in, out;
  std::string ipsets, hook, addresses;  // empty if not given
  std::string state = "new";
  bool state_is_assumed = true;
  bool reply = false;
  std::uint64_t most_rules = firewall::kMostRules;
  std::string unsupported = "refuse";
  bool json = false;
};

/// The tuples of the command line, one per line. The five words of a tuple may be five arguments or one.
std::string join_arguments(const std::vector<std::string>& arguments) {
  std::string text;
  std::size_t words = 0;
  for (const std::string& argument : arguments) {
    words += split_words(argument).size();
    text += argument;
    text += words % 5 == 0 ? '\n' : ' ';
  }
  return text;
}

Result<void> set_addresses(firewall::ReadOptions& read, std::string_view addresses) {
  if (addresses.empty()) return {};
  std::vector<function::PortAddresses> all;
  for (const std::string_view text : split(addresses, ',')) {
    const function::ParsedAddress parsed = function::parse_port_address(text);
    if (!parsed.address.any() || parsed.has_wrong_length) {
      return failure(Error{
          {"--addresses", 0, 0}, "not an address", in_quotes(text), "IPv4 or IPv6 addresses, such as 203.0.113.5/24"});
    }
    all.push_back(parsed.address);
  }
  read.host = firewall::make_host_addresses(all);
  return {};
}

Result<firewall::ReadOptions> read_options(const ClassifyOptions& options) {
  firewall::ReadOptions read;
  read.format = firewall::rule_format_of(options.format);
  if (!options.chain.empty()) read.chain = options.chain;
  if (auto set = set_match(read, options.match, options.decides, {"--match", 0, 0}); !set) return failure(set.error());
  if (!options.policy.empty()) read.policy = firewall::target_of(options.policy);
  read.most_rules = options.most_rules;
  read.leaves_nat_aside = true;
  if (!options.hook.empty()) {
    read.hook = firewall::hook_of(options.hook);
    read.host_has_port = firewall::is_of_host(*read.hook);
  }
  if (auto set = set_addresses(read, options.addresses); !set) return failure(std::move(set).error());
  if (!options.ipsets.empty()) {
    const Result<std::string> text = read_input(options.ipsets);
    if (!text) return failure(text.error());
    auto sets = firewall::read_ipsets(*text, input_name(options.ipsets), options.most_rules);
    if (!sets) return failure(std::move(sets).error());
    read.ipsets = std::make_shared<const firewall::Ipsets>(std::move(*sets));
  }
  for (const std::string& name : {options.in, options.out}) {
    const auto& ports = read.interfaces.ports;
    if (!name.empty() && std::find(ports.begin(), ports.end(), name) == ports.end()) {
      read.interfaces.ports.push_back(name);
    }
  }
  read.interfaces.unknown_is_none = true;
  return read;
}

PortIndex port_of(const classify::Interfaces& interfaces, const std::string& name) {
  const auto at = std::find(interfaces.ports.begin(), interfaces.ports.end(), name);
  return at == interfaces.ports.end() ? kNoPort : static_cast<PortIndex>(at - interfaces.ports.begin());
}

/// Warns if no rule names the interface. It may be misspelt, or one to which only negated conditions apply.
void warn_of_unknown(const classify::Ruleset& rules, classify::Subject subject, std::string_view option,
                     const std::string& name, const classify::Interfaces& interfaces) {
  if (name.empty()) return;
  const bool known = std::any_of(rules.conditions.begin(), rules.conditions.end(), [&](const auto& condition) {
    const std::uint64_t ports = std::uint64_t{condition.high} << 32 | condition.low;
    return condition.subject == subject && (ports >> port_of(interfaces, name) & 1) != 0;
  });
  if (known) return;
  fmt::print(stderr,
             "penstock: no rule names the interface {} ({}), so conditions on interfaces match only if they are "
             "negated\n",
             in_quotes(name), option);
}

/// Warns about what the answers do not consider.
void warn(const classify::Ruleset& rules, const ClassifyOptions& options, const classify::Interfaces& interfaces) {
  const auto of_interface = std::count_if(rules.conditions.begin(), rules.conditions.end(), [&](const auto& condition) {
    return (condition.subject == classify::Subject::in_port && options.in.empty()) ||
           (condition.subject == classify::Subject::out_port && options.out.empty());
  });
  if (of_interface > 0) {
    fmt::print(stderr,
               "penstock: {} on interfaces, which tuples do not have: such conditions match only if they are negated "
               "(use --in and --out to name interfaces)\n",
               format_count(static_cast<std::uint64_t>(of_interface), "condition"));
  }
  if (options.state_is_assumed && rules.tests_connections()) {
    fmt::print(stderr,
               "penstock: some rules test connections: each tuple is taken for the first packet of one (--state names "
               "another state)\n");
  }
  if (rules.has_steps()) {
    fmt::print(
        stderr,
        "penstock: some rules depend on earlier packets, or on what a tuple does not say: limits are taken as not "
        "used up, sets that change as the rules list them, and marks as 0\n");
  }
  warn_of_unknown(rules, classify::Subject::in_port, "--in", options.in, interfaces);
  warn_of_unknown(rules, classify::Subject::out_port, "--out", options.out, interfaces);
}

Result<void> print_lines(const classify::Ruleset& rules, const std::vector<classify::Key>& keys,
                         const std::vector<std::uint32_t>& entries) {
  constexpr std::size_t kFlush = 1 << 16;
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string_view verdict = name(rules.target(entries[i], keys[i].family));
    if (entries[i] == classify::kNoEntry) {
      fmt::format_to(fmt::appender(text), "- {}\n", verdict);
    } else {
      fmt::format_to(fmt::appender(text), "{} {}\n", rules.entries[entries[i]].rule, verdict);
    }
    if (text.size() < kFlush) continue;
    if (auto written = write_stdout({text.data(), text.size()}); !written) return written;
    text.clear();
  }
  return write_stdout({text.data(), text.size()});
}

Result<void> print_json(const classify::Ruleset& rules, const std::vector<classify::Key>& keys,
                        const std::vector<std::uint32_t>& entries) {
  nlohmann::json answers = nlohmann::json::array();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    nlohmann::json answer{{"verdict", name(rules.target(entries[i], keys[i].family))}, {"rule", nullptr}};
    if (entries[i] != classify::kNoEntry) {
      const std::uint32_t index = rules.entries[entries[i]].rule;
      answer["rule"] = {{"index", index}, {"line", rules.rules[index].line}, {"text", rules.rules[index].text}};
    }
    answers.push_back(std::move(answer));
  }
  return write_stdout(answers.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

int classify(const ClassifyOptions& options) {
  const std::array files{options.file, options.ipsets};
  const std::string_view option = options.ipsets == "-" ? "--ipsets" : "--rules";
  if (const Errors errors = check_stdin(option, files, !options.tuples.empty(), "tuples"); !errors.empty()) {
    return refuse(errors);
  }
  const Result<firewall::ReadOptions> read_as = read_options(options);
  if (!read_as) return refuse(read_as.error());
  Result<Read<classify::Ruleset>> read = firewall::read_rule_file(options.file, *read_as);
  if (!read) return refuse(read.error());
  if (!read->unsupported.empty() && options.unsupported == "refuse") {
    return refuse(function::refusal_of(std::move(read->unsupported), {"--rules", 0, 0}, "--unsupported skip"), false);
  }
  const classify::Ruleset& rules = read->value;
  const auto classifier = make_classifier(classify::engine_of(options.engine), rules);
  if (!classifier) return refuse(classifier.error());
  append(read->unsupported, std::move(read->harmless));
  print_left_out(read->unsupported);
  warn(rules, options, read_as->interfaces);

  firewall::TupleSteps steps(rules, **classifier);
  const auto answer = [&](std::string_view text, const char* from, std::uint32_t first_line) {
    Result<std::vector<classify::Key>> keys = firewall::read_tuples(text, from, first_line);
    // If any tuple is wrong, none of its block is answered, so that each answer stays in line with its tuple.
    if (!keys) return refuse(keys.error());
    for (classify::Key& key : *keys) {
      key.in_port = port_of(read_as->interfaces, options.in);
      key.out_port = port_of(read_as->interfaces, options.out);
      key.connection = classify::number_of({*classify::connection_state_named(options.state), options.reply});
    }
    std::vector<std::uint32_t> entries(keys->size());
    (*classifier)->classify(*keys, entries.data());
    for (std::size_t i = 0; rules.has_steps() && i < keys->size(); ++i)
      entries[i] = steps.decide((*keys)[i], entries[i]);
    const Result<void> written = options.json ? print_json(rules, *keys, entries) : print_lines(rules, *keys, entries);
    return written ? kDone : fail(written.error());
  };
  if (!options.tuples.empty()) return answer(join_arguments(options.tuples), "arguments", 1);
  if (options.json) {  // a single array
    const Result<std::string> text = read_stdin();
    return text ? answer(*text, "stdin", 1) : fail(text.error());
  }
  for (StdinLines lines;;) {
    const Result<std::string_view> text = lines.next();
    if (!text) return fail(text.error());
    if (text->empty()) return kDone;
    if (const int code = answer(*text, "stdin", lines.first_line()); code != kDone) return code;
  }
}

}  // namespace

void add_classify(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ClassifyOptions>();
  CLI::App* command = app.add_subcommand("classify", "Find the firewall rule that decides");
  command
      ->add_option(
          "--rules", options->file,
          "output of iptables-save, ip6tables-save or `nft -j list ruleset`, a file of nft, or a ClassBench set; - is "
          "standard input")
      ->required();
  command->add_option("tuples", options->tuples,
                      "SOURCE DESTINATION PROTOCOL SOURCE-PORT DESTINATION-PORT; default: from stdin, one per line");
  command->add_option("--engine", options->engine, "classification algorithm")
      ->check(CLI::IsMember({"bitvector", "linear", "rfc"}))
      ->capture_default_str();
  command->add_option("--format", options->format, "format of the rules")
      ->check(CLI::IsMember({"auto", "classbench", "iptables", "ip6tables", "nftables", "nft"}))
      ->capture_default_str();
  command->add_option("--chain", options->chain, "iptables: the chain where packets start, instead of FORWARD");
  command->add_option("--policy", options->policy, "verdict if no rule matches, instead of the chain's policy")
      ->check(CLI::IsMember({"accept", "drop", "reject"}));
  command
      ->add_option("--match", options->match,
                   "ClassBench: verdict of packets that match a rule, instead of accept; first and last: the same as "
                   "--decides")
      ->check(CLI::IsMember({"accept", "drop", "reject", "first", "last"}));
  command->add_option("--decides", options->decides, "which of several matching rules decides, instead of the first")
      ->check(CLI::IsMember({"first", "last"}));
  command->add_option("--in", options->in, "interface that the packets arrive on");
  command->add_option("--out", options->out, "interface that the packets leave on");
  command
      ->add_option("--ipsets", options->ipsets,
                   "iptables: output of `ipset save`, with the sets that rules use; - is standard input")
      ->type_name("FILE");
  command
      ->add_option("--hook", options->hook,
                   "the hook whose chains apply, or whose tables before filter apply too, as in a chain with `hook`")
      ->check(CLI::IsMember({"prerouting", "input", "forward", "output", "postrouting"}));
  command
      ->add_option("--addresses", options->addresses,
                   "the host's own addresses, separated by commas, for rules that ask for local ones")
      ->type_name("ADDRESSES");
  CLI::Option* const state =
      command->add_option("--state", options->state, "state of the packets' connection, for rules that test it")
          ->check(CLI::IsMember({"new", "established", "related", "invalid", "untracked"}))
          ->capture_default_str();
  command->add_flag("--reply", options->reply, "the packets go against the direction of their connection's first one")
      ->needs(state);
  command
      ->add_option("--most-rules", options->most_rules,
                   "maximum number of rules, both in the file and after calls to chains are expanded")
      ->check(whole_number(1, 100'000'000))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--unsupported", options->unsupported,
                   "unsupported constructs: refuse the rules, or skip these constructs, which may change verdicts")
      ->check(CLI::IsMember({"refuse", "skip"}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print the answers as JSON, with the line and text of each rule");
  command->callback([options, state, &exit_code] {
    options->state_is_assumed = state->count() == 0;
    exit_code = classify(*options);
  });
}

}  // namespace penstock::cli
