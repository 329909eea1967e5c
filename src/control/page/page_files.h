// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The files of the page that shows a run, which the build embeds into the program.

#pragma once

#include <span>
#include <string_view>

namespace penstock::control {

struct PageFile {
  std::string_view path;  // "/page.css"
  std::string_view type;
  std::string_view text;
};

[[nodiscard]] std::span<const PageFile> page_files() noexcept;

}  // namespace penstock::control
