// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of commands that listen on a unix socket: who may connect.

#pragma once

#include <sys/types.h>

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

struct SocketAccess {
  std::string mode = "660";
  std::vector<std::string> users, groups;

  /// This object must outlive the command. `what`: what who connects may do: "be a tenant".
  void add_to(CLI::App& command, std::string_view what);

  struct Checked {
    mode_t mode = 0660;
    std::vector<uid_t> users;
    std::vector<gid_t> groups;
  };
  /// Appends mistakes to `errors`. Call it before threads start.
  [[nodiscard]] Checked check(Errors& errors) const;
};

}  // namespace penstock::cli
