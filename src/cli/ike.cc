// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/ike.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/output_file.h"
#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"
#include "base/wipe.h"
#include "cli/chain_arguments.h"
#include "cli/stop_signals.h"
#include "config/file_conflicts.h"
#include "control/client.h"
#include "control/ike/charon_log.h"
#include "control/ike/growing_file.h"
#include "control/ike/kernel_xfrm.h"

namespace penstock::cli {
namespace {

using control::CharonLog;
using control::GrowingFile;
using control::KernelXfrm;

constexpr int kLookAgainMs = 1000;
/// What of the log is kept beside the lines about SAs in use: an exchange that has not led to an SA yet.
constexpr std::uint64_t kKeptBytes = 256 << 10;

struct IkeOptions {
  std::string charon_log;
  std::vector<std::string> children;
  bool kernel = false;
  std::string state, policy;
  std::string socket;
};

/// Whether a text is `ip xfrm`'s: "src … dst …", and then a line that begins with one of these words.
bool is_xfrm(std::string_view text, std::initializer_list<std::string_view> second_line) {
  LineReader lines(text);
  Line line;
  if (!lines.next(line) || !line.text.starts_with("src ") || line.text.find(" dst ") == std::string_view::npos)
    return false;
  return lines.next(line) &&
         std::ranges::any_of(second_line, [&](std::string_view word) { return trimmed(line.text).starts_with(word); });
}

bool is_state(std::string_view beginning) {
  return beginning.starts_with(CharonLog::kStateHeading) || is_xfrm(beginning, {"proto "});
}

bool is_policy(std::string_view beginning) { return is_xfrm(beginning, {"dir ", "socket "}); }

/// What is wrong with the names of the files, of which those that are written must destroy nothing else.
Errors check_files(const IkeOptions& options) {
  std::vector<Parameters::File> files;
  const auto add = [&](const std::string& path, const char* option, bool written) {
    if (!path.empty()) files.push_back({path, {option, 0, 0}, written});
  };
  add(options.charon_log, "--charon-log", false);
  add(options.state, "--state", true);
  add(options.policy, "--policy", true);
  Errors errors = config::file_conflicts(files);
  if (!errors.empty()) return errors;
  if (auto state = check_replaceable(options.state, "a list of SAs (`ip xfrm state`)", is_state); !state)
    append(errors, std::move(state.error()));
  if (auto policy = check_replaceable(options.policy, "a list of policies (`ip xfrm policy`)", is_policy); !policy)
    append(errors, std::move(policy.error()));
  return errors;
}

Result<CharonLog::Reqids> reqids_of(const std::vector<std::string>& children) {
  CharonLog::Reqids reqids;
  for (const std::string& child : children) {
    const std::size_t equals = child.rfind('=');
    const bool has_name = equals != std::string::npos && equals > 0;
    const auto reqid =
        has_name ? parse_decimal<std::uint32_t>(std::string_view(child).substr(equals + 1)) : std::nullopt;
    if (!reqid || *reqid == 0)
      return failure(Error{{}, "--child: wrong value", in_quotes(child), "NAME=REQID, such as net=1"});
    if (!reqids.emplace(child.substr(0, equals), *reqid).second)
      return failure(Error{{}, "--child: a second reqid for a child", in_quotes(child), "one"});
  }
  return reqids;
}

/// The run that reads what is written for it.
class Gateway {
 public:
  explicit Gateway(std::string socket) : socket_(std::move(socket)) {}

  /// A file of its SAs or policies. `ask_to_read` is to follow.
  [[nodiscard]] Result<void> write(const std::string& path, std::string_view text) {
    has_read_ = false;
    return write_text_file(path, text, FileAccess::owner);
  }

  /// Has the run read the files, if it has not since they were written. If it cannot now, the next call tries again.
  /// `what` they are, for the user.
  void ask_to_read(std::string_view what) {
    if (has_read_) return;
    auto client = control::Client::connect(socket_);
    if (!client) return report(client.error());  // it reads the files when it starts
    const auto answer = client->ask(control::Command::reload);
    if (!answer) {
      // Mistakes in the files stay until they are written again.
      has_read_ = answer.error().kind == name(control::Failure::mistakes);
      return report(answer.error().errors);
    }
    last_failure_.clear();
    has_read_ = true;
    fmt::print(stderr, "penstock ike: {} in use\n", what);
  }

