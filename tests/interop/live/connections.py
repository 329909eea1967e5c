# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""An operator looks at the connections of a stateful firewall, ends some and follows them; and a run leaves its
connections for the next one."""

import json
import re
import socket
import subprocess
import time

import home
from control import Operator
from net import Skip, check, entering, sh, wait_until

RULES = """*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan -m conntrack --ctstate NEW -j ACCEPT
COMMIT
"""
PORT = 7000


class Chain:
    """Connections begin from lan only, and with a handshake: what the firewall does not know does not pass."""

    def __init__(self, net):
        self.net = net
        net.write("rules", RULES)
        self.kept = net.path("connections")
        self.operator = Operator(net)

    def start(self):
        self.net.start("  - firewall: {rules: rules, interfaces: {lan: lan, wan: wan}, tcp_loose: false, "
                       f"connections_file: {self.kept}}}\n", outputs=f", control: {self.operator.socket}")
        self.operator.wait_until_running()

    def lines(self, *options):
        """What `penstock ctl conntrack list` prints."""
        return sh(f"{self.net.program} ctl --socket {self.operator.socket} conntrack list {' '.join(options)} 2>/dev/null").splitlines()

    def count(self, *options):
        return self.operator.do("conntrack", "count", *options)

    def flush(self, *options):
        return self.operator.do("conntrack", "flush", *options)["removed"]


class Tcp:
    """A connection from la to lb."""

    def __init__(self, net, server):
        with entering("la"):
            self.client = socket.create_connection((net.address("lb"), PORT), timeout=5)
        self.server, _ = server.accept()
        self.port = self.client.getsockname()[1]
        for end in (self.client, self.server):
            end.settimeout(5)
        check(self.passes(), "a connection that begins does not pass")

    def passes(self, seconds=5):
        try:
            for sender, receiver in ((self.client, self.server), (self.server, self.client)):
                receiver.settimeout(seconds)
                sender.sendall(b"x")
                receiver.recv(100)
        except socket.timeout:
            return False
        return True


def listen(net):
    with entering("lb"):
        return socket.create_server((net.address("lb"), PORT))


def udp_exchange(net, port):
    with entering("lb"):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((net.address("lb"), port))
    with entering("la"):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for end in (client, server):
        end.settimeout(5)
    client.sendto(b"?", (net.address("lb"), port))
    _, address = server.recvfrom(100)
    server.sendto(b"!", address)
    client.recv(100)
    return address[1]


def kernel_lines():
    """What the kernel of la, where the connections begin, says about them. Nothing: it does not track."""
    return sh("ip netns exec la cat /proc/net/nf_conntrack", check=False).splitlines()


def track_in_kernel():
    sh("ip netns exec la nft add table inet track && "
       "ip netns exec la nft add chain inet track out '{ type filter hook output priority 0; }' && "
       "ip netns exec la nft add rule inet track out ct state new accept", check=False)


def normal(line):
    """Without what only the kernel says, and without the time."""
    line = re.sub(r"^ipv[46] +\d+ ", "", line)
    line = re.sub(r" (zone|use)=\d+", "", " ".join(line.split()))
    return re.sub(r"^(\S+ \d+) \d+ ", r"\1 ", line)


def seconds_of(line):
    return int(re.search(r"^\S+ +\d+ (\d+) ", re.sub(r"^ipv[46] +\d+ ", "", line)).group(1))


def compare_with_kernel(chain, ports):
    """The same connections in the same words, as far as the kernel shows them."""
    ours = {normal(line): line for line in chain.lines() if any(f"sport={port} " in line for port in ports)}
    kernel = {normal(line): line for line in kernel_lines() if any(f"sport={port} " in line for port in ports)}
    if not kernel:
        print("the kernel shows no connections: not compared")
        return
    check(ours.keys() == kernel.keys(), "ours:", "\n".join(ours), "\nkernel:", "\n".join(kernel))
    for line, shown in ours.items():
        check(abs(seconds_of(shown) - seconds_of(kernel[line])) <= 3, shown, kernel[line])
    print(len(ours), "connections are shown as by the kernel")


def follow(operator, path):
    """A client that follows the events, once it is certain that it does: there can be only one."""
    command = [operator.net.program, "ctl", "--json", "--socket", operator.socket, "conntrack", "events"]
    while True:
        with open(path, "w") as file:
            follower = subprocess.Popen(command, stdout=file)
        time.sleep(0.3)
        while follower.poll() is None:
            if subprocess.run([*command, "--timeout", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 1:
                return follower


def managed(make, workers):
    net = make(workers=workers, ipv6=False)
    track_in_kernel()
    chain = Chain(net)
    chain.start()
    operator = chain.operator
    events_path = net.path("events")
    follower = follow(operator, events_path)

    server = listen(net)
    first, second = Tcp(net, server), Tcp(net, server)
    udp = udp_exchange(net, 7001)
    check(" 0% packet loss" in net.ping())
    compare_with_kernel(chain, (first.port, second.port, udp))
    lines = chain.lines("--proto", "tcp", "--sport", str(first.port))
    check(len(lines) == 1, lines)
    check(re.fullmatch(rf"tcp      6 43\d{{4}} ESTABLISHED src={net.address('la')} dst={net.address('lb')} sport={first.port} dport={PORT} "
                       rf"src={net.address('lb')} dst={net.address('la')} sport={PORT} dport={first.port} \[ASSURED\] mark=0", lines[0]), lines[0])
    count = chain.count()
    check(count["by_protocol"]["tcp"] == 2 and count["by_protocol"]["udp"] == 1 and count["by_protocol"]["icmp"] >= 1, count)
    check(len(chain.lines("--state", "ESTABLISHED", "--src", "10.1.0.0/24")) == 2)
    check(chain.lines("--dst", "192.0.2.0/24") == [] and len(chain.lines("--limit", "1")) == 1)

    check(chain.flush("--proto", "tcp", "--sport", str(first.port)) == 1)
    check(not first.passes(0.3), "a connection that was removed passes without a handshake")
    check(second.passes(), "another one was removed too")
    check(chain.count("--proto", "tcp")["connections"] == 1)

    # An end that takes nothing of its list keeps neither packets nor other operators waiting.
    lazy = socket.socket(socket.AF_UNIX)
    lazy.connect(operator.socket)
    lazy.sendall(b'{"version": 1, "id": 1, "command": "conntrack", "action": "list"}\n')
    check(" 0% packet loss" in net.ping() and len(chain.lines("--proto", "tcp")) == 1)
    lazy.close()

    second.client.close()
    second.server.close()
    wait_until(lambda: len(chain.lines("--state", "TIME_WAIT", "--sport", str(second.port))) == 1, "it is not closed", 5)
    check(chain.flush() >= 2 and chain.count()["connections"] == 0)

    def events():
        with open(events_path) as file:
            return [json.loads(line) for line in file.read().splitlines() if line.endswith("}")]
    def of_port(port):
        return [(event["kind"], event["state"]) for event in events() if event.get("original", {}).get("sport") == port]
    wait_until(lambda: ("destroy", "TIME_WAIT") in of_port(second.port), "no event of the last flush", 5)
    check(of_port(first.port) == [("new", "SYN_SENT"), ("update", "SYN_RECV"), ("update", "ESTABLISHED"),
                                  ("destroy", "ESTABLISHED")], of_port(first.port))
    seen = of_port(second.port)
    check(seen[:3] == [("new", "SYN_SENT"), ("update", "SYN_RECV"), ("update", "ESTABLISHED")], seen)
    check([kind for kind, _ in of_port(udp)] == ["new", "update", "destroy"], of_port(udp))
    check(not any(event["kind"] == "lost" for event in events()))
    follower.terminate()
    follower.wait(10)
    net.stop()


def kept(make):
    """A connection that goes on in the next run, on one worker, and in the one after it, on two."""
    net = make(workers=2, ipv6=False)
    chain = Chain(net)
    chain.start()
    server = listen(net)
    connections = [Tcp(net, server) for _ in range(8)]
    udp = udp_exchange(net, 7001)
    for workers in (1, 2):
        net.stop()
        check("saved" in net.penstock.text(), net.penstock.text())
        with open(chain.kept) as file:
            check(file.readline().startswith("penstock-connections version=2 "))
        net.workers = workers
        chain.start()
        check(len(chain.lines("--state", "ESTABLISHED", "--proto", "tcp")) == len(connections), chain.lines())
        check(len(chain.lines("--proto", "udp", "--sport", str(udp))) == 1)
        check(all(connection.passes() for connection in connections), "a connection does not go on")
        connections.append(Tcp(net, server))
    report = net.stop()
    check(report["functions"][0]["details"]["connections"].get("invalid", {}) == {}, report["functions"][0]["details"])

    # While nothing runs, the clock goes on.
    with open(chain.kept) as file:
        text = file.read()
    with open(chain.kept, "w") as file:
        file.write(re.sub(r"saved_ms=\d+", f"saved_ms={int((time.time() - 432001) * 1000):020}", text))
    chain.start()
    check(chain.count()["connections"] == 0 and not connections[0].passes(0.3), "connections whose time is over")
    net.stop()

    # A damaged file keeps no firewall from starting.
    with open(chain.kept, "w") as file:
        file.write(text[:len(text) // 2])
    chain.start()
    check("connections of the last run are not used" in net.penstock.text(), net.penstock.text())
    check(chain.count()["connections"] == 0)
    net.stop()
    net.write("connections", "something else\n")
    net.start("  - firewall: {rules: rules, interfaces: {lan: lan, wan: wan}, connections_file: connections}\n", wait=False)
    check(net.penstock.process.wait(10) != 0 and "not overwritten" in net.penstock.text(), net.penstock.text())


def kept_translations(make):
    """Connections through NAT on four workers: they are listed and ended, and those that are left go on in the next run, whichever end speaks
    first."""
    net = make(routed=True, workers=4, ipv6=False)
    if "nftables" not in sh("nft --version", check=False):
        raise Skip("nft is not installed")
    rules, kept, operator = net.write("home.nft", home.RULES), net.path("connections"), Operator(net)

    def firewall(hook, more=""):
        return (f"  - firewall: {{rules: {rules}, hook: {hook}, tcp_loose: false, interfaces: {{lan: lan, wan: wan}}{more}}}\n")

    def start():
        net.start(firewall("prerouting", f", connections_file: {kept}") + net.router() + firewall("forward") + firewall("postrouting", ", addresses: {wan: 10.2.0.254}"),
                  outputs=f", control: {operator.socket}")
        operator.wait_until_running()

    def lines(*options):
        return sh(f"{net.program} ctl --socket {operator.socket} conntrack list {' '.join(options)} 2>/dev/null").splitlines()

    def answers(connection, seconds=5):
        connection.client.settimeout(seconds)
        connection.server.sendall(b"x")
        try:
            return connection.client.recv(100) != b""
        except socket.timeout:
            return False

    start()
    server = listen(net)
    connections = [Tcp(net, server) for _ in range(16)]
    check(all(connection.server.getpeername()[0] == "10.2.0.254" for connection in connections), "not translated")
    ended = connections.pop()
    check(operator.do("conntrack", "flush", "--sport", str(ended.port))["removed"] == 1)
    check(not answers(ended, 0.3), "a connection that was ended goes on")
    for _ in range(2):
        report = net.stop()
        check(report["handed_over"]["packets"] > 8, report["handed_over"])
        start()
        check(len(lines("--state", "ESTABLISHED", "--proto", "tcp")) == len(connections), lines())
        check(all(answers(connection) for connection in connections), "a connection does not go on")
        check(all(connection.passes() for connection in connections), "a connection does not go on")
    net.stop()


SCENARIOS = {
    "Connections1": lambda make: managed(make, 1),
    "Connections2": lambda make: managed(make, 2),
    "KeptConnections": kept,
    "KeptTranslations4": kept_translations,
}
