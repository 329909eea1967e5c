# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios with live ports. usage: live.py SCENARIO KIND PROGRAM DIRECTORY, in unshare -nm (see live_test.cc)"""

import hashlib
import os

from live_net import events, lost, main, received_by, sh


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def basics(make, workers):
    net = make(workers=workers)
    net.start()
    for version in (4, 6):
        check(" 0% packet loss" in net.ping(version=version), "pings are lost")
    for version in (4, 6):
        for options in ("", "-R"):
            net.iperf(options, version)
    udp = net.iperf("-u -b 20M -l 1200", bytes_="2M")["sum"]
    check(udp["lost_packets"] == 0, udp)
    report = net.stop()
    for port in ("lan", "wan"):
        check(lost(report, port) == 0, port, report["ports"][port])
        check(events(report, port)["frames_split"] > 0, "no frame was split", report["ports"][port])
        check(events(report, port)["checksums_completed"] > 0, report["ports"][port])


def download(make, workers, chain="", **shape):
    """Files of both hosts over HTTP, at the same time, with offloads on and off at either side."""
    net = make(workers=workers, **shape)
    net.start(chain)
    contents = os.urandom(1 << 20) * 25
    for host in ("la", "lb"):
        folder = net.path(f"www-{host}")
        os.mkdir(folder)
        with open(folder + "/file", "wb") as file:
            file.write(contents)
        net.serve(host, f"python3 -m http.server -d {folder} --bind :: 8000", 8000)
    expected = hashlib.sha256(contents).hexdigest()
    for on_la, on_lb in ((True, True), (False, True), (True, False), (False, False)):
        net.offloads(on_la, ["la"])
        net.offloads(on_lb, ["lb"])
        for client, server, version in (("la", "lb", 4), ("lb", "la", 6)):
            sum_ = net.host(client, f"curl -sS --max-time 60 -g http://{url(net, server, version)}:8000/file | sha256sum")
            check(sum_.split()[0] == expected, "the file is damaged", client, on_la, on_lb)
    return net.stop()


def url(net, host, version):
    return net.address(host, 4) if version == 4 else f"[{net.address(host, 6)}]"


SCENARIOS = {
    "Basics1": lambda make: basics(make, 1),
    "Basics2": lambda make: basics(make, 2),
    "Download1": lambda make: download(make, 1),
    "Download3": lambda make: download(make, 3),
}

if __name__ == "__main__":
    main(SCENARIOS)