 private:
  /// Once, however often the same fails.
  void report(const Errors& errors) {
    if (std::string text = to_string(errors); text != last_failure_) {
      print_errors(errors);
      last_failure_ = std::move(text);
    }
  }

  const std::string socket_;
  std::string last_failure_;
  bool has_read_ = true;
};

int follow_charon(const IkeOptions& options) {
  auto reqids = reqids_of(options.children);
  if (!reqids) return refuse(reqids.error());
  auto file = GrowingFile::open(options.charon_log, CharonLog::kMostLineBytes);
  if (!file) return fail(file.error());
  CharonLog log(std::move(*reqids));
  Gateway gateway(options.socket);
  const std::atomic<bool>& stop = stop_on_signals();
  for (bool first = true; !stop.load(); first = false) {
    if (auto read = file->read([&] { log.begin_file(); },
                               [&](std::string_view line, std::uint64_t offset) { log.add(line, offset); });
        !read)
      return fail(read.error());
    print_errors(log.take_problems());
    if (log.take_changed() || first) {
      std::string text = log.state();
      const auto written = gateway.write(options.state, text);
      wipe(text.data(), text.size());
      if (!written) return fail(written.error());
    }
    gateway.ask_to_read(fmt::format("{} in, {} out", format_count(log.inbound(), "SA"), format_count(log.outbound())));
    const std::uint64_t end = file->offset();
    file->erase_before(log.needed_from(end - std::min(end, kKeptBytes)));
    file->wait(kLookAgainMs);
  }
  return kDone;
}

int follow_kernel(const IkeOptions& options) {
  auto kernel = KernelXfrm::open();
  if (!kernel) return fail(kernel.error());
  Gateway gateway(options.socket);
  const std::atomic<bool>& stop = stop_on_signals();
  for (bool changed = true; !stop.load();) {
    if (changed) {
      control::XfrmTexts texts;
      if (auto read = KernelXfrm::read(texts); !read) return fail(read.error());
      if (auto written = gateway.write(options.policy, texts.policy); !written) return fail(written.error());
      if (auto written = gateway.write(options.state, texts.state); !written) return fail(written.error());
    }
    gateway.ask_to_read("the kernel's SAs and policies");
    const auto waited = kernel->wait(kLookAgainMs);
    if (!waited) return fail(waited.error());
    changed = *waited;
  }
  return kDone;
}

int run_ike(const IkeOptions& options) {
  if (const Errors errors = check_files(options); !errors.empty()) return refuse(errors);
  return options.kernel ? follow_kernel(options) : follow_charon(options);
}

}  // namespace

void add_ike(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<IkeOptions>();
  CLI::App* command = app.add_subcommand(
      "ike", "Keep the SAs of a running IPsec gateway as strongSwan's charon, or the kernel, has them");
  CLI::Option* const log = command
                               ->add_option("--charon-log", options->charon_log,
                                            "a log of charon with the group chd at level 4, which has the keys "
                                            "(ike.md: in docs/, or /usr/share/doc/penstock/)")
                               ->type_name("FILE")
                               ->check(not_empty("a path"));
  command
      ->add_option("--child", options->children,
                   "a child of swanctl.conf, and the reqid by which policies name its SAs; several are possible")
      ->needs(log)
      ->type_name("NAME=REQID");
  CLI::Option* const kernel =
      command->add_flag("--kernel", options->kernel, "the kernel's SAs and policies (`ip xfrm`)")->excludes(log);
  CLI::Option* const policy =
      command->add_option("--policy", options->policy, "the file to write: `policy` of the functions `ipsec`")
          ->needs(kernel)
          ->type_name("FILE")
          ->check(not_empty("a path"));
  kernel->needs(policy);
  command->add_option("--state", options->state, "the file to write: `state` of the functions `ipsec`")
      ->required()
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command->add_option("--socket", options->socket, "the control socket of the run that reads the file")
      ->required()
      ->type_name("PATH")
      ->check(not_empty("a path"));
  command->callback([options, &exit_code] {
    if (!options->kernel && options->children.empty()) {
      exit_code = refuse({{{}, "nothing to follow", "", "--charon-log with --child for each child, or --kernel"}});
      return;
    }
    exit_code = run_ike(*options);
  });
}

}  // namespace penstock::cli
