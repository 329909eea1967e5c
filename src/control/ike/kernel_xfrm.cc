// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/ike/kernel_xfrm.h"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>

#include "base/text_file.h"
#include "base/wipe.h"

namespace penstock::control {

namespace {

constexpr int kBufferBytes = 4 << 20;  // of messages, each of which only says that something has changed
/// A daemon changes several SAs and policies at once.
constexpr int kGatheringMs = 2;
constexpr int kMostGathered = 100;

/// Appends what `ip -s xfrm OBJECT` prints, without a shell's or stdio's copies of it.
Result<void> print(const char* object, std::string& into) {
  const std::string command = fmt::format("PATH=/usr/sbin:/usr/bin:/sbin:/bin exec ip -s xfrm {}", object);
  FILE* const pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) {
    return failure(
        Error{{}, fmt::format("cannot run `ip -s xfrm {}`", object), std::system_category().message(errno), ""});
  }
  static_cast<void>(std::setvbuf(pipe, nullptr, _IONBF, 0));
  std::array<char, 64 << 10> part;
  bool fits = true;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) {
    fits = fits && into.size() + count <= file_limit();
    if (!fits) continue;
    if (into.capacity() < into.size() + count) {  // so that no old copy is left
      std::string larger;
      larger.reserve(2 * (into.size() + count));
      larger = into;
      wipe(into.data(), into.size());
      into.swap(larger);
    }
    into.append(part.data(), count);
  }
  wipe(part.data(), part.size());
  const int status = ::pclose(pipe);
  if (!fits) return failure(file_too_large(fmt::format("ip -s xfrm {}", object)));
  if (status == 0) return {};
  return failure(Error{{},
                       fmt::format("`ip -s xfrm {}` failed", object),
                       WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status)) : "a signal",
                       "iproute2, and CAP_NET_ADMIN"});
}

}  // namespace

XfrmTexts::~XfrmTexts() { wipe(state.data(), state.size()); }

Result<KernelXfrm> KernelXfrm::open() {
  auto socket = RouteSocket::open(NETLINK_XFRM);
  if (!socket) return failure(std::move(socket).error());
  constexpr auto kGroups = std::to_array<unsigned>({XFRMNLGRP_SA, XFRMNLGRP_POLICY, XFRMNLGRP_EXPIRE});
  if (auto subscribed = socket->subscribe(kGroups, kBufferBytes); !subscribed)
    return failure(std::move(subscribed).error());
  return KernelXfrm(std::move(*socket));
}

Result<bool> KernelXfrm::wait(int most_ms) {
  pollfd changed{changes_.fd(), POLLIN, 0};
  bool any = false;
  for (int times = 0; times<kMostGathered&& ::poll(&changed, 1, any ? kGatheringMs : most_ms)> 0; ++times) {
    std::span<const std::uint8_t> messages;
    for (RouteSocket::Received received = RouteSocket::Received::messages;
         received != RouteSocket::Received::nothing;) {
      received = changes_.receive(messages);
      if (received == RouteSocket::Received::failed)
        return failure(Error{{}, "cannot follow the kernel's SAs", std::system_category().message(errno), ""});
      any |= received != RouteSocket::Received::nothing;
    }
  }
  return any;
}

Result<void> KernelXfrm::read(XfrmTexts& into) {
  // In this order: a policy that is new finds its SAs rather than the other way round, as daemons remove policies
  // first.
  if (auto printed = print("policy", into.policy); !printed) return printed;
  return print("state", into.state);
}

}  // namespace penstock::control
