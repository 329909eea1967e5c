// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A proxy as a shell runs it. Its device is simulated (proxy_program.cc), except in tests on a GPU
// (gpu/processes_gpu_test), which have no PENSTOCK_PROXY_PROGRAM.

#pragma once

#include <string>

#include "program/program_for_test.h"

namespace penstock {

class ProxyProgram : public Program {
 protected:
  /// `proxy` starts one and waits until it listens; `tenant` is the program with the function `block`, which only a
  /// simulated device has.
  [[nodiscard]] int script(const std::string& commands) const {
#ifdef PENSTOCK_PROXY_PROGRAM
    const std::string tenant = PENSTOCK_PROXY_PROGRAM, serve = "simulate";
#else
    const std::string tenant = program(), serve = "proxy serve";
#endif
    return shell("proxy() { '" + tenant + "' " + serve +
                 " sock \"$@\" & PROXY=$!; while [ ! -S sock ] && kill -0 $PROXY; do sleep 0.01; done; }\n"
                 "tenant() { timeout 60 '" +
                 tenant +
                 "' \"$@\"; }\n"
                 // Waits until the proxy has so many tenants.
                 "tenants() { for i in $(seq 500); do [ $(penstock proxy status --json sock 2>/dev/null | "
                 "grep -c '\"packets\": [0-9]\\{4\\}') = $1 ] && return; sleep 0.02; done; return 1; }\n"
                 "trap 'kill $PROXY 2>/dev/null; wait $PROXY 2>/dev/null' EXIT\n" +
                 commands);
  }
};

}  // namespace penstock
