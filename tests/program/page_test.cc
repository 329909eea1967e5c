// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of a run, in headless Chromium: page.py looks at it.

#include <gtest/gtest.h>

#include <string>

#include "base/testing/free_port.h"
#include "program/program_for_test.h"

namespace penstock {
namespace {

TEST_F(Program, ShowsARunInABrowser) {
  if (shell("command -v chromium") != 0)
    GTEST_SKIP() << "Chromium is not installed (a package of Debian, not of Ubuntu)";
  write("rules.txt",
        "*filter\n:FORWARD ACCEPT [0:0]\n"
        "-A FORWARD -s 10.0.0.0/9 -m comment --comment \"<img src=x onerror=alert(1)>\" -j DROP\nCOMMIT\n");
  const std::string address = "127.0.0.1:" + std::to_string(testing::free_port());
  write("endless.yaml",
        "ports: {lan: {generator: {rate: 20kpps, flows: 64, source: 10.0.0.0/8}}, wan: {null: {}}}\n"
        "chain:\n"
        "  - firewall: {rules: rules.txt}\n"
        "  - fork:\n"
        "      - when: {in_port: lan}\n"
        "        chain: [firewall: {rules: rules.txt}]\n"
        "      - chain: [filter: {expression: tcp}]\n"
        "outputs: {metrics: {listen: \"" +
            address + "\"}}\n");
  ASSERT_EQ(shell("'" PENSTOCK_PROGRAM "' run endless.yaml -q --duration 200s >run.out 2>run.err & echo $! >pid\n"
                  "until curl -sf http://" +
                  address + "/metrics >metrics; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
            0)
      << read("run.err");
  EXPECT_EQ(shell("python3 " PENSTOCK_SOURCE_DIR "/tests/program/page.py http://" + address + "/ $(cat pid)"), 0)
      << read("out") << read("err");
  static_cast<void>(shell("kill -9 $(cat pid)"));
}

}  // namespace
}  // namespace penstock
