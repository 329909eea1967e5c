# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""An operator, and others, at the control socket of a run that carries packets.

PENSTOCK_RELOAD_SECONDS says how long reloads go on (4 by default); reloads.json in the scenario's directory has what
was measured."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import time

from net import PROCESSOR, SANITIZED, check, frames_received_by, lost, memory_kib, received_by, wait_until
from numbered import NUMBER, Receiver, Stream, udp_drops, udp_socket

SECONDS = int(os.environ.get("PENSTOCK_RELOAD_SECONDS", "4"))
PERIOD = 0.1
RATE = 500  # datagrams per second of a stream
PORT = 7000
HIDDEN = (7001, 7002)
TOS = 0x10
# What 16 clients may make the server keep: a request each, and an answer of some 10 KiB.
ATTACK_KIB = 8192


class Operator:
    """`penstock ctl`."""

    def __init__(self, net):
        self.net, self.socket = net, net.path("control")

    def ask(self, *command, timeout=30):
        """The exit status, the result, and what was written to stderr."""
        done = subprocess.run([self.net.program, "ctl", "--json", "--socket", self.socket, *command], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
        return done.returncode, json.loads(done.stdout) if done.returncode == 0 else None, done.stderr

    def wait_until_running(self):
        wait_until(lambda: self.do("status")["state"] == "running", "the run does not begin")

    def do(self, *command):
        status, result, text = self.ask(*command)
        check(status == 0, command, "exit status", status, text)
        return result


class TwoVersions:
    """Rules in two versions, of two functions. Each version drops the datagrams to both hidden ports, one in each
    function: a packet that the firewall saw in one version and the filter in the other would pass. Only version 1
    drops marked datagrams."""

    def __init__(self, net):
        self.net, self.version = net, 0
        self.write(0)

    def write(self, version):
        first, second = HIDDEN if version == 0 else HIDDEN[::-1]
        self._replace("rules", "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
                               f"-A FORWARD -p udp -m udp --dport {first} -j DROP\nCOMMIT\n")
        marked = f" or (udp and ip[1] = {TOS})" if version == 1 else ""
        self._replace("program", self._compiled(f"udp dst port {second}{marked}"))
        self.version = version

    def write_broken(self):
        self._replace("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --dport many -j DROP\nCOMMIT\n")

    def _replace(self, name, text):
        os.replace(self.net.write(name + ".new", text), self.net.path(name))

    def _compiled(self, expression):
        return subprocess.run([self.net.program, "filter", "-ddd", expression], text=True, check=True,
                              stdout=subprocess.PIPE).stdout

    @staticmethod
    def chain():
        return "  - firewall: {rules: rules, policy: accept}\n  - filter: {program: program, match: drop}\n"


class Probes:
    """Pairs of a marked datagram and one that is not, of one flow: when the second one has arrived, the first one has
    been decided."""

    def __init__(self, net):
        self.net = net
        self.receiver = Receiver(net, "lb", 7100)
        self.socket = udp_socket(net, "la", 4, 7100)
        self.count = 0
        self.passing = set()

    def send(self, passes):
        marked, plain = 2 * self.count, 2 * self.count + 1
        self.count += 1
        if passes:
            self.passing.add(marked)
        for number, tos in ((marked, TOS), (plain, 0)):
            self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            self.socket.sendto(NUMBER.pack(number), self.receiver.address)
        end = time.monotonic() + 2
        while plain not in self.receiver.arrivals and time.monotonic() < end:
            time.sleep(0.001)

    def check(self, missing_allowed):
        self.receiver.end(self.count + len(self.passing))
        arrived = {number for number in self.receiver.arrivals if number % 2 == 0}
        check(arrived <= self.passing, "passed a version that drops them:", arrived - self.passing)
        check(len(self.passing - arrived) <= missing_allowed, "dropped by a version that passes them:",
              self.passing - arrived)
        check(0 < len(arrived) < self.count, "probes:", self.count, "passed:", len(arrived))


def wait_until_quiet(net):
    """The hosts report their multicast groups, at first, and would go on looking for routers."""
    for host in net.ports:
        net.host(host, "sysctl -qw net.ipv6.conf.eth0.router_solicitations=0")
    last, since = None, time.monotonic()
    while time.monotonic() < since + 1.5:
        now = [net.sent(host) for host in net.ports]
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.1)


def frames_of(net):
    """Those that each host has sent, and those that it has received."""
    return {host: (net.sent(host), net.received(host)) for host in net.ports}


