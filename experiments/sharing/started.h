// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that an experiment starts and waits for until they are ready. Each owns its process, and ends it.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/program.h"

namespace penstock::experiments {

using Words = std::vector<std::string>;

/// Both, in this order.
[[nodiscard]] Words joined(Words words, const Words& more);

/// The last line that a program has printed to this file, without the time of a message and the paths of the folder; ""
/// if there is none.
[[nodiscard]] std::string last_line(const std::string& output, const std::string& folder);

/// A started program that becomes ready.
struct Readiness {
  std::string what;    // "the proxy", for messages
  std::string output;  // file with what it prints
  std::string folder;  // whose paths no message needs
  std::chrono::milliseconds patience{};
  const std::atomic<bool>* stop = nullptr;
};

/// Waits until `is_ready` returns true. Fails if the program ends before, does not become ready in time, or `stop` is
/// set.
[[nodiscard]] Result<void> wait_until_ready(Program& program, const Readiness& how,
                                            const std::function<bool()>& is_ready);

}  // namespace penstock::experiments
