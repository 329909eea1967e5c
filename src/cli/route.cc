// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/route.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error_list.h"
#include "base/text_file.h"
#include "cli/chain_arguments.h"
#include "nf/router/devices.h"
#include "nf/router/fib.h"
#include "nf/router/route_format.h"
#include "nf/router/route_reader.h"
#include "nf/router/route_words.h"

namespace penstock::cli {
namespace {

struct RouteOptions {
  std::vector<std::string> files;
  std::vector<std::string> addresses;
  std::string engine = "dir24";
  bool strict = false;
  bool json = false;
};

/// An address to look up, as the user wrote it, and its number among those of its family.
struct Question {
  std::string_view text;
  bool ipv4 = false;
  std::size_t number = 0;
};

struct Questions {
  std::vector<Question> all;
  std::vector<Ipv4Address> v4;
  std::vector<Ipv6Address> v6;
  ErrorList errors;

  void add(const Word& word, const std::string& file, std::uint32_t line) {
    if (const auto address4 = parse_ipv4(word.text)) {
      all.push_back({word.text, true, v4.size()});
      v4.push_back(*address4);
    } else if (const auto address6 = parse_ipv6(word.text)) {
      all.push_back({word.text, false, v6.size()});
      v6.push_back(*address6);
    } else {
      errors.add([&] {
        return Error{{file, line, word.column}, "not an address", in_quotes(word.text), "an IPv4 or IPv6 address"};
      });
    }
  }
};

/// The routes, and for each address the index of its route (or router::kNoRoute) among those of its family.
struct Answers {
  router::RouteTable routes;
  router::Devices devices;
  std::vector<std::uint32_t> v4;
  std::vector<std::uint32_t> v6;
};

/// One address a line; what stands there besides is a mistake.
void ask_lines(std::string_view text, Questions& questions) {
  std::vector<Word> words;
  Line line;
  for (LineReader lines(text); lines.next(line);) {
    split_words(line.text, words);
    if (words.empty()) continue;
    if (words.size() == 1) {
      questions.add(words[0], "stdin", line.number);
    } else {
      questions.errors.add([&] {
        return Error{{"stdin", line.number, words[1].column}, "more than an address", in_quotes(words[1].text), ""};
      });
    }
  }
}

/// Looks up in a table whose values are the routes' own indices, so that a result names its prefix too.
template <typename Route, typename Address, typename Build>
Result<std::vector<std::uint32_t>> look_up(std::vector<Route> routes, std::span<const Address> addresses, Build build) {
  std::vector<std::uint32_t> indices(addresses.size());
  if (addresses.empty()) return indices;
  for (std::size_t i = 0; i < routes.size(); ++i) routes[i].value = static_cast<std::uint32_t>(i);
  auto fib = build(std::span<const Route>(routes));
  if (!fib) return failure(std::move(fib).error());
  fib->lookup_bulk(addresses, indices);
  return indices;
}

Result<Answers> answer(const RouteOptions& options, const Questions& questions) {
  Answers answers;
  auto read = router::read_routes(options.files, answers.devices);
  if (!read) return failure(std::move(read).error());
  if (!read->unsupported.empty()) {
    if (options.strict) return failure(std::move(read->unsupported));
    fmt::print(stderr, "{}\npenstock: not all of the routes are supported; see above (--strict makes this an error)\n",
               to_string(read->unsupported));
  }
  answers.routes = std::move(read->value);
  const auto engine = *router::parse_fib4_engine(options.engine);
  auto v4 = look_up<router::Route4, Ipv4Address>(answers.routes.v4, questions.v4,
                                                 [&](auto routes) { return router::Fib4::build(engine, routes); });
  if (!v4) return failure(std::move(v4).error());
  auto v6 = look_up<router::Route6, Ipv6Address>(answers.routes.v6, questions.v6,
                                                 [](auto routes) { return router::Fib6::build(routes); });
  if (!v6) return failure(std::move(v6).error());
  answers.v4 = std::move(*v4);
  answers.v6 = std::move(*v6);
  return answers;
}

/// "ADDRESS PREFIX via NEXTHOP dev PORT", or "ADDRESS -".
template <typename Route>
void append_line(std::string& text, const Question& question, const std::vector<Route>& routes, std::uint32_t index,
                 const Answers& answers) {
  text += question.text;
  text += ' ';
  if (index == router::kNoRoute) {
    text += '-';
  } else {
    const router::NextHopTable& next_hops = answers.routes.next_hops;
    const std::uint32_t group = routes[index].value;
    router::append_route(text, to_string(routes[index].prefix), question.ipv4, next_hops.kind(group),
                         next_hops.hops(group), answers.devices);
  }
  text += '\n';
}

/// With the names of `ip -j route`.
template <typename Route>
nlohmann::ordered_json to_json(const Question& question, const std::vector<Route>& routes, std::uint32_t index,
                               const Answers& answers) {
  using Json = nlohmann::ordered_json;
  Json json{{"address", question.text}};
  if (index == router::kNoRoute) {
    json["dst"] = nullptr;
    return json;
  }
  const router::NextHopTable& next_hops = answers.routes.next_hops;
  const std::uint32_t group = routes[index].value;
  const auto hops = next_hops.hops(group);
  const auto set_hop = [&](Json& into, const router::NextHop& hop) {
    if (hop.has_gateway()) {
      const bool v4 = question.ipv4 && router::is_mapped(hop.gateway);
      into["gateway"] = v4 ? to_string(router::unmapped(hop.gateway)) : to_string(hop.gateway);
    }
    if (hop.device != kNoPort) into["dev"] = answers.devices.name(hop.device);
  };
  json["type"] = router::to_string(next_hops.kind(group));
  json["dst"] = to_string(routes[index].prefix);
  if (hops.size() == 1) {
    set_hop(json, hops[0]);
    return json;
  }
  Json& list = json["nexthops"] = Json::array();
  for (const router::NextHop& hop : hops) {
    Json item = Json::object();
    set_hop(item, hop);
    item["weight"] = hop.weight;
    list.push_back(std::move(item));
  }
  return json;
}

std::string print(const RouteOptions& options, const Questions& questions, const Answers& answers) {
  std::string text;
  if (options.json) text += '[';
  for (const Question& question : questions.all) {
    const auto with = [&](const auto& routes, std::uint32_t index) {
      if (!options.json) return append_line(text, question, routes, index, answers);
      if (&question != &questions.all.front()) text += ",\n ";
      text += to_json(question, routes, index, answers).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    if (question.ipv4) {
      with(answers.routes.v4, answers.v4[question.number]);
    } else {
      with(answers.routes.v6, answers.v6[question.number]);
    }
  }
  if (options.json) text += "]\n";
  return text;
}

int run_route(const RouteOptions& options) {
  Questions questions;
  std::string input;
  for (const std::string& address : options.addresses) questions.add({address, 0}, "", 0);
  if (options.addresses.empty()) {
    auto text = read_stdin();
    if (!text) {
      fmt::print(stderr, "{}\n", to_string(text.error()));
      return kFailed;
    }
    input = std::move(*text);
    ask_lines(input, questions);
  }
  auto answers = answer(options, questions);
  Errors errors = std::move(questions.errors).take();
  if (!answers) append(errors, answers.error());
  if (!errors.empty()) {
    fmt::print(stderr, "{}\n", to_string(errors));
    return kWrongUsage;
  }
  if (auto written = write_stdout(print(options, questions, *answers)); !written) {
    fmt::print(stderr, "{}\n", to_string(written.error()));
    return kFailed;
  }
  return kDone;
}

}  // namespace

void add_route(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("route", "Find the routes of addresses by longest prefix match");
  command->footer(
      "A line for each address, with the route as `ip -o route` prints it:\n"
      "  ADDRESS PREFIX via NEXTHOP dev PORT\n"
      "  ADDRESS PREFIX dev PORT                                            on the link\n"
      "  ADDRESS PREFIX nexthop via NEXTHOP dev PORT weight N nexthop ...   the flows' hashes choose\n"
      "  ADDRESS TYPE PREFIX                                                blackhole, unreachable ...\n"
      "  ADDRESS -                                                          no route");
  command->add_option("--routes")
      ->description("What `ip route` or `ip -6 route` prints; may be given again")
      ->type_name("FILE")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command->add_option("addresses")
      ->description("IPv4 and IPv6 addresses; where none are given, standard input has one a line")
      ->type_name("ADDRESS")
      ->expected(0, CLI::detail::expected_max_vector_size)
      ->allow_extra_args();
  command->add_option("--engine")
      ->description("The IPv4 table: dir24 (the default), trie1 or trie4")
      ->check(CLI::IsMember({"dir24", "trie1", "trie4"}));
  command->add_flag("--strict")->description("What is not supported in the files is an error");
  command->add_flag("--json")->description("Print a JSON array");
  command->callback([command, &exit_code] {
    RouteOptions options;
    options.files = command->get_option("--routes")->results();
    options.addresses = command->get_option("addresses")->results();
    if (command->count("--engine") > 0) options.engine = command->get_option("--engine")->as<std::string>();
    options.strict = command->count("--strict") > 0;
    options.json = command->count("--json") > 0;
    exit_code = run_route(options);
  });
}

}  // namespace penstock::cli
