// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The captures given to `penstock scan`: files, folders of files, or the standard input.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

struct Captures {
  std::vector<std::string> paths;
  Errors left_out;  // what is not read, and why: files in folders, and files that are given more than once
  Errors errors;    // folders without captures, or that cannot be read
};

/// Expands the given names to captures. Files keep their order, even if they cannot be read. A folder is replaced by
/// its files, without those in subfolders, ordered by the times of their first packets; files that cannot be read come
/// last. Files in a folder that neither are captures nor have a capture's name are skipped. A file that is given more
/// than once, under any path, is read once.
[[nodiscard]] Captures find_captures(const std::vector<std::string>& given);

}  // namespace penstock::cli
