// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer's command line; README.md in this folder is its manual page.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evasion/drawing.h"
#include "evasion/fuzzer.h"
#include "evasion/minimise.h"

namespace penstock::evasion {

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  FuzzOptions fuzz;
  std::string mode = "both", pcap;
  std::vector<std::string> set, hosts;
  std::int64_t replay = -1;
  bool minimise = false, list = false;
  std::uint64_t explain = 0;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void show_progress(const FuzzResult& result, const FuzzOptions& options, Clock::time_point begin) {
  std::uint64_t done = 0;
  for (const auto& [mode, counts] : result.counts) done += counts.conversations;
  const double seconds = seconds_since(begin);
  fmt::print(stderr, "\r{} of {} conversations, {} evasions, {:.0f} a second   ", done,
             options.conversations * options.modes.size(), result.findings.size(), static_cast<double>(done) / seconds);
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : " ") + std::string(name);
  return text.empty() ? "none" : text;
}

void print_summary(const FuzzResult& result, double seconds) {
  fmt::print("the judge: Linux {}\n", KernelHost::kernel_release());
  for (const auto& [mode, counts] : result.counts) {
    fmt::print("{}: {} conversations, {} packets; ", name_of(mode), counts.conversations, counts.packets);
    const double share = 100.0 / static_cast<double>(std::max<std::uint64_t>(counts.conversations, 1));
    if (mode == Mode::off_path) {
      fmt::print("the host read the signature in {} ({:.1f} %), {} alerts where it did not\n", counts.read,
                 static_cast<double>(counts.read) * share, counts.false_alerts);
    } else {
      fmt::print("stopped in {} ({:.1f} %), with an alert in {}\n", counts.stopped,
                 static_cast<double>(counts.stopped) * share, counts.alerted);
    }
  }
  std::map<std::string_view, std::uint64_t> by_move;
  for (const Finding& evasion : result.findings) {
    std::vector<std::string_view> moves = evasion.moves;
    std::sort(moves.begin(), moves.end());
    moves.erase(std::unique(moves.begin(), moves.end()), moves.end());
    for (const std::string_view move : moves) ++by_move[move];
  }
  fmt::print("{} evasions in {:.1f} s\n", result.findings.size(), seconds);
  for (const auto& [move, count] : by_move) fmt::print("  {:6} with {}\n", count, move);
}

