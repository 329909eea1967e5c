// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/ctl.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/socket_path.h"
#include "base/text_file.h"
#include "base/units.h"
#include "cli/capture_file.h"
#include "cli/chain_arguments.h"
#include "cli/conntrack_save.h"
#include "cli/conntrack_text.h"
#include "cli/ctl_text.h"
#include "cli/stop_signals.h"
#include "control/client.h"
#include "port/live/file_descriptor.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;
using control::Command;

struct CtlArguments {
  std::string socket;
  bool json = false;
  Json request = Json::object();  // members of the request that are particular to its command
  std::uint64_t timeout_s = 10;   // of a command that is answered at once
  bool watch = false;
  double interval_s = 1;
  std::string file;  // of a capture, or of saved connections
};

/// Whether a socket of another type listens there, as proxies and functions have.
bool is_of_another_service(const std::string& path) {
  const port::FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = socket_address(path);
  return path.size() < sizeof address.sun_path &&
         ::connect(probe.get(), generic_address(address), sizeof address) != 0 && errno == EPROTOTYPE;
}

/// The socket that the user has not named: the only one in the usual folder.
Result<std::string> usual_socket() {
  std::vector<std::string> sockets;
  std::error_code none;
  for (std::filesystem::directory_iterator file(control::kSocketFolder, none), end; !none && file != end;
       file.increment(none)) {
    if (file->path().extension() == ".sock" && !is_of_another_service(file->path().string()))
      sockets.push_back(file->path().string());
  }
  if (sockets.size() == 1) return sockets.front();
  std::ranges::sort(sockets);
  return failure(
      Error{{},
            sockets.empty() ? fmt::format("no run listens in {}", control::kSocketFolder) : "several runs listen",
            fmt::format("{}", fmt::join(sockets, ", ")),
            sockets.empty() ? "--socket PATH, with the path of `penstock run --control PATH` or of outputs: "
                              "{control: PATH}"
                            : "--socket PATH, with one of these"});
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// With --json, also as JSON, with the kind that a script needs.
int fail_to(const control::NoResult& failure, const CtlArguments& arguments) {
  print_errors(failure.errors);
  if (failure.kind == name(control::Failure::mistakes)) fmt::print(stderr, "refused, see above; nothing has changed\n");
  if (arguments.json) {
    const std::string_view kind = failure.kind.empty() ? "connection" : std::string_view(failure.kind);
    const Json error{{"error", control::failure_json(kind, failure.errors)}};
    if (const auto written = write_stdout(json_text(error, arguments.watch ? -1 : 2)); !written)
      return fail(written.error());
  }
  return code_of(failure);
}

/// What to print of the result of a command other than `stats --watch`.
std::string text_of(Command command, const Json& result) {
  switch (command) {
    case Command::status: return status_text(result);
    case Command::stats: return stats_text(result);
    case Command::explain: return explanation_text(result);
    case Command::trace:
    case Command::capture: return observation_text(result);
    case Command::reload:
    case Command::rollback: return reload_text(result);
    case Command::drain: {
      const Json& packets = result.at("packets");
      return fmt::format("the run has ended: {} in, {} forwarded, {} dropped, {} consumed\n",
                         format_count(packets.at("in").get<std::uint64_t>(), "packet"),
                         format_count(packets.at("forwarded").get<std::uint64_t>()),
                         format_count(packets.at("dropped").get<std::uint64_t>()),
                         format_count(packets.at("consumed").get<std::uint64_t>()));
    }
    case Command::stop: return "the run is ending\n";
    case Command::log_level: {
      const auto level = result.at("level").get<std::string>(), before = result.at("before").get<std::string>();
      return printable(level) + (level == before ? "" : ", was " + printable(before)) + "\n";
    }
    case Command::conntrack:  // has texts of its own
    case Command::hand_over:  // not for operators
    case Command::reopen_logs: break;
  }
  return "the logs are reopened\n";
}

/// With which a run has ended, such as outputs that it could not write.
Errors errors_of_run(const Json& result) {
  Errors errors;
  for (const Json& error : result.at("errors")) errors.push_back({{}, error.get<std::string>(), "", ""});
  if (!errors.empty())
    errors.push_back({{}, "the run has ended with errors, see above: outputs may be missing or incomplete", "", ""});
  return errors;
}

/// How long the answer may take; empty: as long as the run needs.
control::Client::TimeLimit limit_of(Command command, const CtlArguments& arguments) {
  if (control::kind_of(command).answers_at_once) return std::chrono::seconds(arguments.timeout_s);
  // A trace or capture with a time limit ends by itself, and a moment later the answer comes.
  constexpr std::chrono::seconds kMoment{10};
  const auto ends_after = arguments.request.find("timeout");
  if (ends_after == arguments.request.end()) return std::nullopt;
  return kMoment + std::chrono::seconds(ends_after->get<std::uint64_t>());
}

/// Waits for a while, or for the user's signal.
void pause(double seconds) { static_cast<void>(::poll(nullptr, 0, static_cast<int>(seconds * 1000))); }

int watch(control::Client& client, const CtlArguments& arguments) {
  const std::atomic<bool>& stop = stop_on_signals();
  std::signal(SIGPIPE, SIG_DFL);  // `| head` ends it silently
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && !arguments.json;
  std::optional<Json> before;
  for (bool first = true; !stop.load(); first = false) {
    auto now = client.ask(Command::stats, Json::object(), limit_of(Command::stats, arguments));
    if (!now) return fail_to(now.error(), arguments);
    std::string text = arguments.json ? json_text(*now, -1) : before ? rates_text(*before, *now) : stats_text(*now);
    // The cursor goes home, and what is left of the last screen is cleared.
    if (terminal) text.insert(0, "\033[H\033[J");
    if (!terminal && !arguments.json && !first) text.insert(0, 1, '\n');
    if (const auto written = write_stdout(text); !written) return fail(written.error());
    before = std::move(*now);
    pause(arguments.interval_s);
  }
  return kDone;
}

int watch_packets(control::Client& client, const CtlArguments& arguments) {
  Errors errors;
  const auto print = [&](const Json& event) {
    const std::string text = arguments.json ? json_text(event, -1) : printable_lines(event.at("text"));
    if (errors.empty()) {
      if (auto written = write_stdout(text); !written) errors = std::move(written.error());
    }
  };
  const auto result = client.ask(Command::trace, arguments.request, print, limit_of(Command::trace, arguments));
  if (!errors.empty()) return fail(errors);
  if (!result) return fail_to(result.error(), arguments);
  return print_results(arguments.json ? json_text(*result, -1) : observation_text(*result), false, {});
}

int capture(control::Client& client, const CtlArguments& arguments) {
  if (const auto possible = CaptureFile::check(arguments.file); !possible) return refuse(possible.error());
  if (arguments.file != "-") {
    if (const auto writable = check_writable(arguments.file); !writable) return fail(writable.error());
  }
  // A request that is refused leaves an older file as it is.
  std::optional<CaptureFile> file;
  Errors errors;
  const auto create = [&] {
    auto created = CaptureFile::create(arguments.file);
    if (created) {
      file = std::move(*created);
    } else {
      errors = std::move(created.error());
    }
  };
  const auto add = [&](const Json& event) {
    if (!file && errors.empty()) create();
    if (!errors.empty()) return;
    if (auto added = file->add(event); !added) errors = std::move(added.error());
  };
  const auto result = client.ask(Command::capture, arguments.request, add, limit_of(Command::capture, arguments));
  if (result && !file && errors.empty()) create();
  if (!errors.empty()) return fail(errors);
  if (!result) return fail_to(result.error(), arguments);
  const bool to_stderr = arguments.file == "-";
  return print_results(arguments.json ? json_text(*result, 2) : observation_text(*result), to_stderr, {});
}

/// `conntrack`: lines of connections or events, then how many there were.
int show_connections(control::Client& client, const CtlArguments& arguments) {
  const std::string action = arguments.request.at("action").get<std::string>();
  if (action == "save") {
    if (arguments.file.empty()) return refuse({Error{{}, "conntrack save: no file", "", "conntrack save FILE"}});
    auto saved = save_connections(client, arguments.request, arguments.file);
    if (!saved)
      return saved.error().kind == kNotWritable ? refuse(saved.error().errors) : fail_to(saved.error(), arguments);
    const std::string text =
        fmt::format("{} saved\n", format_count(saved->at("connections").get<std::uint64_t>(), "connection"));
    return print_results(arguments.json ? json_text(*saved, 2) : text, false, {});
  }
  if (!arguments.file.empty())
    return refuse({Error{{},
                         fmt::format("a file, but conntrack {} writes none", action),
                         in_quotes(arguments.file),
                         "conntrack save FILE"}});
  std::signal(SIGPIPE, SIG_DFL);  // `| head` ends it silently
  Errors errors;
  const auto print = [&](const Json& event) {
    if (!errors.empty()) return;
    if (!arguments.json && event.contains("kind") && event.at("kind") == "lost") {
      fmt::print(stderr, "{} lost\n", format_count(event.at("events").get<std::uint64_t>(), "event"));
      return;
    }
    const std::string text = arguments.json       ? json_text(event, -1)
                             : action == "events" ? connection_event_line(event)
                                                  : connection_line(event);
    if (auto written = write_stdout(text); !written) errors = std::move(written.error());
  };
  const bool lines = action == "list" || action == "events";
  const auto result = lines ? client.ask(Command::conntrack, arguments.request, print)
                            : client.ask(Command::conntrack, arguments.request);
  if (!errors.empty()) return fail(errors);
  if (!result) return fail_to(result.error(), arguments);
  if (arguments.json) return print_results(json_text(*result, lines ? -1 : 2), lines, {});
  if (action == "count") return print_results(connection_count_text(*result), false, {});
  if (action == "flush") {
    return print_results(
        fmt::format("{} removed\n", format_count(result->at("removed").get<std::uint64_t>(), "connection")), false, {});
  }
  const Json& count = result->at(action == "list" ? "connections" : "events");
  const std::uint64_t lost = action == "list" ? 0 : result->at("lost").get<std::uint64_t>();
  return print_results(
      fmt::format("{}{}\n", format_count(count.get<std::uint64_t>(), action == "list" ? "connection" : "event"),
                  lost == 0 ? "" : fmt::format(", {} lost", format_count(lost))),
      true, {});
}

int run_command(Command command, const CtlArguments& arguments) {
  std::string path = arguments.socket;
  if (path.empty()) {
    auto usual = usual_socket();
    if (!usual) return fail_to({"", usual.error()}, arguments);
    path = std::move(*usual);
  }
  auto client = control::Client::connect(path);
  if (!client) return fail_to({"", client.error()}, arguments);
  try {
    if (arguments.watch) return watch(*client, arguments);
    if (command == Command::trace) return watch_packets(*client, arguments);
    if (command == Command::capture) return capture(*client, arguments);
    if (command == Command::conntrack) return show_connections(*client, arguments);
    const auto result = client->ask(command, arguments.request, limit_of(command, arguments));
    if (!result) return fail_to(result.error(), arguments);
    return print_results(arguments.json ? json_text(*result, 2) : text_of(command, *result), false,
                         command == Command::drain ? errors_of_run(*result) : Errors());
  } catch (const Json::exception& error) {
    return fail({Error{{path, 0, 0}, "an answer of another version of penstock", error.what(), "the same version"}});
  }
}

void add_watch(CLI::App& command, CtlArguments& arguments) {
  command
      .add_option_function<std::string>(
          "--watch",
          [&arguments](const std::string& text) {
            constexpr double kLeast = 0.1, kMost = 600;
            const auto seconds = text.empty() ? std::optional(1.0) : parse_number(text);
            if (!seconds || !(*seconds >= kLeast && *seconds <= kMost)) {
              throw CLI::ValidationError(fmt::format("--watch: wrong value: found {}, expected seconds in {}..{}",
                                                     in_quotes(text), kLeast, kMost));
            }
            arguments.watch = true;
            arguments.interval_s = *seconds;
          },
          "print the rates again and again, every second or in this interval")
      ->expected(0, 1)
      ->type_name("[SECONDS]");
}

CLI::Validator one_of(std::span<const std::string_view> choices) {
  return {[choices](std::string& text) {
            if (std::ranges::find(choices, text) != choices.end()) return std::string();
            return fmt::format("wrong value: found {}, expected one of {}", in_quotes(text), fmt::join(choices, ", "));
          },
          ""};
}

void add_argument(CLI::App& command, CtlArguments& arguments, const control::Argument& argument) {
  const std::string name(argument.name);
  const std::string help(argument.help);
  std::string option = "--" + name;
  std::ranges::replace(option, '_', '-');
  const auto set = [&arguments, name](auto value) { arguments.request[name] = std::move(value); };
  switch (argument.type) {
    case control::Argument::Type::flag:
      command.add_flag_callback(
          option, [set] { set(true); }, help);
      break;
    case control::Argument::Type::number:
      command.add_option_function<std::uint64_t>(argument.positional ? name : option, set, help)
          ->transform(whole_number(argument.least, argument.most))
          ->type_name("N")
          ->required(argument.required);
      break;
    case control::Argument::Type::choice:
      command.add_option_function<std::string>(argument.positional ? name : option, set, help)
          ->check(one_of(argument.choices))
          ->type_name(fmt::format("{}", fmt::join(argument.choices, "|")))
          ->required(argument.required);
      break;
    case control::Argument::Type::text:
      if (!argument.positional) {
        command.add_option_function<std::string>(option, set, help)->required(argument.required);
        break;
      }
      command
          .add_option_function<std::vector<std::string>>(
              name, [set](const std::vector<std::string>& words) { set(fmt::format("{}", fmt::join(words, " "))); },
              help)
          ->required(argument.required);
  }
}

}  // namespace

