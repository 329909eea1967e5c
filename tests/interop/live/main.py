# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one scenario with live ports. usage: main.py SCENARIO KIND PROGRAM DIRECTORY, in `unshare -nm`; see live_test.cc.
Exit status 77: this machine cannot run it."""

import sys

import chains
import connections
import control
import conversations
import counts
import evening
import frames
import frr
import ftp
import gateway
import home
import ike
import kernel_routes
import kernel_rules
import lifecycle
import missing_neighbours
import peers
import rejects
import soak
import streams
import tunnels
import upgrade
from net import SKIPPED, Net, Skip, sh


def main():
    name, kind, program, directory = sys.argv[1:]
    scenarios = {}
    for module in (streams, frames, counts, chains, lifecycle, control, soak, tunnels, peers, rejects, home, evening, gateway, ftp, conversations, kernel_routes, kernel_rules, frr,
                   ike, missing_neighbours, upgrade, connections):
        scenarios.update(module.SCENARIOS)
    try:
        sh("mount -t tmpfs tmpfs /run && mkdir /run/netns")
        for tool in ("ip", "nsenter", "setpriv", "ping", "ethtool", "iperf3", "curl", "ss"):
            sh(f"command -v {tool}")
        sh("ip netns add probe && ip netns del probe")
    except AssertionError as error:
        print(error)
        sys.exit(SKIPPED)
    try:
        scenarios[name](lambda **shape: Net(kind, directory, program, **shape))
    except Skip as skip:
        print("skipped:", skip)
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
