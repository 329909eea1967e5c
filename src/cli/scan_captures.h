// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The captures that `penstock scan` is given: files, folders of files, the standard input.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

struct Captures {
  std::vector<std::string> paths;
  Errors left_out;  // what is not read, and why: files of a folder, files that are given more than once
  Errors errors;    // folders without captures, or that cannot be read
};

/// Files as they are given, in this order, whether or not they can be read. A folder stands for the files in it, not
/// those in folders below it, by the times of their first packets; files that cannot be read come last. What neither is
/// a capture nor is named as one is left out. A file that is given more than once, under whatever path, is read once.
[[nodiscard]] Captures find_captures(const std::vector<std::string>& given);

}  // namespace penstock::cli
