// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors of a conversation, which have no place in a file.

#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace penstock::proxy {

[[nodiscard]] inline Error problem(std::string message, std::string found = "", std::string expected = "") {
  return {{}, std::move(message), std::move(found), std::move(expected)};
}

}  // namespace penstock::proxy
