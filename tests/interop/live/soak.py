# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A long run at 80 % of what the chain can carry: it asks for no more memory, and every packet is counted.

PENSTOCK_SOAK_SECONDS says how long (10 by default); soak.json in the scenario's directory has what was measured."""

import json
import os
import time

from chains import firewall, nids
from net import check, frames_received_by, lost, memory_kib

SECONDS = int(os.environ.get("PENSTOCK_SOAK_SECONDS", "10"))
LOAD = 0.8
STREAMS = 4
# An arena of the C library may grow late. A leak of a byte per packet would be far more in a run of minutes.
SLACK_KIB = 1024


def stream_rate(net, seconds, bits=""):
    """Starts `STREAMS` TCP streams each way. Returns the client, which prints JSON when it ends."""
    net.serve("lb", "iperf3 -s -1 -p 5201", 5201)
    return net.serve("la", f"iperf3 -J -c {net.address('lb')} -p 5201 --bidir -P {STREAMS} -t {seconds} {bits}")


def end_of(client, seconds):
    client.process.wait(seconds + 30)
    return json.loads(client.text())["end"]


def frames_sent_and_counted(net, report, sent):
    """For each port: the frames that its host sent, those of them that came in, and those that were counted as lost."""
    for host, port in net.ports.items():
        yield port, sent[host], frames_received_by(report, port), lost(report, port)


def soak(make):
    net = make(workers=2, routed=True, ipv6=False)  # the hosts send nothing by themselves
    before = {host: net.sent(host) for host in net.ports}
    net.start(firewall(net) + nids(net) + net.router())
    folder = net.path("www")
    os.mkdir(folder)
    with open(folder + "/page", "wb") as file:
        file.write(os.urandom(20000))
    net.serve("lb", f"python3 -m http.server -d {folder} --bind :: 8000 >/dev/null 2>&1", 8000)

    trial = end_of(stream_rate(net, 4), 4)
    most = trial["sum_received"]["bits_per_second"] + trial["sum_received_bidir_reverse"]["bits_per_second"]
    began = time.monotonic()
    client = stream_rate(net, SECONDS, f"-b {LOAD * most / 2 / STREAMS:.0f}")
    # Connections that come and go, beside the long ones.
    pages = net.serve("la", f"sh -c 'while curl -s -m 5 -o /dev/null http://{net.address('lb')}:8000/page; do sleep 0.05; done'")
    pings = net.serve("la", f"ping -q -i 0.02 {net.address('lb')}")
    samples = []
    while client.is_running():
        check(time.monotonic() < began + SECONDS + 60, "the traffic does not end")
        samples.append({"s": round(time.monotonic() - began, 1)} | memory_kib(net))
        time.sleep(min(10, SECONDS / 40))
    result = end_of(client, 0)
    check(pages.is_running(), "a page did not come")
    pages.end()
    pings.end()
    time.sleep(0.5)
    sent = {host: net.sent(host) - before[host] for host in net.ports}
    report = net.stop()

    carried = result["sum_received"]["bits_per_second"] + result["sum_received_bidir_reverse"]["bits_per_second"]
    record = {"kind": net.kind.kind, "seconds": SECONDS, "most_mbps": most / 1e6, "offered_mbps": LOAD * most / 1e6,
              "carried_mbps": carried / 1e6, "frames_sent_to": {port: sent[host] for host, port in net.ports.items()},
              "packets": report["packets"], "ports": report["ports"],
              "dropped_by_chain": report["dropped_by_chain"], "memory_kib": samples}
    net.write("soak.json", json.dumps(record, indent=1))
    for port, frames, came, gone in frames_sent_and_counted(net, report, sent):
        check(frames == came + gone, port, "sent", frames, "came", came, "lost", gone, report["ports"][port])
    packets = report["packets"]
    check(packets["in"] == packets["forwarded"] + packets["dropped"], packets)
    # What is allocated when it is first needed has been by then.
    settled = max(sample["allocated"] for sample in samples if sample["s"] <= SECONDS / 2)
    check(samples[-1]["allocated"] <= settled + SLACK_KIB, "memory grows:", samples)


SCENARIOS = {"Soak": soak}
