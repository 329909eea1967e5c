// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel's SAs and policies (XFRM), of the calling thread's network namespace. Netlink tells that something has
// changed; what there is then, `ip xfrm` prints, in the form that `ipsec` reads. So nothing is lost if messages are.

#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "control/kernel/route_socket.h"

namespace penstock::control {

/// Texts of `ip -s xfrm`. The SAs have keys, which are wiped on destruction.
struct XfrmTexts {
  XfrmTexts() = default;
  XfrmTexts(const XfrmTexts&) = delete;
  XfrmTexts& operator=(const XfrmTexts&) = delete;
  ~XfrmTexts();

  std::string state, policy;
};

class KernelXfrm {
 public:
  /// Follows changes from now on. Needs CAP_NET_ADMIN.
  [[nodiscard]] static Result<KernelXfrm> open();
  /// Waits until SAs or policies have changed, at most so long, and takes all changes that have come. False: none has.
  /// Also ends at a signal.
  [[nodiscard]] Result<bool> wait(int most_ms);
  /// What there is now, with what changed before.
  [[nodiscard]] static Result<void> read(XfrmTexts& into);

 private:
  explicit KernelXfrm(RouteSocket changes) : changes_(std::move(changes)) {}

  RouteSocket changes_;
};

}  // namespace penstock::control
