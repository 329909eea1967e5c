// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// From which folders libraries are loaded at run time.

#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace penstock {

/// Whether only this user or root can have put files there. Code from other folders is not run.
[[nodiscard]] inline bool is_trusted_folder(const std::filesystem::path& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 && (status.st_uid == 0 || status.st_uid == ::geteuid()) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace penstock
