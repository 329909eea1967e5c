// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests that use the kernel as an oracle, in a network namespace of their own: interfaces whose other end is the
// test, and what is set there.

#pragma once

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace penstock::testing {

/// Whether a command of the shell succeeds. What it prints is lost.
inline bool succeeds(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// Sets a parameter of this network namespace, such as "ipv4/conf/all/forwarding".
inline bool set_network_parameter(const std::string& parameter, std::string_view value) {
  FILE* const file = std::fopen(("/proc/sys/net/" + parameter).c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(value.data(), 1, value.size(), file) == value.size();
  return std::fclose(file) == 0 && written;
}

/// The descriptor of a new interface of this kind, which does not block; -1: there is none here.
inline int open_interface(const char* name, short kind) {
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_flags = static_cast<short>(kind | IFF_NO_PI);
  if (fd >= 0 && ::ioctl(fd, TUNSETIFF, &request) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

/// For IP packets.
inline int open_tunnel(const char* name) { return open_interface(name, IFF_TUN); }
/// For Ethernet frames.
inline int open_tap(const char* name) { return open_interface(name, IFF_TAP); }

}  // namespace penstock::testing
