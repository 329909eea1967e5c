// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which part of the device is reserved for each tenant with a latency bound. Pure.

#pragma once

#include <span>

namespace penstock::proxy {

/// Of a tenant that has lately wanted something.
struct Claim {
  double part = 0;    // of the device, by its profile
  double needed = 0;  // part with which its bound holds; 0: it has no bound; infinity: no part is enough
  double share = 0;   // what is reserved

  [[nodiscard]] bool holds() const noexcept { return share >= needed; }
};

/// Sets the shares. A tenant with a bound gets what it needs and a little more, as far as its profile goes; beyond, of
/// what others' profiles leave, and if that is not enough for all, by their profiles. So no bound takes from another
/// tenant what that one needs of its profile. What remains is divided by profiles too, since a load can grow faster
/// than it is measured: what is reserved and not used is not lost, others use it. The parts are at most 1 in sum; so
/// are the shares together with the parts of tenants without a bound.
void choose_reservations(std::span<Claim> claims) noexcept;

}  // namespace penstock::proxy
