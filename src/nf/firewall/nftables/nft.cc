// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/nft.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/capabilities.h"
#include "base/external_program.h"
#include "base/text_file.h"
#include "base/units.h"
#include "port/live/namespace_thread.h"

namespace penstock::firewall::nftables {

namespace {

constexpr const char* kStdin = "/dev/stdin";  // how nft names its input
constexpr int kRefused = 3;                   // exit code of our script
constexpr std::string_view kWayOut = "the output of `nft -j list ruleset`, made where the rules are loaded";

ProgramLimits limits() {
  ProgramLimits limits;
  limits.output_bytes = file_limit();
  return limits;
}

std::string first_line(std::string_view text) {
  text = trimmed(text);
  return std::string(text.substr(0, text.find('\n')));
}

/// Takes "12" off the front.
std::optional<std::uint32_t> take_number(std::string_view& text, char end) {
  const auto at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = parse_integer(text.substr(0, at));
  if (!number || *number > 0xffff'ffff) return std::nullopt;
  text.remove_prefix(at + 1);
  return static_cast<std::uint32_t>(*number);
}

/// "/etc/more.nft:3:7-13: Error: syntax error". Empty: another line.
std::optional<Error> read_mistake(std::string_view line, const std::string& file) {
  constexpr std::string_view kError = " Error: ";
  // A file's name may have colons too: the place is before the first "Error:".
  const std::size_t error = line.find(kError);
  if (error == std::string_view::npos || error == 0) return std::nullopt;
  std::string_view place = line.substr(0, error);
  std::array<std::size_t, 3> colons{};
  std::size_t from = place.size();
  for (std::size_t& colon : colons) {
    if (from == 0) return std::nullopt;
    colon = place.rfind(':', from - 1);
    if (colon == std::string_view::npos) return std::nullopt;
    from = colon;
  }
  std::string_view numbers = place.substr(colons[2] + 1);
  const auto row = take_number(numbers, ':');
  const auto column = take_number(numbers, '-');
  if (!row || !column) return std::nullopt;
  const std::string_view where = place.substr(0, colons[2]);
  return Error{{where == kStdin ? file : std::string(where), *row, *column},
               fmt::format("nft: {}", line.substr(error + kError.size())),
               "",
               ""};
}

Errors mistakes_of(std::string_view messages, const std::string& file) {
  constexpr std::size_t kMost = 100;
  Errors mistakes;
  LineReader lines(messages);
  for (Line line; mistakes.size() < kMost && lines.next(line);) {
    if (auto mistake = read_mistake(line.text, file)) mistakes.push_back(std::move(*mistake));
  }
  if (mistakes.empty())
    mistakes.push_back({{file, 0, 0}, "nft refuses the rules", in_quotes(first_line(messages), 200), ""});
  return mistakes;
}

}  // namespace

std::string name_of_kernel_rules(const std::string& netns) {
  return netns.empty() ? "nft list ruleset" : fmt::format("nft list ruleset (netns {})", netns);
}

Result<std::string> list_rules() {
  if (!has_capability(Capability::net_admin))
    return failure(Error{{}, "cannot read the kernel's rules", "", how_to_get(Capability::net_admin)});
  // Values of counters would make equal rule sets differ.
  auto listed = run_external_program({"nft", "-j", "-s", "list", "ruleset"}, "", limits());
  if (!listed) {
    for (Error& error : listed.error()) error.message.insert(0, "cannot read the kernel's rules: ");
    return failure(std::move(listed.error()));
  }
  if (listed->exit_code == 0) return std::move(listed->text);
  return failure(Error{{},
                       fmt::format("cannot read the kernel's rules: nft fails with exit code {}", listed->exit_code),
                       in_quotes(first_line(listed->messages), 200),
                       "a kernel with nf_tables"});
}

Result<std::string> list_rules_of(const std::string& netns) {
  Result<std::string> rules;
  auto entered = port::in_network_namespace(netns, [&]() -> Result<void> {
    // In a thread of its own, as what a thread gives up does not come back.
    std::thread([&] {
      static_cast<void>(keep_only({Capability::net_admin}));
      static_cast<void>(pass_on({Capability::net_admin}));  // an error is that of `has_capability`
      rules = list_rules();
    }).join();
    return {};
  });
  if (!entered) return failure(std::move(entered.error()));
  return rules;
}

bool is_nft_syntax(std::string_view text) noexcept {
  constexpr auto kBegins = std::to_array<std::string_view>(
      {"add", "create", "define", "delete", "destroy", "flush", "include", "insert", "redefine", "table", "undefine"});
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    const std::string_view content = trimmed(line.text);
    if (content.starts_with("#!") && content.find("nft") != std::string_view::npos) return true;
    if (content.empty() || content.front() == '#') continue;
    const std::string_view word = content.substr(0, content.find_first_of(" \t"));
    return std::ranges::find(kBegins, word) != kBegins.end();
  }
  return false;
}

Result<std::string> translate(std::string_view text, const std::string& file) {
  // A user namespace lets everyone have a network namespace. Where root has been confined, there may be none.
  std::vector<std::string> words{"unshare", "--net"};
  if (!has_capability(Capability::sys_admin)) words.insert(words.end(), {"--user", "--keep-caps"});
  words.insert(words.end(), {"--", "sh", "-c",
                             fmt::format("nft -f - || exit {}; exec nft -j -s list ruleset </dev/null", kRefused)});
  const auto refuse = [&](std::string_view what, std::string found) {
    return failure(Error{{file, 0, 0}, std::string(what), std::move(found), std::string(kWayOut)});
  };
  auto done = run_external_program(words, text, limits());
  if (!done)
    return refuse("nft cannot translate the rules: " + done.error().front().message, done.error().front().found);
  if (done->exit_code == 0) return std::move(done->text);
  const std::string said = in_quotes(first_line(done->messages), 200);
  if (done->messages.find("unshare:") != std::string::npos)
    return refuse("nft needs a network namespace of its own to translate the rules, and there is none", said);
  if (done->messages.find("nft: not found") != std::string::npos)
    return refuse("nft, which translates the rules, is not installed", said);
  if (done->messages.find("Operation not permitted") != std::string::npos)
    return refuse("nft may not work in a network namespace of its own to translate the rules", said);
  if (done->exit_code == kRefused) return failure(mistakes_of(done->messages, file));
  return refuse(fmt::format("nft cannot translate the rules: exit code {}", done->exit_code), said);
}

}  // namespace penstock::firewall::nftables
