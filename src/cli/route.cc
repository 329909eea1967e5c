// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/route.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  std::size_t most_routes = router::kMostRoutes;
  bool strict = false;
  bool json = false;
};

/// An address to look up, as the user wrote it, and its index among the addresses of its family.
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

/// Reads one address per line; further words on a line are mistakes.
void ask_lines(std::string_view text, std::uint32_t first_line, Questions& questions) {
  std::vector<Word> words;
  Line line;
  for (LineReader lines(text, first_line); lines.next(line);) {
    split_words(line.text, words);
    if (words.empty()) continue;
    if (words.size() == 1) {
      questions.add(words[0], "stdin", line.number);
    } else {
      questions.errors.add([&] {
        return Error{
            {"stdin", line.number, words[1].column}, "unexpected text after the address", in_quotes(words[1].text), ""};
      });
    }
  }
}

/// The routes of a family in a table whose values are route indices, so that a result also gives the prefix. Built when
/// the first address is looked up.
template <typename Route, typename Address, typename Fib>
class Table {
 public:
  explicit Table(std::vector<Route> routes) : routes_(std::move(routes)) {}
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }

  /// The index of the route for each address, or router::kNoRoute.
  template <typename Build>
  Result<std::vector<std::uint32_t>> look_up(std::span<const Address> addresses, Build build) {
    std::vector<std::uint32_t> indices(addresses.size());
    if (addresses.empty()) return indices;
    if (!fib_) {
      std::vector<Route> numbered = routes_;
      for (std::size_t i = 0; i < numbered.size(); ++i) numbered[i].value = static_cast<std::uint32_t>(i);
      auto fib = build(std::span<const Route>(numbered));
      if (!fib) return failure(std::move(fib).error());
      fib_ = std::move(*fib);
    }
    fib_->lookup_bulk(addresses, indices);
    return indices;
  }

 private:
  std::vector<Route> routes_;
  std::optional<Fib> fib_;
};

struct Tables {
  Table<router::Route4, Ipv4Address, router::Fib4> v4;
  Table<router::Route6, Ipv6Address, router::Fib6> v6;
  router::NextHopTable next_hops;
  router::Devices devices;
};

/// Warns about what the answers do not consider.
void warn(const RouteOptions& options, const Errors& unsupported, const router::RouteTable& routes) {
  if (!unsupported.empty()) {
    fmt::print(stderr, "{}\npenstock: some routes are not supported, see above; --strict makes this an error\n",
               to_string(unsupported));
  }
  if (routes.v4.empty() && routes.v6.empty()) {
    std::vector<std::string> names;
    for (const std::string& file : options.files) names.push_back(input_name(file));
    fmt::print(stderr, "penstock: no routes in {}\n", printable(fmt::format("{}", fmt::join(names, ", "))));
  }
}

Result<Tables> read_tables(const RouteOptions& options) {
  router::Devices devices;
  auto read = router::read_routes(options.files, devices, options.most_routes);
  if (!read) return failure(std::move(read).error());
  if (options.strict && !read->unsupported.empty()) {
    Errors errors = std::move(read->unsupported);
    errors.push_back(
        {{"--strict", 0, 0}, "the routes are refused because of the unsupported constructs above", "", ""});
    return failure(std::move(errors));
  }
  router::RouteTable& routes = read->value;
  warn(options, read->unsupported, routes);
  return Tables{Table<router::Route4, Ipv4Address, router::Fib4>(std::move(routes.v4)),
                Table<router::Route6, Ipv6Address, router::Fib6>(std::move(routes.v6)), std::move(routes.next_hops),
                std::move(devices)};
}

/// "ADDRESS PREFIX via NEXTHOP dev PORT", or "ADDRESS -".
template <typename Route>
void append_line(std::string& text, const Question& question, const std::vector<Route>& routes, std::uint32_t index,
                 const Tables& tables) {
  text += question.text;
  text += ' ';
  if (index == router::kNoRoute) {
    text += '-';
  } else {
    const router::NextHopTable& next_hops = tables.next_hops;
    const std::uint32_t group = routes[index].value;
    std::string route;
    router::append_route(route, to_string(routes[index].prefix), question.ipv4, next_hops.kind(group),
                         next_hops.hops(group), tables.devices);
    text += printable(route);  // device names come from the file
  }
  text += '\n';
}