int code_of(const control::NoResult& failure) {
  return failure.kind == name(control::Failure::request) || failure.kind == name(control::Failure::mistakes)
             ? kWrongUsage
             : kFailed;
}

void add_ctl(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CtlArguments>();
  CLI::App* command =
      app.add_subcommand("ctl", "Control a run: status, counters, what happens to packets, reload, end");
  command->require_subcommand(1);
  command
      ->add_option("--socket", arguments->socket,
                   fmt::format("the run's socket (`penstock run --control`), or NAME for {0}/NAME.sock; default: the "
                               "only one in {0}",
                               control::kSocketFolder))
      ->transform(socket_name())
      ->check(not_empty("a path, or a name"))
      ->type_name("SOCKET")
      ->envname("PENSTOCK_SOCKET");
  command->add_flag(
      "--json", arguments->json,
      "print the result as JSON, as it came (described in control.md: in docs/, or /usr/share/doc/penstock/)");
  for (const control::CommandKind& kind : control::commands()) {
    if (!kind.is_for_operators) continue;
    CLI::App* const sub = command->add_subcommand(std::string(kind.name), std::string(kind.help));
    sub->fallthrough();  // --socket and --json may follow
    for (const control::Argument& argument : kind.arguments) add_argument(*sub, *arguments, argument);
    if (kind.answers_at_once) {
      sub->add_option("--timeout", arguments->timeout_s, "seconds to wait for the answer; default: 10")
          ->transform(whole_number(1, 86'400))
          ->type_name("N");
    }
    if (kind.command == Command::stats) add_watch(*sub, *arguments);
    if (kind.command == Command::capture)
      sub->add_option("FILE", arguments->file, "the file to write; -: standard output")->required();
    if (kind.command == Command::conntrack)
      sub->add_option("FILE", arguments->file, "save: the file to write, for `connections_file` of a later run");
    sub->callback([arguments, &exit_code, asked = kind.command] { exit_code = run_command(asked, *arguments); });
  }
}

}  // namespace penstock::cli
