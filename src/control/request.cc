// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/parameter.h"
#include "control/connection_filter.h"
#include "control/probe_packet.h"
#include "report/error_json.h"

namespace penstock::control {

namespace {

using Type = Argument::Type;

constexpr Argument kFilter{"filter", Type::text, false, false, 1, 4096, "a libpcap expression; default: all packets"};
constexpr Argument kTimeout{
    "timeout", Type::number, false, false, 1, 86'400, "seconds after which it ends; default: none"};

constexpr auto kExplainArguments = std::to_array<Argument>({
    {"tuple", Type::text, true, true, 1, 256,
     "PROTOCOL SOURCE DESTINATION, such as tcp 10.1.0.5:4242 192.0.2.7:443, or icmp 10.1.0.5 192.0.2.7 TYPE/CODE"},
    {"in", Type::text, false, false, 1, 256, "the port by which it arrives; default: the only one that reads"},
    {"flags", Type::text, false, false, 1, 64, "its TCP flags, such as syn,ack, or none; default: syn"},
    {"length", Type::number, false, false, 1, kLongestProbe, "the bytes of its frame; default: no payload"},
});
constexpr auto kTraceArguments = std::to_array<Argument>({
    {"packets", Type::number, true, true, 1, 10'000, "how many"},
    kFilter,
    kTimeout,
});
constexpr auto kCaptureArguments = std::to_array<Argument>({
    {"function", Type::text, true, false, 1, 256, "the function that drops them, by its name in the report"},
    {"reason", Type::text, false, false, 1, 256, "only those that it drops for this reason"},
    {"count", Type::number, false, false, 1, 1'000'000, "how many; default: 1,000"},
    kFilter,
    kTimeout,
});
constexpr auto kReloadArguments = std::to_array<Argument>({
    {"dry_run", Type::flag, false, false, 0, 0, "only say what a reload would change; nothing changes"},
});

constexpr auto kLogLevels = std::to_array<std::string_view>({"error", "warning", "info", "debug"});
constexpr auto kLogLevelArguments = std::to_array<Argument>({
    {"level", Type::choice, false, true, 0, 0, "error, warning, info or debug; default: only show it", kLogLevels},
});

constexpr auto kConntrackActions = std::to_array<std::string_view>({"list", "count", "flush", "events", "save"});
constexpr auto kFamilies = std::to_array<std::string_view>({"ipv4", "ipv6"});
constexpr auto kConntrackArguments = std::to_array<Argument>({
    {"action", Type::choice, true, true, 0, 0,
     "list, count, flush (end) or save those that match, or follow what happens to them", kConntrackActions},
    {"proto", Type::text, false, false, 1, 16, "only this protocol, by name or number"},
    {"src", Type::text, false, false, 1, 64, "only from this address or prefix"},
    {"dst", Type::text, false, false, 1, 64, "only to this address or prefix"},
    {"sport", Type::number, false, false, 0, 65'535, "only with this source port"},
    {"dport", Type::number, false, false, 0, 65'535, "only with this destination port"},
    {"state", Type::choice, false, false, 0, 0, "only in this state of TCP, or status", kConnectionStates},
    {"family", Type::choice, false, false, 0, 0, "only of IPv4 or IPv6", kFamilies},
    {"limit", Type::number, false, false, 1, 1'000'000'000, "list and events: at most so many; default: all"},
    {"timeout", Type::number, false, false, 1, 86'400, "events: seconds after which they end; default: none"},
});

constexpr auto kHandOverArguments = std::to_array<Argument>({
    {"dry_run", Type::flag, false, false, 0, 0, "only say what would be handed over"},
});

constexpr auto kCommands = std::to_array<CommandKind>({
    {Command::status, "status", {}, true, true, "what runs, since when, with which ports and warnings"},
    {Command::stats, "stats", {}, true, true, "the counters of the run: the report, as of now"},
    {Command::explain, "explain", kExplainArguments, true, true,
     "what would happen to a packet, in which function and why"},
    {Command::trace, "trace", kTraceArguments, true, false, "show the paths of the next packets through the functions"},
    {Command::capture, "capture", kCaptureArguments, true, false,
     "write the next frames that a function drops to a file, as pcapng"},
    {Command::reload, "reload", kReloadArguments, true, false,
     "read the chain file and its files again, and put them in use"},
    {Command::rollback, "rollback", {}, true, false, "return to the configuration before the last reload"},
    {Command::drain, "drain", {}, true, false, "end the run, and wait until all packets that were read are done"},
    {Command::stop, "stop", {}, true, true, "end the run, without waiting"},
    {Command::reopen_logs, "reopen-logs", {}, true, true, "reopen the logs, for logrotate"},
    {Command::log_level, "log-level", kLogLevelArguments, true, true,
     "show the log's level, or change it until the run ends"},
    {Command::conntrack, "conntrack", kConntrackArguments, true, false,
     "list, count, end or save connections that the run tracks, or follow them"},
    {Command::hand_over, "hand-over", kHandOverArguments, false, false, "hand the run over to the client"},
});

constexpr std::string_view kExample = R"(an object such as {"version": 1, "command": "status"})";
constexpr std::size_t kLongestId = 256;  // bytes

Error wrong(std::string message, std::string found, std::string expected) {
  return {{}, std::move(message), std::move(found), std::move(expected)};
}

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Collects the members of one object, all of which are plain values. Stops at the first mistake.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  struct Member {
    std::string name;
    Json value;
  };

  [[nodiscard]] const std::optional<Error>& mistake() const noexcept { return mistake_; }
  [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(value); }
  bool binary(binary_t&) override { return add(nullptr); }  // not in JSON text
  bool start_object(std::size_t) override { return open_ ? refuse_nesting("an object") : (open_ = true); }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return open_ ? refuse_nesting("a list") : refuse_other("a list"); }
  bool end_array() override { return true; }
  bool key(string_t& name) override {
    if (std::ranges::find(members_, name, &Member::name) != members_.end())
      return refuse(wrong(fmt::format("{}: given twice", in_quotes(name)), "", "once"));
    members_.push_back({name, nullptr});
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(wrong(fmt::format("not valid JSON at byte {}", position), "", std::string(kExample)));
  }

 private:
  template <typename Value>
  bool add(const Value& value) {
    if (!open_) return refuse_other(in_quotes(text_of(value)));
    members_.back().value = value;
    return true;
  }
  bool refuse(Error error) {
    if (!mistake_) mistake_ = std::move(error);
    return false;
  }
  bool refuse_nesting(std::string found) {
    return refuse(wrong(in_quotes(members_.back().name) + ": wrong value", std::move(found),
                        "a text, a number, true, false or null"));
  }
  bool refuse_other(std::string found) {
    return refuse(wrong("not a request", std::move(found), std::string(kExample)));
  }

  bool open_ = false;
  std::vector<Member> members_;
  std::optional<Error> mistake_;
};

bool is_id(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size() <= kLongestId;
  return value.is_null() || value.is_number_integer();
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  names.reserve(kCommands.size());
  for (const CommandKind& kind : kCommands) names.push_back(kind.name);
  return names;
}

std::vector<std::string_view> member_names(const CommandKind& kind) {
  std::vector<std::string_view> names{"version", "id", "command"};
  for (const Argument& argument : kind.arguments) names.push_back(argument.name);
  return names;
}

std::string expected_of(const Argument& argument) {
  switch (argument.type) {
    case Type::flag: break;
    case Type::text: return fmt::format("a text of {} to {} bytes: {}", argument.least, argument.most, argument.help);
    case Type::number: return fmt::format("a whole number in {}..{}", argument.least, argument.most);
    case Type::choice: return fmt::format("one of {}", fmt::join(argument.choices, ", "));
  }
  return "true or false";
}

bool is_allowed(const Argument& argument, const Json& value) {
  const auto in_range = [&](std::uint64_t size) { return argument.least <= size && size <= argument.most; };
  switch (argument.type) {
    case Type::flag: break;
    case Type::text: return value.is_string() && in_range(value.get_ref<const std::string&>().size());
    case Type::number: return value.is_number_unsigned() && in_range(value.get<std::uint64_t>());
    case Type::choice:
      return value.is_string() &&
             std::ranges::find(argument.choices, value.get_ref<const std::string&>()) != argument.choices.end();
  }
  return value.is_boolean();
}

}  // namespace

std::span<const CommandKind> commands() { return kCommands; }

const CommandKind& kind_of(Command command) { return kCommands[static_cast<std::size_t>(command)]; }

std::string_view name(Failure kind) {
  constexpr std::string_view kNames[] = {"request", "refused", "busy", "mistakes", "not_running", "failed"};
  return kNames[static_cast<std::size_t>(kind)];
}

tl::expected<Request, BadRequest> read_request(std::string_view line) {
  Reader reader;
  const bool parsed = Json::sax_parse(line, &reader);
  const auto member = [&](std::string_view name) -> const Json* {
    const auto found = std::ranges::find(reader.members(), name, &Reader::Member::name);
    return found == reader.members().end() ? nullptr : &found->value;
  };
  Request request;
  const Json* const id = member("id");
  const bool id_known = id != nullptr && is_id(*id);
  if (id_known) request.id = *id;
  const auto refuse = [&](Error error) { return tl::unexpected(BadRequest{request.id, std::move(error)}); };
  if (!parsed || reader.mistake())
    return refuse(reader.mistake().value_or(wrong("not a request", "", std::string(kExample))));

  const Json* const version = member("version");
  if (version == nullptr || *version != kProtocolVersion) {
    return refuse(wrong("version: " + std::string(version == nullptr ? "missing" : "not supported"),
                        version == nullptr ? "" : in_quotes(text_of(*version)), std::to_string(kProtocolVersion)));
  }
  if (id != nullptr && !id_known) {
    return refuse(wrong("id: wrong value", in_quotes(text_of(*id)),
                        fmt::format("a whole number, or a text of at most {} bytes", kLongestId)));
  }
  const Json* const command = member("command");
  const CommandKind* kind = nullptr;
  if (command != nullptr && command->is_string()) {
    const auto found = std::ranges::find(kCommands, command->get_ref<const std::string&>(), &CommandKind::name);
    if (found != kCommands.end()) kind = &*found;
  }
  if (kind == nullptr) {
    const std::string given = command != nullptr && command->is_string() ? command->get<std::string>() : "";
    return refuse(wrong(command == nullptr ? "command: missing" : "unknown command",
                        command == nullptr ? "" : in_quotes(command->is_string() ? given : text_of(*command)),
                        expected_name(given, command_names())));
  }
  for (const Reader::Member& given : reader.members()) {
    const auto known = member_names(*kind);
    if (std::ranges::find(known, given.name) != known.end()) continue;
    return refuse(wrong(fmt::format("unknown member of a {} request", kind->name), in_quotes(given.name),
                        expected_name(given.name, known)));
  }
  request.command = kind->command;
  for (const Argument& argument : kind->arguments) {
    const Json* const value = member(argument.name);
    if (value == nullptr && !argument.required) continue;
    if (value == nullptr) return refuse(wrong(fmt::format("{}: missing", argument.name), "", expected_of(argument)));
    if (!is_allowed(argument, *value)) {
      return refuse(
          wrong(fmt::format("{}: wrong value", argument.name), in_quotes(text_of(*value)), expected_of(argument)));
    }
    if (*value != false) request.arguments[std::string(argument.name)] = *value;
  }
  return request;
}

std::string result_text(const Json& id, const Json& result) {
  return text_of({{"version", kProtocolVersion}, {"id", id}, {"ok", true}, {"result", result}}) + "\n";
}

std::string event_text(const Json& id, const Json& event) {
  return text_of({{"version", kProtocolVersion}, {"id", id}, {"event", event}}) + "\n";
}

Json failure_json(std::string_view kind, const Errors& errors) {
  Json error{{"kind", kind}};
  Json all = report::to_json(errors);
  if (!all.empty()) {
    error.update(all.front());
    all.erase(0);
  }
  error["further"] = std::move(all);
  return error;
}

std::string failure_text(const Json& id, Failure kind, const Errors& errors) {
  const Json error = failure_json(name(kind), errors);
  return text_of({{"version", kProtocolVersion}, {"id", id}, {"ok", false}, {"error", error}}) + "\n";
}

Errors errors_of(const Json& error) {
  Json all = Json::array({error});
  if (error.is_object() && error.contains("further") && error["further"].is_array())
    all.insert(all.end(), error["further"].begin(), error["further"].end());
  return report::errors_of(all);
}

std::string request_text(const Request& request) {
  Json json{{"version", kProtocolVersion}, {"id", request.id}, {"command", kind_of(request.command).name}};
  json.update(request.arguments);
  return text_of(json) + "\n";
}

}  // namespace penstock::control
