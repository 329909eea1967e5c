// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Asks a run by its control socket (docs/control.md): what it has done, or to stop. Owns the connection.

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "port/live/file_descriptor.h"

namespace penstock::experiments {

class RunSocket {
 public:
  /// Empty: no run listens there now.
  [[nodiscard]] static std::optional<RunSocket> connect(const std::string& path);

  /// The result of a command without arguments, such as `stats`. Empty: the run has not begun, has ended, or does not
  /// answer within a few seconds.
  [[nodiscard]] std::optional<nlohmann::json> ask(std::string_view command);

 private:
  explicit RunSocket(port::FileDescriptor socket) : socket_(std::move(socket)) {}

  port::FileDescriptor socket_;
};

}  // namespace penstock::experiments
