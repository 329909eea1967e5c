// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The operator's end of the control socket: asks a run, and waits for its answers, which a run that is stopped or hangs
// never gives.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "control/request.h"
#include "port/live/file_descriptor.h"

namespace penstock::control {

/// Why there is no result.
struct NoResult {
  std::string kind;  // a name of control::Failure; "" if the connection failed
  Errors errors;
};

/// Where sockets of services are.
inline constexpr const char* kSocketFolder = "/run/penstock";
/// The socket that an operator names: NAME stands for kSocketFolder/NAME.sock, unless it has a '/', ends in ".sock" or
/// is a file here.
[[nodiscard]] std::string socket_named(const std::string& text);

class Client {
 public:
  [[nodiscard]] static Result<Client> connect(const std::string& path);

  using TimeLimit = std::optional<std::chrono::seconds>;  // empty: none

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  /// Waits for the answer. The result of the command, as it came. If the run has too many clients, connects again for
  /// some seconds until it is served.
  [[nodiscard]] tl::expected<Json, NoResult> ask(Command command, const Json& arguments = Json::object(),
                                                 TimeLimit limit = std::nullopt);
  using UseEvent = std::function<void(const Json& event)>;
  /// The same for a command whose answer comes in parts: calls `use` for each event, as it comes.
  [[nodiscard]] tl::expected<Json, NoResult> ask(Command command, const Json& arguments, const UseEvent& use,
                                                 TimeLimit limit = std::nullopt);

 private:
  using Clock = std::chrono::steady_clock;

  Client(std::string path, port::FileDescriptor socket) : path_(std::move(path)), socket_(std::move(socket)) {}

  [[nodiscard]] tl::expected<Json, NoResult> ask_once(Command command, const Json& arguments, const UseEvent& use,
                                                      TimeLimit limit);
  [[nodiscard]] Result<std::string> read_line(TimeLimit limit, Clock::time_point end);
  [[nodiscard]] Error lost(const std::string& reason) const;
  [[nodiscard]] Error silent(std::chrono::seconds limit) const;

  std::string path_;
  port::FileDescriptor socket_;
  std::string received_;
  std::uint64_t last_id_ = 0;
};

}  // namespace penstock::control
