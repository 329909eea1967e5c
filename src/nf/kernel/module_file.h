// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The file with somebody else's kernel: a cubin, a fatbin or PTX. The driver says whether it can run it; what can be
// found out without one is checked here, for messages that name the file. Needs no GPU.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::kernel {

struct ModuleFile {
  enum class Format : std::uint8_t { cubin, fatbin, ptx };
  Format format = Format::cubin;
  std::vector<char> code;  // PTX: with a 0 at its end, as the driver wants it
};

[[nodiscard]] std::string_view name(ModuleFile::Format format) noexcept;

inline constexpr std::size_t kMostModuleBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostTableBytes = std::size_t{1} << 30;

/// The content of a regular file of at most `most_bytes`.
[[nodiscard]] Result<std::vector<char>> read_binary_file(const std::string& path, std::size_t most_bytes);

/// Checks its headers, and that it has the kernel `entry`, unless it is a fatbin, which may be compressed.
[[nodiscard]] Result<ModuleFile> read_module(const std::string& path, std::string_view entry);
/// Of a file's content. `path`: for errors.
[[nodiscard]] Result<ModuleFile> check_module(std::vector<char> content, const std::string& path,
                                              std::string_view entry);

}  // namespace penstock::kernel
