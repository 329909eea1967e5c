// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/capabilities.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

namespace penstock {

namespace {

/// Sets of 64 capabilities, as two words each.
using Sets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

bool read_sets(Sets& sets) noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, sets.data()) == 0;
}

}  // namespace

std::string_view name(Capability capability) noexcept {
  switch (capability) {
    case Capability::dac_override: return "CAP_DAC_OVERRIDE";
    case Capability::net_admin: return "CAP_NET_ADMIN";
    case Capability::net_raw: return "CAP_NET_RAW";
    case Capability::ipc_lock: return "CAP_IPC_LOCK";
    case Capability::sys_admin: return "CAP_SYS_ADMIN";
    case Capability::bpf: return "CAP_BPF";
  }
  return "";
}

bool has_capability(Capability capability) noexcept {
  Sets sets{};
  const auto number = static_cast<unsigned>(capability);
  return read_sets(sets) && (sets[number / 32].effective >> number % 32 & 1U) != 0;
}

int keep_only(const std::vector<Capability>& needed) noexcept {
  Sets sets{};
  if (!read_sets(sets)) return errno;
  std::array<std::uint32_t, 2> keep{};
  for (const Capability capability : needed)
    keep[static_cast<unsigned>(capability) / 32] |= 1U << static_cast<unsigned>(capability) % 32;
  // From the bounding set first: that needs CAP_SETPCAP, and does not matter without it.
  for (unsigned number = 0; number < 64; ++number) {
    if ((keep[number / 32] >> number % 32 & 1U) == 0) static_cast<void>(::prctl(PR_CAPBSET_DROP, number, 0, 0, 0));
  }
  for (std::size_t word = 0; word < sets.size(); ++word) {
    sets[word].permitted &= keep[word];
    sets[word].effective = sets[word].permitted;
    sets[word].inheritable = 0;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return errno;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return 0;
}

int pass_on(const std::vector<Capability>& needed) noexcept {
  Sets sets{};
  if (!read_sets(sets)) return errno;
  for (const Capability capability : needed) {
    const auto number = static_cast<unsigned>(capability);
    sets[number / 32].inheritable |= sets[number / 32].permitted & 1U << number % 32;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return errno;
  for (const Capability capability : needed) {
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, static_cast<unsigned long>(capability), 0, 0) != 0) return errno;
  }
  return 0;
}

std::string how_to_get(Capability capability) {
  std::string lower(name(capability));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("the capability {0} (setcap {1}+ep PROGRAM, or AmbientCapabilities={0} of systemd)",
                     name(capability), lower);
}

}  // namespace penstock
