// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text_file.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/ctl_text.h"
#include "control/explanation_json.h"
#include "control/kernel/table_follower.h"
#include "control/packet_filter.h"
#include "control/probe_packet.h"
#include "port/capture_reader.h"
#include "run/explain.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;

struct ExplainArguments {
  ChainArguments chain;
  std::vector<std::string> packet;  // the words of a tuple
  std::string flags;
  std::optional<std::uint64_t> length;
  std::string capture, filter;
  std::uint64_t count = 100;
  std::string in;
  bool json = false;
};

Json explain(const run::Chain& chain, std::uint8_t* frame, PacketDescriptor& packet, PortIndex in) {
  packet.in_port = in;
  return control::to_json(run::explain(chain, {frame, &packet}, run::Ports::closed));
}

int explain_tuple(const run::Chain& chain, const ExplainArguments& arguments, PortIndex in) {
  const std::string tuple = fmt::format("{}", fmt::join(arguments.packet, " "));
  auto frame = control::make_probe({tuple, arguments.flags, arguments.length});
  if (!frame) return refuse(frame.error());
  PacketDescriptor packet;
  packet.length = packet.wire_length = static_cast<std::uint32_t>(frame->size());
  const Json explanation = explain(chain, frame->data(), packet, in);
  const std::string text = arguments.json ? explanation.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                          : explanation_text(explanation);
  const auto written = write_stdout(text);
  return written ? kDone : fail(written.error());
}

/// `number`: in the capture, from 1.
std::string text_of(const Json& explanation, std::uint64_t number, bool first, bool as_json) {
  if (!as_json) return fmt::format("{}packet {}: {}", first ? "" : "\n", number, explanation_text(explanation));
  Json line{{"number", number}};
  line.update(explanation);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int explain_capture(const run::Chain& chain, const ExplainArguments& arguments, PortIndex in) {
  std::optional<control::PacketFilter> filter;
  if (!arguments.filter.empty()) {
    auto compiled = control::PacketFilter::compile(arguments.filter);
    if (!compiled) return refuse(compiled.error());
    filter = std::move(*compiled);
  }
  port::ReadControl control;
  auto reader = port::CaptureReader::open(arguments.capture, control);
  if (!reader) return refuse(reader.error());
  std::uint64_t explained = 0;
  for (port::CapturedFrame captured; reader->next(captured) == port::CaptureReader::Status::packet;) {
    PacketDescriptor packet;
    packet.length = static_cast<std::uint32_t>(captured.bytes.size());
    packet.wire_length = captured.wire_length;
    packet.timestamp_ns = captured.timestamp_ns;
    packet.link_type = captured.link_type;
    std::vector<std::uint8_t> frame(captured.bytes.begin(), captured.bytes.end());
    if (filter && !(*filter)({frame.data(), &packet})) continue;
    if (explained == arguments.count) {
      log_warning("{}: ends here, after {}; --count explains more", arguments.capture,
                  format_count(explained, "packet"));
      return kDone;
    }
    const std::string text =
        text_of(explain(chain, frame.data(), packet, in), reader->packets(), explained == 0, arguments.json);
    if (const auto written = write_stdout(text); !written) return fail(written.error());
    ++explained;
  }
  const Errors errors = reader->errors();
  if (!errors.empty()) return fail(errors);
  if (explained == 0) {
    log_warning("{}: no packet{} to explain", arguments.capture,
                reader->packets() == 0 ? "" : " that matches the filter");
  }
  return kDone;
}

int explain_packets(const ExplainArguments& arguments) {
  auto loaded = arguments.chain.load(/*only_plan=*/true);
  if (!loaded) return refuse(loaded.error());
  print_warnings(*loaded);
  const auto in = control::input_port(loaded->chain, arguments.in);
  if (!in) return refuse(in.error());
  // As they are now, for routers that have no others.
  const auto followers = control::follow_kernel(loaded->chain);
  if (!followers) return refuse(followers.error());
  return arguments.capture.empty() ? explain_tuple(loaded->chain, arguments, *in)
                                   : explain_capture(loaded->chain, arguments, *in);
}

}  // namespace

void add_explain(CLI::App& app, function::NfKinds functions, int& exit_code) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand("explain", "Say what a chain would do with packets, and why, without a run");
  arguments->chain.add_to(*command, functions);
  CLI::Option* const packet =
      command
          ->add_option("--packet", arguments->packet,
                       "PROTOCOL SOURCE DESTINATION, such as tcp 10.1.0.5:4242 192.0.2.7:443, or icmp 10.1.0.5 "
                       "192.0.2.7 TYPE/CODE")
          ->expected(1, 4)
          ->type_name("WORDS");
  CLI::Option* const capture =
      command->add_option("-r,--read", arguments->capture, "explain the packets of this capture; -: standard input")
          ->check(not_empty("a capture"))
          ->excludes(packet)
          ->type_name("FILE");
  command->add_option("--in", arguments->in, "the port by which they arrive; default: the only one that reads")
      ->type_name("PORT");
  command->add_option("--flags", arguments->flags, "of --packet: its TCP flags, such as syn,ack, or none; default: syn")
      ->needs(packet)
      ->type_name("FLAGS");
  command
      ->add_option_function<std::uint64_t>(
          "--length", [arguments](std::uint64_t bytes) { arguments->length = bytes; },
          "of --packet: the bytes of its frame; default: no payload")
      ->transform(whole_number(1, control::kLongestProbe))
      ->needs(packet)
      ->type_name("N");
  command
      ->add_option("--filter", arguments->filter,
                   "of --read: only packets that match this libpcap expression; hosts and networks by address")
      ->needs(capture)
      ->type_name("EXPRESSION");
  command->add_option("--count", arguments->count, "of --read: at most so many packets; default: 100")
      ->transform(whole_number(1, 1'000'000))
      ->needs(capture)
      ->type_name("N");
  command->add_flag("--json", arguments->json, "print JSON: an object, or for --read one a line");
  command->footer(
      "No port is opened, and nothing is sent or counted. Tables and rules are those of the files, or of the kernel, "
      "as "
      "they\n"
      "are now; `penstock ctl explain` answers by those that a run has in use. Each packet is explained by itself: "
      "what\n"
      "functions decide by connections is listed as not certain.");
  command->callback([arguments, capture, packet, &exit_code] {
    if (capture->empty() && packet->empty())
      throw CLI::RequiredError("--packet WORDS or --read FILE");  // in CLI11's words: "… is required"
    exit_code = explain_packets(*arguments);
  });
}

}  // namespace penstock::cli
