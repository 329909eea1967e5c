// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/connection.h"

#include <algorithm>
#include <array>

namespace penstock::classify {

namespace {

constexpr std::array<std::string_view, kConnectionStates> kStateNames{"invalid", "new", "established", "related",
                                                                      "untracked"};

}  // namespace

std::string_view name(ConnectionState state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::optional<ConnectionState> connection_state_named(std::string_view name) {
  const auto found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<ConnectionState>(found - kStateNames.begin());
}

std::string to_string(const Connection& connection) {
  std::string text(name(connection.state));
  if (!connection.exists()) return text;
  if (connection.reply) text += ", reply";
  if (connection.source_translated) text += ", source translated";
  if (connection.destination_translated) text += ", destination translated";
  return text;
}

}  // namespace penstock::classify
