// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

namespace penstock::firewall {

/// A word of a rule without its quotes and escapes; it owns its `text`. Only an unquoted word can be an option or a
/// `!`.
struct IptablesWord {
  std::string text;
  std::uint32_t column = 0;
  bool quoted = false;
};

}  // namespace penstock::firewall
