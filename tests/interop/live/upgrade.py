# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A process takes over from another one (docs/control.md): no frame is lost that is not counted, and none is doubled.

upgrade.json in the scenario's directory has what was measured."""

import array
import json
import os
import random
import re
import signal
import socket
import time

from chains import ipsec, nids
from control import Operator, Probes, TwoVersions, frames_of, wait_until_quiet
from net import check, frames_received_by, in_host, lost, sh, wait_until
from numbered import Stream, udp_drops

RATE = 2000  # datagrams per second of a stream
PORT = 7000
METRICS = 9474


def waited_ms(process):
    """What the successor prints about the time in which no process received."""
    return float(re.search(r"packets waited for ([0-9.]+) ms", process.text()).group(1))


class Upgrades:
    """Runs of one chain, one after the other."""

    def __init__(self, net, chain):
        self.net, self.chain, self.operator = net, chain, Operator(net)
        wait_until_quiet(net)
        self.before = frames_of(net)
        self.reports = []
        net.start(chain, outputs=self.outputs())
        self.operator.wait_until_running()

    def outputs(self):
        return f", control: {self.operator.socket}, metrics: {{listen: '127.0.0.1:{METRICS}'}}"

    def has_metrics(self):
        """Whether the one that runs listens at the address, which is the same in all."""
        return "penstock_" in sh(in_host(self.net.gateway, f"curl -sS -m 2 http://127.0.0.1:{METRICS}/metrics"), check=False)

    def successor(self):
        """Starts one. Returns the process that it is to replace, and the path of that one's report."""
        former, path = self.net.penstock, self.net.report_path
        self.net.start(self.chain, outputs=self.outputs(), wait=False, options=f"--take-over {self.operator.socket}")
        return former, path

    def upgrade(self):
        """Returns how long packets waited, in ms."""
        former, path = self.successor()
        successor = self.net.penstock
        wait_until(lambda: not former.is_running() or not successor.is_running(), "nothing happens")
        check(successor.is_running(), "the successor has ended:", successor.text())
        check(former.process.wait(10) == 0, "the predecessor:", former.text())
        wait_until(lambda: "took over" in successor.text(), "it does not say so: " + successor.text())
        check(self.operator.do("status")["pid"] == successor.pid, "another process listens")
        wait_until(self.has_metrics, "the successor has no metrics: " + successor.text())
        with open(path) as file:
            self.reports.append(json.load(file))
        return waited_ms(successor)

    def end(self):
        """Ends the last run, and checks what became of every frame."""
        time.sleep(0.3)
        self.reports.append(self.net.stop())
        now = frames_of(self.net)
        for host, port in self.net.ports.items():
            sent, delivered = (now[host][i] - self.before[host][i] for i in (0, 1))
            came = sum(frames_received_by(report, port) for report in self.reports)
            gone = sum(lost(report, port) for report in self.reports)
            out = sum(report["ports"][port]["out"]["packets"] for report in self.reports)
            check(sent == came + gone, port, "sent", sent, "came", came, "lost", gone,
                  [report["ports"][port] for report in self.reports])
            check(delivered == out, port, "sent", out, "delivered", delivered)
        for report in self.reports:
            packets = report["packets"]
            check(packets["in"] == packets["forwarded"] + packets["dropped"] + packets["consumed"], packets)

    def counted(self):
        return sum(lost(report, port) for report in self.reports for port in report["ports"]) + sum(
            sum(report["dropped_by_chain"].values()) for report in self.reports)


def upgrades(make, workers):
    """Several in a row, beside TCP both ways and numbered datagrams."""
    net = make(workers=workers)
    net.port_parameters = net.kind.much_memory
    versions = TwoVersions(net)
    runs = Upgrades(net, versions.chain())
    net.serve("lb", "iperf3 -s -1 -p 5201", 5201)
    tcp = net.serve("la", f"iperf3 -J -c {net.address('lb')} -p 5201 --bidir -P 2 -b 25M -t 6")
    streams = [Stream(net, source, target, PORT, RATE / 2, version)
               for source, target in (("la", "lb"), ("lb", "la")) for version in (4, 6)]
    probes = Probes(net)
    waits = []
    for _ in range(3):
        probes.send(passes=versions.version == 0)
        versions.write(1 - versions.version)  # the successor has other rules
        waits.append(runs.upgrade())
        probes.send(passes=versions.version == 0)
        time.sleep(0.3)
    # What the last one took over can be reloaded, as ever.
    versions.write(1 - versions.version)
    check(runs.operator.do("reload")["outcome"] == "in_use")
    probes.send(passes=versions.version == 0)
    tcp.process.wait(30)
    for stream in streams:
        stream.end()
    result = json.loads(tcp.text())
    check("error" not in result, result.get("error"))
    runs.end()
    net.write("upgrade.json", json.dumps({
        "kind": net.kind.kind, "workers": workers, "packets_waited_ms": waits,
        "datagrams": {stream.name: {"sent": stream.sender.sent, "missing": stream.missing,
                                    "longest_gap_s": round(stream.receiver.longest_gap_s, 4)} for stream in streams},
        "ports": [report["ports"] for report in runs.reports]}, indent=1))
    gone = runs.counted() + sum(udp_drops(host) for host in ("la", "lb"))
    for stream in streams:
        stream.check_none_twice()
        check(stream.missing <= gone, stream.name, "missing", stream.missing, "counted as lost", gone)
    probes.check(gone)


