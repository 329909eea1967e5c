// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The folder that outlives the process: small files updated in place, and locks that end with the process. What was
// written before a successful `sync` survives a crash of the program or the machine; later writes may survive wholly,
// partly or not at all. An interface, so that tests can substitute a failing disk.
//
// Calls return 0 or an errno. Not thread-safe.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/error.h"

namespace penstock::ipsec {

/// Differs between a file and any copy of it, including one restored from a backup.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint64_t born_ns = 0;  // 0 if the file system does not provide it

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

class StateFolder {
 public:
  virtual ~StateFolder() = default;
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;

  /// Takes an exclusive lock on one byte of the lock file. EAGAIN: another process holds it.
  [[nodiscard]] virtual int lock(std::uint64_t place) = 0;
  virtual void unlock(std::uint64_t place) noexcept = 0;
  /// Whether the folder and its lock file are still where other processes would find them.
  [[nodiscard]] virtual bool holds_locks() = 0;

  /// Creates an empty file, replacing any of that name.
  [[nodiscard]] virtual tl::expected<FileIdentity, int> make(const std::string& name) = 0;
  [[nodiscard]] virtual tl::expected<FileIdentity, int> identify(const std::string& name) = 0;
  /// Returns fewer than `bytes` if the file ends earlier.
  [[nodiscard]] virtual tl::expected<std::string, int> read(const std::string& name, std::uint64_t offset,
                                                            std::size_t bytes) = 0;
  [[nodiscard]] virtual int write(const std::string& name, std::uint64_t offset, std::string_view bytes) = 0;
  /// Makes writes to these files durable.
  [[nodiscard]] virtual int sync(std::span<const std::string> names) = 0;
  [[nodiscard]] virtual int rename(const std::string& from, const std::string& to) = 0;
  /// Makes created and renamed files durable.
  [[nodiscard]] virtual int sync_names() = 0;
};

/// Whether missing parent folders are created too.
enum class MakeParents : bool { no, yes };

/// Creates the folder if it is missing, accessible only to its owner. Refuses a folder that others may write to: they
/// could set numbers back. Fails if `path` is empty.
[[nodiscard]] Result<std::unique_ptr<StateFolder>> open_state_folder(const std::string& path, MakeParents parents);

/// What would make `open_state_folder` fail, as far as can be determined without creating anything.
[[nodiscard]] Errors check_state_folder(const std::string& path, MakeParents parents);

/// Read-only, without locks; null if the folder is missing.
[[nodiscard]] std::unique_ptr<StateFolder> view_state_folder(const std::string& path);

/// The folder `ipsec` in this user's state directory: $STATE_DIRECTORY (systemd), /var/lib/penstock for root, else
/// $XDG_STATE_HOME/penstock or ~/.local/state/penstock. Empty if none of them is known.
[[nodiscard]] std::string default_state_folder();

}  // namespace penstock::ipsec
