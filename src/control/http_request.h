// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the HTTP server serves, decided before it looks for the page.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/listen_address.h"

namespace penstock::control {

/// The parts of a request that matter, as the client sent them.
struct HttpRequest {
  std::string_view method;
  std::optional<std::string_view> host;  // of the header; HTTP/1.0 needs none
};

enum class HttpVerdict : std::uint8_t {
  serve,
  wrong_method,  // neither GET nor HEAD
  wrong_host,    // not a name of this server
};

/// A web page that the user visits can give its own name our address (DNS rebinding); then the user's browser would let
/// it read ours. So where only this machine can connect, the host must be an IP address or localhost: such names cannot
/// be given away. Elsewhere, the machine's own name cannot be known.
[[nodiscard]] HttpVerdict judge(const HttpRequest& request, const ListenAddress& listen);

}  // namespace penstock::control
