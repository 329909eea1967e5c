// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/ike.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "base/wipe.h"
#include "cli/chain_arguments.h"
#include "cli/stop_signals.h"
#include "control/client.h"
#include "control/ike/charon_log.h"
#include "control/ike/growing_file.h"

namespace penstock::cli {
namespace {

using control::CharonLog;
using control::GrowingFile;

constexpr int kLookAgainMs = 1000;
/// What of the log is kept beside the lines about SAs in use: an exchange that has not led to an SA yet.
constexpr std::uint64_t kKeptBytes = 256 << 10;

struct IkeOptions {
  std::string charon_log;
  std::vector<std::string> children;
  std::string state;
  std::string socket;
};

Result<CharonLog::Reqids> reqids_of(const std::vector<std::string>& children) {
  CharonLog::Reqids reqids;
  for (const std::string& child : children) {
    const std::size_t equals = child.rfind('=');
    std::uint32_t reqid = 0;
    const char* const end = child.data() + child.size();
    const bool good = equals != std::string::npos && equals > 0 &&
                      std::from_chars(child.data() + equals + 1, end, reqid).ptr == end && reqid != 0;
    if (!good) return failure(Error{{}, "--child: wrong value", in_quotes(child), "NAME=REQID, such as net=1"});
    if (!reqids.emplace(child.substr(0, equals), reqid).second)
      return failure(Error{{}, "--child: a second reqid for a child", in_quotes(child), "one"});
  }
  return reqids;
}

/// Writes the SAs, and has the run read them.
class Gateway {
 public:
  explicit Gateway(const IkeOptions& options) : state_(options.state), socket_(options.socket) {}

  [[nodiscard]] Result<void> write(const CharonLog& log) {
    std::string text = log.state();
    auto written = write_text_file(state_, text, FileAccess::owner);
    wipe(text.data(), text.size());
    is_told_ = false;
    return written;
  }

  /// Whether the run has the SAs of the file. If not, this is to be called again.
  bool tell(const CharonLog& log) {
    if (is_told_) return true;
    auto client = control::Client::connect(socket_);
    if (!client) {  // it reads the file when it starts
      report(std::move(client).error());
      return false;
    }
    const auto answer = client->ask(control::Command::reload);
    if (!answer) {
      report(answer.error().errors);
      return false;
    }
    last_failure_.clear();
    is_told_ = true;
    fmt::print(stderr, "penstock ike: {} in, {} out in use\n", format_count(log.inbound(), "SA"),
               format_count(log.outbound()));
    return true;
  }

 private:
  /// Once, however often the same fails.
  void report(const Errors& errors) {
    if (std::string text = to_string(errors); text != last_failure_) {
      print_errors(errors);
      last_failure_ = std::move(text);
    }
  }

  const std::string state_, socket_;
  std::string last_failure_;
  bool is_told_ = true;
};

int run_ike(const IkeOptions& options) {
  auto reqids = reqids_of(options.children);
  if (!reqids) return refuse(reqids.error());
  auto file = GrowingFile::open(options.charon_log, CharonLog::kMostLineBytes);
  if (!file) return fail(file.error());
  CharonLog log(std::move(*reqids));
  Gateway gateway(options);
  const std::atomic<bool>& stop = stop_on_signals();
  bool first = true;
  while (!stop.load()) {
    if (auto read = file->read([&] { log.begin_file(); },
                               [&](std::string_view line, std::uint64_t offset) { log.add(line, offset); });
        !read)
      return fail(read.error());
    print_errors(log.take_problems());
    if (log.take_changed() || std::exchange(first, false)) {
      if (auto written = gateway.write(log); !written) return fail(written.error());
    }
    static_cast<void>(gateway.tell(log));
    const std::uint64_t end = file->offset();
    file->erase_before(log.needed_from(end - std::min(end, kKeptBytes)));
    file->wait(kLookAgainMs);
  }
  return kDone;
}

}  // namespace

void add_ike(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<IkeOptions>();
  CLI::App* command =
      app.add_subcommand("ike", "Keep the SAs of a running IPsec gateway as strongSwan's charon negotiates them");
  command
      ->add_option("--charon-log", options->charon_log,
                   "a log of charon with the group chd at level 4, which has the keys (docs/ike.md)")
      ->required()
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command
      ->add_option("--child", options->children,
                   "a child of swanctl.conf, and the reqid by which policies name its SAs; several are possible")
      ->required()
      ->type_name("NAME=REQID");
  command->add_option("--state", options->state, "the file to write: `state` of the functions `ipsec`")
      ->required()
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command->add_option("--socket", options->socket, "the control socket of the run that reads the file")
      ->required()
      ->type_name("PATH")
      ->check(not_empty("a path"));
  command->callback([options, &exit_code] { exit_code = run_ike(*options); });
}

}  // namespace penstock::cli
