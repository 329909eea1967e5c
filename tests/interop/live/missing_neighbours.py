# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets to hosts whose MAC address the gateway's kernel does not know yet. The net is that of kernel_routes.py; no
host has heard of another one before Penstock starts."""

import json
import socket
import struct
import time

from frames import ipv4, mac_bytes, raw_socket, udp
from kernel_routes import HOSTS, ROUTER, gateway_of, wait_for
from net import check, entering, sh, wait_until

PORT = 6000
MOST_HELD = 1024  # by a worker


def links_are_ready():
    """The kernel asks for IPv6 neighbours only once its own addresses are no longer tentative."""
    return "tentative" not in sh("ip -n gw -6 addr show") + sh("ip -n la -6 addr show")


def started(make):
    net = gateway_of(make)
    wait_until(links_are_ready, "addresses stay tentative")
    net.start(ROUTER)
    return net


def forget_hosts():
    sh("ip -n gw neigh flush dev wan; ip -n gw -6 neigh flush dev wan", check=False)
    time.sleep(1.1)  # until Penstock has followed, and may ask for the same neighbour again


def drops(report):
    return report["functions"][0]["dropped"]["reasons"]


def check_sums(report):
    for of in (report["packets"], report["bytes"]):
        check(of["in"] == of["forwarded"] + of["dropped"] + of["consumed"] + of["held"], of)


def end(net):
    """Nothing was lost."""
    report = net.stop()
    check(drops(report)["no_neighbour"] == drops(report)["neighbour_unreachable"] == 0, drops(report))
    check(report["packets"]["held"] == 0, report["packets"])
    check_sums(report)


def first_packets(make):
    net = started(make)
    for version, address in ((4, HOSTS["lb"][0]), (6, HOSTS["lb"][1])):
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        # A ping: also the reply finds its way.
        out = net.host("la", f"ping -c 1 -W 2 {address}", check=False)
        check(" 0% packet loss" in out, "the first ping is lost:", out)
        # A connection: the SYN would be sent again after a second.
        with entering("lb"):
            server = socket.create_server(("", PORT), family=family)
        forget_hosts()
        with entering("la"):
            client = socket.socket(family, socket.SOCK_STREAM)
        begun = time.monotonic()
        client.connect((address, PORT))
        check(time.monotonic() - begun < 0.9, "the first SYN is lost: connected after", time.monotonic() - begun, "s")
        client.close()
        server.close()
        # Some datagrams at once, in their order, and nothing overtakes them.
        with entering("lb"):
            receiver = socket.socket(family, socket.SOCK_DGRAM)
        receiver.bind(("", PORT))
        receiver.settimeout(3)
        forget_hosts()
        with entering("la"):
            sender = socket.socket(family, socket.SOCK_DGRAM)
        for number in range(120):
            sender.sendto(struct.pack("!I", number), (address, PORT))
            if number >= 60:
                time.sleep(0.005)
        numbers = [struct.unpack("!I", receiver.recv(64))[0] for _ in range(120)]
        check(numbers == list(range(120)), "lost or out of order:", numbers)
    end(net)


def by_link_address(make):
    """Rules after the router test the link addresses with which packets arrived, also those of packets that have waited."""
    net = gateway_of(make)
    wait_until(links_are_ready, "addresses stay tentative")
    for negated, passes in (("", True), ("!=", False)):
        rules = net.write("rules.nft", "table inet t {\n chain c {\n  type filter hook forward priority filter; policy drop;\n"
                          f"  ether saddr {negated} {{ {net.mac('la')}, {net.mac('lb')} }} accept\n }}\n}}\n")
        net.start(ROUTER + f"  - firewall: {{rules: {rules}, hook: forward}}\n")
        for address in HOSTS["lb"]:
            out = net.host("la", f"ping -c 1 -W 2 {address}", check=False)
            check((" 0% packet loss" in out) == passes, "ether saddr", negated, address, out)
        report = net.stop()
        denied = report["functions"][1]["dropped"]["reasons"]["denied"]
        check(denied == (0 if passes else 2), "ether saddr", negated, report["functions"])
        check_sums(report)
        forget_hosts()


def no_such_host(make):
    """A packet to a host that there is not is counted, soon, by its reason."""
    net = started(make)
    for version in (0, 1):
        address = ("10.2.0.77", "fd02::77")[version]
        net.host("la", f"ping -c 1 -W 0.1 {address}", check=False)
    time.sleep(3.6)
    report = net.stop()
    check(drops(report)["neighbour_unreachable"] == 2, drops(report))
    check(drops(report)["no_neighbour"] == 0, drops(report))
    check(report["packets"]["held"] == 0, report["packets"])
    check_sums(report)


def scan(make):
    """Of an empty /16, as fast as the sender can, beside pings to a known host."""
    net = gateway_of(make)
    sh("ip -n gw addr add 10.7.0.254/16 dev wan")
    net.port_parameters = net.kind.much_memory
    socket_path = net.path("control.sock")
    net.start(ROUTER, outputs=f", control: {socket_path}")
    wait_for(net, HOSTS["lb"][0], "although it is on the link")

    def stats():
        return json.loads(net.host("gw", f"{net.program} ctl --socket {socket_path} stats --json"))

    gateway_mac = json.loads(sh("ip -n gw -j link show lan"))[0]["address"]
    head = mac_bytes(gateway_mac) + mac_bytes(net.mac("la")) + b"\x08\x00"
    frames = [head + ipv4(17, udp(bytes(20)), target=f"10.7.{i // 250}.{1 + i % 250}") for i in range(20000)]
    sender = raw_socket("la")
    pings = net.serve("la", f"ping -q -i 0.02 -c 150 -W 2 {HOSTS['lb'][0]}")
    begun, sent, most_held = time.monotonic(), 0, 0
    while time.monotonic() - begun < 3.5:
        for frame in frames[sent % len(frames):sent % len(frames) + 2000]:
            try:
                sender.send(frame)
            except OSError:  # the interface's queue is full
                pass
        sent += 2000
        now = stats()["packets"]["held"] if sent % 20000 == 0 else 0
        most_held = max(most_held, now)
    pings.process.wait(30)
    check(" 0% packet loss" in pings.text(), "pings to a known host are lost:", pings.text())
    check(0 < most_held <= MOST_HELD, "held:", most_held)
    wait_until(lambda: stats()["packets"]["held"] == 0, "packets are held for ever", 6)
    report = net.stop()
    check_sums(report)
    check(report["packets"]["in"] > 5000, "the sender is too slow:", report["packets"])
    check(drops(report)["neighbour_unreachable"] >= MOST_HELD / 2 and drops(report)["no_neighbour"] > 0, drops(report))
    asked = report["functions"][0]["details"]["kernel"]["neighbours_asked_for"]
    check(asked <= 128 + 100 * (time.monotonic() - begun) + 100, "the kernel was asked for", asked, "neighbours")


def changes_hands(make):
    """Another process takes over while packets are held: each is counted by one of both."""
    net = gateway_of(make)
    control = net.path("control.sock")
    net.start(ROUTER, outputs=f", control: {control}")
    wait_for(net, HOSTS["lb"][0], "although it is on the link")
    former, path = net.penstock, net.report_path
    net.serve("la", "ping -q -i 0.05 10.2.0.77")
    net.start(ROUTER, outputs=f", control: {control}", wait=False, options=f"--take-over {control}")
    wait_until(lambda: not former.is_running(), "the predecessor does not end: " + net.penstock.text())
    check(former.process.wait(10) == 0, "the predecessor:", former.text())
    with open(path) as file:
        report = json.load(file)
    check(drops(report)["no_neighbour"] > 0 and report["packets"]["held"] == 0, report["packets"], drops(report))
    check_sums(report)
    check(net.penstock.is_running(), "the successor has ended:", net.penstock.text())
    wait_for(net, HOSTS["lb"][0], "after the upgrade")
    check_sums(net.stop())


SCENARIOS = {
    "FirstPackets": first_packets,
    "FirstPacketsByLinkAddress": by_link_address,
    "NoSuchHost": no_such_host,
    "Scan": scan,
    "HeldInAnUpgrade": changes_hands,
}
