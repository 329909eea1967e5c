// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Linux capabilities (capabilities(7)): a process keeps those that it needs, and gives up all others for good.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

enum class Capability : std::uint8_t {
  dac_override = 1,
  net_admin = 12,
  net_raw = 13,
  ipc_lock = 14,
  sys_admin = 21,
  bpf = 39
};

/// "CAP_NET_RAW"
[[nodiscard]] std::string_view name(Capability capability) noexcept;
/// Whether the calling thread can use it now.
[[nodiscard]] bool has_capability(Capability capability) noexcept;

/// The calling thread, and those that it starts later, give up all capabilities but those in `needed` that they have,
/// and cannot get others by executing programs either. Returns errno, or 0.
[[nodiscard]] int keep_only(const std::vector<Capability>& needed) noexcept;

/// Programs that the calling thread executes from now on have these capabilities too, as far as the thread has them
/// (the ambient set). Returns errno, or 0.
[[nodiscard]] int pass_on(const std::vector<Capability>& needed) noexcept;

/// "the capability CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM, or AmbientCapabilities=CAP_NET_RAW of systemd)"
[[nodiscard]] std::string how_to_get(Capability capability);

}  // namespace penstock
