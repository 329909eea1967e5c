// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A proxy whose device is simulated (proxy_program.cc), as a shell runs it.

#pragma once

#include <string>

#include "program/program_for_test.h"

#ifndef PENSTOCK_PROXY_PROGRAM
#define PENSTOCK_PROXY_PROGRAM ""  // where the header is compiled alone
#endif

namespace penstock {

class ProxyProgram : public Program {
 protected:
  /// `proxy` starts one and waits until it listens; `tenant` is the program with the function `block`.
  [[nodiscard]] int script(const std::string& commands) const {
    return shell("proxy() { '" PENSTOCK_PROXY_PROGRAM
                 "' simulate sock \"$@\" & PROXY=$!; while [ ! -S sock ]; do sleep 0.01; "
                 "done; }\n"
                 "tenant() { timeout 60 '" PENSTOCK_PROXY_PROGRAM
                 "' \"$@\"; }\n"
                 // Waits until the proxy has so many tenants.
                 "tenants() { for i in $(seq 500); do [ $(penstock proxy status --json sock 2>/dev/null | "
                 "grep -c '\"packets\": [0-9]\\{4\\}') = $1 ] && return; sleep 0.02; done; return 1; }\n"
                 "trap 'kill $PROXY 2>/dev/null; wait $PROXY 2>/dev/null' EXIT\n" +
                 commands);
  }
};

}  // namespace penstock
