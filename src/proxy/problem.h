// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors of a conversation, which have no place in a file.

#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "proxy/protocol.h"

namespace penstock::proxy {

[[nodiscard]] inline Error problem(std::string message, std::string found = "", std::string expected = "") {
  return {{}, std::move(message), std::move(found), std::move(expected)};
}

/// A failure as the proxy sends it.
[[nodiscard]] inline Reply refusal(const Error& error) {
  Reply reply;
  reply.failed = Reply::kRefused;
  reply.message = Text<320>(error.message);
  reply.found = Text<320>(error.found);
  reply.expected = Text<320>(error.expected);
  return reply;
}
/// The same as its tenant, or who asks it, reports it. `path`: of its socket.
[[nodiscard]] inline Error error_of(const std::string& path, const Reply& reply) {
  return {{path, 0, 0},
          "the proxy refuses: " + std::string(reply.message.view()),
          std::string(reply.found.view()),
          std::string(reply.expected.view())};
}
/// There is no reply. `error`: errno.
[[nodiscard]] inline Error no_answer(const std::string& path, int error) {
  const bool has_gone = error == EPIPE;
  return {{path, 0, 0},
          "the proxy does not answer",
          has_gone ? "a connection that it has closed" : std::system_category().message(error),
          has_gone ? "a `penstock proxy serve` of this release, and no other service" : ""};
}

}  // namespace penstock::proxy
