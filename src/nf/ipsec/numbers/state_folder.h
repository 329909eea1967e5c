// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The folder that outlives the program: small files that are changed in place, and locks that end with the process.
// What `sync` has returned 0 for survives a crash of the program and of the machine; what was written since may
// survive, wholly, in part or not at all. An interface, so that tests can put a disk that fails in its place.
//
// Calls return 0 or an errno. Not for use by several threads at once.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/error.h"

namespace penstock::ipsec {

/// Differs between a file and its copy, also one that is restored from a backup.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint64_t born_ns = 0;  // 0: the file system does not say

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

class StateFolder {
 public:
  virtual ~StateFolder() = default;
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;

  /// Exclusive, on one byte of the lock file. EAGAIN: another process has it.
  [[nodiscard]] virtual int lock(std::uint64_t place) = 0;
  virtual void unlock(std::uint64_t place) noexcept = 0;
  /// Whether the folder and its lock file are still where other processes find them.
  [[nodiscard]] virtual bool holds_locks() = 0;

  /// A new, empty file in place of any of that name.
  [[nodiscard]] virtual tl::expected<FileIdentity, int> make(const std::string& name) = 0;
  [[nodiscard]] virtual tl::expected<FileIdentity, int> identify(const std::string& name) = 0;
  /// Less than `bytes` where the file ends before.
  [[nodiscard]] virtual tl::expected<std::string, int> read(const std::string& name, std::uint64_t offset,
                                                            std::size_t bytes) = 0;
  [[nodiscard]] virtual int write(const std::string& name, std::uint64_t offset, std::string_view bytes) = 0;
  /// What was written to these files lasts from now on.
  [[nodiscard]] virtual int sync(std::span<const std::string> names) = 0;
  [[nodiscard]] virtual int rename(const std::string& from, const std::string& to) = 0;
  /// New names last from now on.
  [[nodiscard]] virtual int sync_names() = 0;
};

/// Whether missing folders on the way to it are made too.
enum class MakeParents : bool { no, yes };

/// Makes the folder where it is missing, readable for its owner alone. Refuses one that others may write to: they could
/// set numbers back. Fails where `path` is empty.
[[nodiscard]] Result<std::unique_ptr<StateFolder>> open_state_folder(const std::string& path, MakeParents parents);

/// What would keep `open_state_folder` from working, as far as can be told without making anything.
[[nodiscard]] Errors check_state_folder(const std::string& path, MakeParents parents);

/// For reading alone, without locks; null where it is missing.
[[nodiscard]] std::unique_ptr<StateFolder> view_state_folder(const std::string& path);

/// Where this user's state lies: $STATE_DIRECTORY (systemd), /var/lib/penstock for root, else $XDG_STATE_HOME/penstock
/// or
/// ~/.local/state/penstock; in a folder `ipsec` there. Empty where none of them is known.
[[nodiscard]] std::string default_state_folder();

}  // namespace penstock::ipsec
