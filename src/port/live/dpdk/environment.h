// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK in this process: its library, and its environment (EAL), which starts once, with the arguments of all `dpdk`
// ports that exist then, and stays until the process ends.

#pragma once

#include "base/error.h"
#include "port/live/dpdk/arguments.h"
#include "port/live/dpdk/module.h"

namespace penstock::port::dpdk {

/// A port takes part in the environment while this exists. Thread-safe.
class Participant {
 public:
  explicit Participant(PortArguments arguments);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  /// Whether the library can be loaded, and the arguments are possible. Starts nothing.
  [[nodiscard]] Errors check() const;
  /// Starts the environment unless it has been started. The module stays loaded.
  [[nodiscard]] Result<const Module*> start() const;

 private:
  const PortArguments arguments_;
};

}  // namespace penstock::port::dpdk