/// Minimises each evasion, and draws one of each class.
int classify(const Arguments& arguments, const FuzzResult& result) {
  struct Class {
    std::uint64_t count = 0;
    std::string drawing;
  };
  std::map<std::string, Class> classes;
  std::uint64_t done = 0, lost = 0;
  std::unique_ptr<Replay> bed;
  std::optional<HostProfile> profile;
  for (const Finding& evasion : result.findings) {
    if (++done > arguments.explain) break;
    if (profile != evasion.profile) {
      bed.reset();
      auto made = Replay::make(evasion.profile, arguments.fuzz.sensor);
      if (!made) return 1;
      bed = std::move(*made);
      profile = evasion.profile;
    }
    Script script = generate(arguments.fuzz.seed, evasion.index, arguments.fuzz.generator);
    // Attackers differ between plays, so their fragments and segments may come to different workers.
    const bool innocent = arguments.fuzz.generator.innocent;
    const auto is_one = [&](const Replay::Outcome& outcome) {
      if (!innocent) return outcome.evaded;
      return evasion.mode == Mode::off_path ? outcome.alerted : !outcome.transcript.read_signature;
    };
    const auto evades = [&](const Script& candidate) {
      for (unsigned i = 0; i < evasion.workers; ++i) {
        if (is_one(bed->play(candidate, evasion.mode, evasion.workers))) return true;
      }
      return false;
    };
    if (!evades(script)) {  // not on its own: another conversation or timing contributed
      ++lost;
      fmt::print("did not come again: --replay {} --workers {} {}: {}\n", evasion.index, evasion.workers,
                 name_of(evasion.mode), joined(evasion.moves));
      continue;
    }
    script = minimised(std::move(script), evades);
    Replay::Outcome outcome = bed->play(script, evasion.mode, evasion.workers);
    for (int i = 0; i < 20 && !is_one(outcome); ++i) outcome = bed->play(script, evasion.mode, evasion.workers);
    Class& one = classes[std::string(name_of(evasion.mode)) + ": " + outline_of(script)];
    if (one.count++ == 0) {
      one.drawing = fmt::format("--replay {} --workers {} --host {} --minimise\n{}", evasion.index, evasion.workers,
                                name_of(evasion.profile), drawing_of(outcome.transcript, script));
    }
  }
  std::vector<std::pair<std::string, Class>> order(classes.begin(), classes.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  for (const auto& [outline, one] : order) fmt::print("\n== {} times: {}\n{}", one.count, outline, one.drawing);
  fmt::print("\n{} classes; {} evasions did not come again\n", order.size(), lost);
  return 0;
}

int run(const Arguments& arguments) {
  const auto begin = Clock::now();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto result = fuzz(arguments.fuzz, [&](const FuzzResult& so_far) {
    if (terminal) show_progress(so_far, arguments.fuzz, begin);
  });
  if (terminal) fmt::print(stderr, "\n");
  if (!result) {
    fmt::print(stderr, "{}\n", to_string(result.error()));
    return 1;
  }
  for (const Finding& evasion : result->findings) {
    if (arguments.list) {
      fmt::print("--replay {} --mode {} --workers {} --host {}: {}\n{}\n", evasion.index,
                 evasion.mode == Mode::off_path ? "offpath" : "inline", evasion.workers, name_of(evasion.profile),
                 joined(evasion.moves), evasion.drawing);
    }
  }
  print_summary(*result, seconds_since(begin));
  if (arguments.explain > 0) classify(arguments, *result);
  return result->findings.empty() ? 0 : 3;
}

int replay(const Arguments& arguments) {
  auto bed = Replay::make(arguments.fuzz.profiles.front(), arguments.fuzz.sensor);
  if (!bed) {
    fmt::print(stderr, "{}\n", to_string(bed.error()));
    return 1;
  }
  int code = 0;
  for (const Mode mode : arguments.fuzz.modes) {
    const unsigned workers = arguments.fuzz.workers.front();
    Script script =
        generate(arguments.fuzz.seed, static_cast<std::uint64_t>(arguments.replay), arguments.fuzz.generator);
    if (arguments.minimise) {
      script = minimised(std::move(script),
                         [&](const Script& candidate) { return (*bed)->play(candidate, mode, workers).evaded; });
    }
    const Replay::Outcome outcome = (*bed)->play(script, mode, workers);
    fmt::print("{}, {} workers\n{}", name_of(mode), workers, drawing_of(outcome.transcript, script));
    fmt::print("{}, {}\n\n", outcome.alerted ? "alert" : "no alert", outcome.evaded ? "EVADED" : "not evaded");
    if (outcome.evaded) code = 3;
    if (!arguments.pcap.empty()) write_capture(arguments.pcap, {&outcome.transcript, 1});
  }
  return code;
}

int main_of(int argc, char** argv) {
  CLI::App app("Random attacks on the intrusion detection, with this kernel as the judge of what a host reads.");
  Arguments arguments;
  std::vector<std::string> workers;
  app.add_option("--seed", arguments.fuzz.seed, "of all that is random");
  app.add_option("--first", arguments.fuzz.first, "the first conversation's number");
  app.add_option("--conversations", arguments.fuzz.conversations, "how many");
  app.add_option("--mode", arguments.mode, "offpath, inline or both")
      ->check(CLI::IsMember({"offpath", "inline", "both"}));
  app.add_option("--workers", arguments.fuzz.workers, "of the sensor: a list, one after another")->delimiter(',');
  app.add_option("--host", arguments.hosts,
                 "standard, syn_cookies, fast_open, no_timestamps, no_window_scaling, no_sack: a list")
      ->delimiter(',');
  app.add_option("--threads", arguments.fuzz.threads, "of the fuzzer");
  app.add_option("--only", arguments.fuzz.generator.only, "moves, by what their names begin with; no others")
      ->delimiter(',');
  app.add_option("--except", arguments.fuzz.generator.except, "moves that are left out")->delimiter(',');
  app.add_flag("--innocent", arguments.fuzz.generator.innocent,
               "no signatures: what is alerted on or stopped all the same?");
  app.add_option("--most-moves", arguments.fuzz.generator.most_moves, "of a conversation");
  app.add_option("--most-findings", arguments.fuzz.most_findings, "then the run ends");
  app.add_option("--set", arguments.set, "a parameter of nids: NAME=VALUE");
  app.add_option("--replay", arguments.replay, "one conversation, drawn");
  app.add_flag("--minimise", arguments.minimise, "the least of it that still evades");
  app.add_option("--pcap", arguments.pcap, "where the replay's packets are written");
  app.add_option("--explain", arguments.explain, "so many evasions are made small, and one of each class is drawn");
  app.add_flag("--list", arguments.list, "each evasion, as it went");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (arguments.mode == "offpath") arguments.fuzz.modes = {Mode::off_path};
  if (arguments.mode == "inline") arguments.fuzz.modes = {Mode::on_path};
  for (const std::string& text : arguments.set) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos)
      arguments.fuzz.sensor.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  if (!arguments.hosts.empty()) arguments.fuzz.profiles.clear();
  for (const std::string& host : arguments.hosts) {
    for (std::size_t i = 0; i < kHostProfiles; ++i) {
      if (host == "all" || host == name_of(static_cast<HostProfile>(i))) {
        arguments.fuzz.profiles.push_back(static_cast<HostProfile>(i));
      }
    }
  }
  if (arguments.fuzz.profiles.empty()) return 2;
  allow_network_namespaces();
  return arguments.replay >= 0 ? replay(arguments) : run(arguments);
}

}  // namespace

}  // namespace penstock::evasion

int main(int argc, char** argv) { return penstock::evasion::main_of(argc, argv); }