def check_every_frame(net, report, sent, delivered):
    """What a host has sent came in or is counted as lost, and what came in went out or was dropped by the chain."""
    for host, port in net.ports.items():
        came = frames_received_by(report, port)
        check(sent[host] == came + lost(report, port), port, "sent", sent[host], "came", came, report["ports"][port])
    packets = report["packets"]
    check(packets["in"] == packets["forwarded"] + packets["dropped"] + packets["consumed"], packets)
    for host, port in net.ports.items():
        out = report["ports"][port]["out"]["packets"]
        check(out == delivered[host], port, "sent", out, "delivered", delivered[host], report["ports"][port])


class Traffic:
    """TCP both ways, and numbered datagrams that no version drops."""

    def __init__(self, net, seconds, before):
        """`before`: the frames of the hosts before the run."""
        self.net, self.before = net, before
        net.serve("lb", "iperf3 -s -1 -p 5201", 5201)
        self.tcp = net.serve("la", f"iperf3 -J -c {net.address('lb')} -p 5201 --bidir -P 2 -b 25M -t {seconds}")
        self.streams = [Stream(net, source, target, PORT, RATE, version)
                        for source, target in (("la", "lb"), ("lb", "la")) for version in (4, 6)]
        self.hidden = [Stream(net, "la", "lb", port, RATE / 4) for port in HIDDEN]

    def end(self):
        """Returns TCP's results."""
        self.tcp.process.wait(60)
        for stream in self.streams + self.hidden:
            stream.end()
        result = json.loads(self.tcp.text())
        check("error" not in result, result.get("error"))
        return result["end"]

    def check(self, report):
        net = self.net
        now = frames_of(net)
        check_every_frame(net, report, {host: now[host][0] - self.before[host][0] for host in now},
                          {host: now[host][1] - self.before[host][1] for host in now})
        gone = self.counted(report) + sum(udp_drops(host) for host in ("la", "lb"))
        for stream in self.streams:
            stream.check_none_twice()
            check(stream.missing <= gone, stream.name, "missing", stream.missing, "counted as lost", gone)
        for stream in self.hidden:
            check(not stream.receiver.arrivals, "passed a mixture of two versions:", stream.receiver.arrivals)
            check(stream.sender.sent > 0)

    @staticmethod
    def counted(report):
        """Packets that the rules have not dropped, and that were counted as lost all the same."""
        refused = sum(count for reason, count in report["dropped_by_chain"].items())
        return sum(lost(report, port) for port in report["ports"]) + refused


def reloads(make, workers):
    """A reload every 100 ms, some of broken rules, and rollbacks, beside traffic."""
    net = make(workers=workers, ports=(("la", "lan"), ("lb", "wan"), ("lc", "spare")))
    net.port_parameters = net.kind.much_memory  # workers may have to wait for a processor
    versions, operator = TwoVersions(net), Operator(net)
    wait_until_quiet(net)
    before = frames_of(net)
    net.start(versions.chain(), outputs=f", control: {operator.socket}")
    operator.wait_until_running()
    for version in (1, 0):  # before any packet
        versions.write(version)
        check(operator.do("reload")["outcome"] == "in_use")
    traffic, probes = Traffic(net, SECONDS + 1, before), Probes(net)
    times = []
    reloaded = 2
    began = time.monotonic()
    while time.monotonic() < began + SECONDS:
        turn = time.monotonic()
        if len(times) % 8 == 3:
            versions.write_broken()
            status, _, text = operator.ask("reload")
            check(status == 2 and "many" in text and "nothing has changed" in text, status, text)
            probes.send(passes=versions.version == 0)
        if len(times) % 8 == 6:
            result = operator.do("rollback")
            versions.version = 1 - versions.version
        else:
            versions.write(1 - versions.version)
            result = operator.do("reload")
        check(result["outcome"] == "in_use", result)
        times.append(result["elapsed_s"])
        reloaded += 1
        probes.send(passes=versions.version == 0)
        time.sleep(max(0, turn + PERIOD - time.monotonic()))
    tcp = traffic.end()
    time.sleep(0.3)
    stats = operator.do("stats")
    report = net.stop()
    check(stats["reloads"] == reloaded == report["reloads"], stats["reloads"], reloaded, report["reloads"])
    net.write("reloads.json", json.dumps({
        "kind": net.kind.kind, "workers": workers, "processor": PROCESSOR, "seconds": SECONDS, "reloads": reloaded,
        "median_s": statistics.median(times), "longest_s": max(times), "probes": probes.count,
        "datagrams": {stream.name: {"sent": stream.sender.sent, "missing": stream.missing,
                                    "longest_gap_s": round(stream.receiver.longest_gap_s, 4)}
                      for stream in traffic.streams},
        "tcp_mbps": [tcp[way]["bits_per_second"] / 1e6 for way in ("sum_received", "sum_received_bidir_reverse")],
        "packets": report["packets"], "dropped_by_chain": report["dropped_by_chain"], "ports": report["ports"]}, indent=1))
    probes.check(traffic.counted(report))
    traffic.check(report)
    check(received_by(report, "spare") < 20, "the idle port was not idle:", report["ports"]["spare"])


