// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The control protocol (docs/control.md): requests and answers, one JSON object a line each way.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::control {

inline constexpr int kProtocolVersion = 1;

using Json = nlohmann::ordered_json;

enum class Command : std::uint8_t {
  status,
  stats,
  explain,
  trace,
  capture,
  reload,
  rollback,
  drain,
  stop,
  reopen_logs,
  log_level,
  conntrack,
  hand_over
};

/// A member of a request that is particular to its command.
struct Argument {
  enum class Type : std::uint8_t { flag, text, number, choice };  // true or false; not empty; whole; a word
  std::string_view name;                                          // "dry_run"
  Type type;
  bool required;
  bool positional;            // of `penstock ctl`; a text may then consist of several words
  std::uint64_t least, most;  // of a number; of a text, its bytes
  std::string_view help;
  std::span<const std::string_view> choices = {};
};

struct CommandKind {
  Command command;
  std::string_view name;
  std::span<const Argument> arguments;
  bool is_for_operators;  // else for processes that take over
  bool answers_at_once;   // unless the run hangs or is stopped
  std::string_view help;
};
[[nodiscard]] std::span<const CommandKind> commands();
[[nodiscard]] const CommandKind& kind_of(Command command);

struct Request {
  Json id;  // a text, a whole number or null
  Command command = Command::status;
  Json arguments = Json::object();  // by name; as CommandKind::arguments says

  [[nodiscard]] bool flag(std::string_view name) const { return arguments.contains(name); }
  /// "" if it is not given.
  [[nodiscard]] std::string text(std::string_view name) const { return arguments.value(name, std::string()); }
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const {
    const auto found = arguments.find(name);
    return found == arguments.end() ? std::nullopt : std::optional(found->get<std::uint64_t>());
  }
};

/// Why there is no result. The names of the kinds are part of the protocol.
enum class Failure : std::uint8_t {
  request,      // the request is wrong
  refused,      // the client may not ask, or not now: too many clients, too slow
  busy,         // another request has to be done first
  mistakes,     // a reload was refused because of mistakes in the chain file and its files
  not_running,  // the run has not begun, or has ended
  failed,       // the run could not do it
};
[[nodiscard]] std::string_view name(Failure kind);
/// The message of a failure of the kind `refused` after which a client may try again.
inline constexpr std::string_view kTooManyClients = "too many clients";

struct BadRequest {
  Json id;  // null if it could not be read
  Error error;
};

/// Reads a line of a client, who may send anything. Members are values without members of their own, so that nothing
/// in a request can be deep.
[[nodiscard]] tl::expected<Request, BadRequest> read_request(std::string_view line);

/// Answers, each with its line end. Bytes that are not valid UTF-8 are replaced.
[[nodiscard]] std::string result_text(const Json& id, const Json& result);
/// A line before the answer, with something that has been observed.
[[nodiscard]] std::string event_text(const Json& id, const Json& event);
[[nodiscard]] std::string failure_text(const Json& id, Failure kind, const Errors& errors);
/// Its member `error`; `kind`: a name of a Failure, or of what is none of the run.
[[nodiscard]] Json failure_json(std::string_view kind, const Errors& errors);
/// Those of such a member.
[[nodiscard]] Errors errors_of(const Json& error);

/// The request, with its line end.
[[nodiscard]] std::string request_text(const Request& request);

}  // namespace penstock::control