/// With the key names of `ip -j route`.
template <typename Route>
nlohmann::ordered_json to_json(const Question& question, const std::vector<Route>& routes, std::uint32_t index,
                               const Tables& tables) {
  using Json = nlohmann::ordered_json;
  Json json{{"address", question.text}};
  if (index == router::kNoRoute) {
    json["dst"] = nullptr;
    return json;
  }
  const router::NextHopTable& next_hops = tables.next_hops;
  const std::uint32_t group = routes[index].value;
  const auto hops = next_hops.hops(group);
  const auto set_hop = [&](Json& into, const router::NextHop& hop) {
    if (hop.has_gateway()) {
      const bool v4 = question.ipv4 && router::is_mapped(hop.gateway);
      into["gateway"] = v4 ? to_string(router::unmapped(hop.gateway)) : to_string(hop.gateway);
    }
    if (hop.device != kNoPort) into["dev"] = tables.devices.name(hop.device);
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

Result<std::string> answer(const RouteOptions& options, const Questions& questions, Tables& tables) {
  const auto engine = *router::parse_fib4_engine(options.engine);
  auto v4 = tables.v4.look_up(questions.v4, [&](auto routes) { return router::Fib4::build(engine, routes); });
  if (!v4) return failure(std::move(v4).error());
  auto v6 = tables.v6.look_up(questions.v6, [](auto routes) { return router::Fib6::build(routes); });
  if (!v6) return failure(std::move(v6).error());
  std::string text;
  if (options.json) text += '[';
  for (const Question& question : questions.all) {
    const auto with = [&](const auto& routes, std::uint32_t index) {
      if (!options.json) return append_line(text, question, routes, index, tables);
      if (&question != &questions.all.front()) text += ",\n ";
      text += to_json(question, routes, index, tables).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    if (question.ipv4) {
      with(tables.v4.routes(), (*v4)[question.number]);
    } else {
      with(tables.v6.routes(), (*v6)[question.number]);
    }
  }
  if (options.json) text += "]\n";
  return text;
}

/// If there is an invalid address, none of its block is answered.
int print_answers(const RouteOptions& options, Questions questions, Tables& tables) {
  if (!questions.errors.empty()) return refuse(std::move(questions.errors).take());
  const auto text = answer(options, questions, tables);
  if (!text) return refuse(text.error());
  const auto written = write_stdout(*text);
  return written ? kDone : fail(written.error());
}

int run_route(const RouteOptions& options) {
  if (const Errors errors = check_stdin("--routes", options.files, !options.addresses.empty(), "addresses");
      !errors.empty()) {
    return refuse(errors);
  }
  Questions questions;
  for (const std::string& address : options.addresses) questions.add({address, 0}, "", 0);
  auto tables = read_tables(options);
  if (!tables) {
    Errors errors = std::move(questions.errors).take();
    append(errors, std::move(tables.error()));
    return refuse(errors);
  }
  if (!options.addresses.empty()) return print_answers(options, std::move(questions), *tables);
  if (options.json) {  // a single array
    const auto text = read_stdin();
    if (!text) return fail(text.error());
    ask_lines(*text, 1, questions);
    return print_answers(options, std::move(questions), *tables);
  }
  for (StdinLines lines;;) {
    const auto text = lines.next();
    if (!text) return fail(text.error());
    if (text->empty()) return kDone;
    Questions asked;
    ask_lines(*text, lines.first_line(), asked);
    if (const int code = print_answers(options, std::move(asked), *tables); code != kDone) return code;
  }
}

}  // namespace

void add_route(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("route", "Look up addresses by longest prefix match");
  command->footer(
      "Prints one line for each address, with the route as `ip -o route` prints it:\n"
      "  ADDRESS PREFIX via NEXTHOP dev PORT\n"
      "  ADDRESS PREFIX dev PORT                                            on the link\n"
      "  ADDRESS PREFIX nexthop via NEXTHOP dev PORT weight N nexthop ...   the flow hash chooses the next hop\n"
      "  ADDRESS TYPE PREFIX                                                blackhole, unreachable ...\n"
      "  ADDRESS -                                                          no route");
  command->add_option("--routes")
      ->description("output of `ip route` or `ip -6 route`; - is standard input; may be repeated")
      ->type_name("FILE")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command->add_option("addresses")
      ->description("IPv4 and IPv6 addresses; default: from standard input, one per line")
      ->type_name("ADDRESS")
      ->expected(0, CLI::detail::expected_max_vector_size)
      ->allow_extra_args();
  command->add_option("--engine")
      ->description("the IPv4 table: dir24 (the default), trie1 or trie4")
      ->type_name("ENGINE")
      ->check(CLI::IsMember({"dir24", "trie1", "trie4"}).description(""));
  command->add_option("--most-routes")
      ->description("maximum number of routes in all files (default: 2000000)")
      ->type_name("N")
      ->check(whole_number(1, 100'000'000));
  command->add_flag("--strict")->description("treat unsupported constructs in the files as errors");
  command->add_flag("--json")->description("print a JSON array");
  command->callback([command, &exit_code] {
    RouteOptions options;
    options.files = command->get_option("--routes")->results();
    options.addresses = command->get_option("addresses")->results();
    if (command->count("--engine") > 0) options.engine = command->get_option("--engine")->as<std::string>();
    if (command->count("--most-routes") > 0) {
      options.most_routes = command->get_option("--most-routes")->as<std::size_t>();
    }
    options.strict = command->count("--strict") > 0;
    options.json = command->count("--json") > 0;
    exit_code = run_route(options);
  });
}

}  // namespace penstock::cli
