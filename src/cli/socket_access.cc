// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/socket_access.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace penstock::cli {

namespace {

std::optional<std::uint32_t> number_in(std::string_view text, int base = 10) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A user or group, by its name or number.
std::optional<uid_t> user_named(const std::string& name) {
  if (const auto number = number_in(name)) return *number;
  const passwd* const found = ::getpwnam(name.c_str());  // NOLINT(concurrency-mt-unsafe): before threads start
  return found == nullptr ? std::nullopt : std::optional(found->pw_uid);
}
std::optional<gid_t> group_named(const std::string& name) {
  if (const auto number = number_in(name)) return *number;
  const group* const found = ::getgrnam(name.c_str());  // NOLINT(concurrency-mt-unsafe): before threads start
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

}  // namespace

void SocketAccess::add_to(CLI::App& command, std::string_view what) {
  command.add_option("--mode", mode, "permissions of the socket: who may write to it may connect")
      ->type_name("MODE")
      ->capture_default_str();
  command.add_option("--allow-user", users, fmt::format("only this user may {}; several are possible", what))
      ->type_name("USER");
  command
      .add_option("--allow-group", groups, fmt::format("only members of this group may {}; several are possible", what))
      ->type_name("GROUP");
}

SocketAccess::Checked SocketAccess::check(Errors& errors) const {
  const auto mistake = [&](std::string_view option, std::string_view found, std::string expected) {
    errors.push_back({{}, fmt::format("{}: wrong value", option), in_quotes(found), std::move(expected)});
  };
  Checked checked;
  if (const auto number = number_in(mode, 8); number && *number <= 0777) {
    checked.mode = *number;
  } else {
    mistake("--mode", mode, "permissions as of chmod, such as 660");
  }
  for (const std::string& name : users) {
    if (const auto user = user_named(name)) {
      checked.users.push_back(*user);
    } else {
      mistake("--allow-user", name, "a user of this machine, or a number");
    }
  }
  for (const std::string& name : groups) {
    if (const auto group = group_named(name)) {
      checked.groups.push_back(*group);
    } else {
      mistake("--allow-group", name, "a group of this machine, or a number");
    }
  }
  return checked;
}

}  // namespace penstock::cli