def interrupted_upgrades(make, workers):
    """Successors that die at any moment, or misbehave: one process goes on, and every packet is counted."""
    net = make(workers=workers, ipv6=False)
    net.port_parameters = net.kind.much_memory
    runs = Upgrades(net, TwoVersions(net).chain())
    streams = [Stream(net, source, target, PORT, RATE / 4) for source, target in (("la", "lb"), ("lb", "la"))]
    former = net.penstock
    report_path = net.report_path

    # As `penstock run --take-over` would, up to a point.
    for last_words in (b"", b"rea", b"never\n"):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(runs.operator.socket)
        client.sendall(b'{"version":1,"id":1,"command":"hand-over"}\n')
        _, ancillary, _, _ = client.recvmsg(1 << 16, socket.CMSG_SPACE(100 * array.array("i").itemsize))
        check(len(ancillary) == 1, "no descriptors came")
        client.sendall(last_words)
        client.close()
        descriptors = array.array("i")
        descriptors.frombytes(ancillary[0][2])
        for descriptor in descriptors:
            socket.close(descriptor)
        check(" 0% packet loss" in net.ping(), "after", last_words)
    check(former.is_running() and "failed, see above; the run continues" in former.text(), former.text())

    random_ = random.Random(5)
    taken = killed = 0
    for _ in range(8):
        former, path = runs.successor()
        successor = net.penstock
        time.sleep(random_.uniform(0, 0.25))
        successor.process.send_signal(signal.SIGKILL)
        successor.process.wait(10)
        # A predecessor does this after a hand-over that has begun; and not at all once it has handed over.
        if runs.operator.ask("reopen-logs")[0] != 0:
            former.process.wait(10)  # it was too late; and there is nobody left
            taken += 1
            net.start(runs.chain, outputs=runs.outputs())
            runs.operator.wait_until_running()
            continue
        killed += 1
        net.penstock, net.report_path = former, path
        check(" 0% packet loss" in net.ping(), "after", killed, "interruptions", former.text())
    check(killed > 0, "it was too late each time:", taken)
    check(runs.operator.do("status")["state"] == "running")
    for stream in streams:
        stream.end()
        stream.check_none_twice()
    report = net.stop()
    if taken == 0:
        check(net.report_path == report_path)
        gone = sum(lost(report, port) for port in report["ports"])
        for stream in streams:
            check(stream.missing <= gone, stream.name, "missing", stream.missing, "lost", gone)


def predecessor_dies(make):
    """A successor whose predecessor dies, before it has answered or later, goes on alone."""
    net = make(ipv6=False)
    runs = Upgrades(net, TwoVersions(net).chain())
    beside = runs.operator.socket + ".next"  # the successor's, from when it has compared until it takes over
    for hangs in (True, False, False, False):
        if hangs:
            net.penstock.process.send_signal(signal.SIGSTOP)
        former, _ = runs.successor()
        wait_until(lambda: "waiting for an answer" in net.penstock.text() if hangs
                   else os.path.exists(beside) or not former.is_running(), "the successor does not begin")
        former.process.send_signal(signal.SIGKILL)
        former.process.wait(10)
        wait_until(lambda: "took over" in net.penstock.text() or "begin anew" in net.penstock.text()
                   or not net.penstock.is_running(), "it does not say what it does")
        check(net.penstock.is_running(), net.penstock.text())
        runs.operator.wait_until_running()
        if net.kind.kind == "tap":  # the hosts have forgotten their neighbours
            for host, other in (("la", "lb"), ("lb", "la")):
                sh(f"ip -n {host} neigh replace {net.address(other)} lladdr {net.mac(other)} dev eth0 nud permanent")
        check(" 0% packet loss" in net.ping(), net.penstock.text())
    net.stop()


def refused_upgrades(make):
    """What cannot be taken over is named before anything stops."""
    net = make(routed=True, ipv6=False)
    runs = Upgrades(net, net.router())

    def refuses(chain, *words, workers=1):
        former, path = net.penstock, net.report_path
        net.workers = workers
        net.start(chain, outputs=runs.outputs(), wait=False, options=f"--take-over {runs.operator.socket}")
        check(net.penstock.process.wait(20) == 2, net.penstock.text())
        dry = net.host("gw", f"{net.program} check {net.chain_path} --take-over {runs.operator.socket}", check=False)
        for text in (net.penstock.text(), dry):
            for word in words:
                check(word in text, word, "is not in", text)
        net.workers = 1
        net.penstock, net.report_path = former, path
        check(" 0% packet loss" in net.ping())

    refuses(ipsec(net) + nids(net) + net.router(), "sequence numbers, replay windows", "connections, streams")
    refuses(net.router(), "the number of workers of the running process differs: found '1', expected 2",
            workers=2)
    parameters, net.port_parameters = net.port_parameters, ", memory: 32MiB" if net.kind.much_memory else ", offloads: false"
    refuses(net.router(), "port lan of the running process differs", "port wan of the running process differs")
    net.port_parameters = parameters
    runs.upgrade()
    runs.end()


def unsupported_upgrade(make):
    """Ports that cannot be handed over are named, and go on."""
    net = make(ipv6=False)
    net.start(outputs=f", control: {net.path('control')}")
    former, path = net.penstock, net.report_path
    net.start(outputs=f", control: {net.path('control')}", wait=False, options=f"--take-over {net.path('control')}")
    check(net.penstock.process.wait(20) == 2, net.penstock.text())
    check("port lan: a port of this kind cannot be handed over" in net.penstock.text(), net.penstock.text())
    net.penstock, net.report_path = former, path
    check(" 0% packet loss" in net.ping())
    net.stop()


SCENARIOS = {
    "Upgrades1": lambda make: upgrades(make, 1),
    "Upgrades2": lambda make: upgrades(make, 2),
    "InterruptedUpgrades": lambda make: interrupted_upgrades(make, 2),
    "PredecessorDies": predecessor_dies,
    "RefusedUpgrades": refused_upgrades,
    "UnsupportedUpgrade": unsupported_upgrade,
}