def has_no_place(path):
    """Whether a run refuses another client. Unlike `penstock ctl`, it does not try again."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(0.5)
        try:
            client.connect(path)
            return b"too many clients" in client.recv(4096)
        except OSError:
            return False


def attack(net, how, path, seconds, user=""):
    """Lets hostile clients act, and pings meanwhile. Returns the connections that they made."""
    script = net.path("hostile.py")
    shutil.copy(os.path.join(os.path.dirname(__file__), "hostile.py"), script)
    os.chmod(script, 0o644)
    client = net.serve("gw", f"{user} python3 -B {script} {how} {path} {seconds}")
    return client


def ping_times(net):
    """The median and the longest time in ms."""
    text = net.host("la", f"ping -c 60 -i 0.01 -W 2 {net.address('lb')}")
    times = sorted(float(time_) for time_ in re.findall(r"time=([0-9.]+) ms", text))
    return statistics.median(times), times[-1]


def hostile_clients(make):
    """Whatever clients do, packets go on, memory is bounded, and others are served as promised (docs/control.md)."""
    net = make(workers=1, ipv6=False)
    net.port_parameters = net.kind.much_memory
    operator = Operator(net)
    versions = TwoVersions(net)
    before = frames_of(net)
    net.start(versions.chain(), outputs=f", control: {operator.socket}")
    operator.wait_until_running()
    check(stat.S_IMODE(os.stat(operator.socket).st_mode) == 0o600, "others may connect")
    os.chmod(operator.socket, 0o666)
    streams = [Stream(net, "la", "lb", PORT, RATE), Stream(net, "lb", "la", PORT, RATE)]
    usual = ping_times(net)
    memory = memory_kib(net)["used"]
    record = {"kind": net.kind.kind, "pings_ms_without": usual, "memory_kib_without": memory, "attacks": {}}
    nobody = "setpriv --reuid=nobody --regid=nogroup --clear-groups "
    for user in (nobody, ""):
        for how in ("silent", "half", "garbage", "huge", "greedy"):
            client = attack(net, how, operator.socket, 2, user)
            time.sleep(0.3)
            pings = ping_times(net)
            most = memory_kib(net)["used"]
            served = operator.ask("status")
            client.process.wait(30)
            made = int(client.text())
            record["attacks"][f"{how}, {'another user' if user else 'the same user'}"] = {
                "connections": made, "pings_ms": pings, "memory_kib": most, "served": served[0] == 0}
            check(made >= 16, how, made)
            # Clients of the same user can take all places; then the operator waits for one, for some seconds.
            check(served[0] == 0 or not user and "too many clients" in served[2], user, how, served)
            check(most < memory + ATTACK_KIB, user, how, "memory:", memory, most)
            check(operator.do("status")["state"] == "running")  # once they have gone
    # All places are taken, and stay so: signals work.
    client = attack(net, "silent", operator.socket, 4)
    wait_until(lambda: has_no_place(operator.socket), "the places are not taken")
    versions.write(1)
    net.penstock.process.send_signal(signal.SIGUSR2)
    wait_until(lambda: "in use after" in net.penstock.text(), "no reload by signal")
    client.process.wait(30)
    check(operator.do("stats")["reloads"] == 1)
    for stream in streams:
        stream.end()
    time.sleep(0.3)
    report = net.stop()
    now = frames_of(net)
    record.update({"packets": report["packets"], "ports": report["ports"], "datagrams": [
        {"sent": stream.sender.sent, "missing": stream.missing, "longest_gap_s": round(stream.receiver.longest_gap_s, 4)}
        for stream in streams]})
    net.write("hostile.json", json.dumps(record, indent=1))
    check_every_frame(net, report, {host: now[host][0] - before[host][0] for host in now},
                      {host: now[host][1] - before[host][1] for host in now})
    for stream in streams:
        stream.check_none_twice()
        check(stream.missing <= Traffic.counted(report), stream.name, "missing", stream.missing, report["ports"])
    # On a machine with few cores, clients take processor time from everybody; on a busy one, so do others.
    medians = sorted(attack_["pings_ms"][0] for attack_ in record["attacks"].values())
    check(SANITIZED or statistics.median(medians) < 10 * max(usual[0], 1), "pings take", medians, "usually", usual)


SCENARIOS = {
    "HostileClients": hostile_clients,
    "Reloads1": lambda make: reloads(make, 1),
    "Reloads2": lambda make: reloads(make, 2),
}
